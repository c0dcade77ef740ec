"""All clients and all scenarios, in the order of the tables."""

import claude
import codex
import features
import further
import gemini
import named
import opencode
import programs
import scenarios
import sessions
import upkeep

CLIENTS = claude.ALL + codex.ALL + gemini.ALL + opencode.ALL + programs.ALL + further.ALL
SCENARIOS = scenarios.ALL + sessions.ALL + upkeep.ALL + named.ALL + codex.SCENARIOS + features.ALL + further.SCENARIOS


def plays(client, scenario):
    """Whether a client is run in a scenario at all."""
    if getattr(client, "is_further", False):
        return scenario in further.SCENARIOS and scenario.suits(client)
    if scenario.agents_only and not client.is_agent:
        return False
    if (scenario.programs_only and client.is_agent) or not scenario.suits(client):
        return False
    if len(scenario.prompts_for(client)) > 1 and not client.can_resume:
        return False
    # Without the gateway there are no rescues: an SDK returns Gemini's faulty turn.
    if client.is_direct and scenario.is_faulty and scenario.name != "429":
        return False
    return scenario.name != "no-arguments" or bool(client.nothing())


def runs():
    """Every run of the full matrix: client, scenario, model."""
    return [
        (client, scenario, model)
        for client in CLIENTS
        for scenario in SCENARIOS
        if plays(client, scenario)
        for model in scenario.models
    ]
