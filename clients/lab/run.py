"""One client in one scenario on one model."""

import json
import sys

import grammar
import install
import scenarios
from stage import Stage

MCP = [sys.executable, str(install.ROOT / "clients" / "programs" / "mcp_odd.py")]


class Run:
    """Outcome of a run."""

    def __init__(self, client, scenario, model):
        self.client, self.scenario, self.model = client, scenario, model
        self.text, self.error, self.code = "", "", 0
        self.texts = []
        self.difference = None
        self.took = 0.0

    def result(self):
        """Outcome as a row of the results."""
        fault = self.client.faults.get(self.scenario.name)
        outcome = "FAIL" if self.difference else "cannot" if fault else "pass" if self.is_done() else "shown"
        return {
            "client": self.client.name,
            "is_agent": self.client.is_agent,
            "scenario": self.scenario.name,
            "model": self.model,
            "outcome": outcome,
        }

    def play(self, binary, checker, artefacts):
        stage = Stage(binary, options=self.scenario.server_options, direct=self.client.is_direct)
        with stage:
            try:
                self.scenario.prepare(stage.work)
                stage.begin(self.scenario.script(self.client, stage))
                self.perform(stage)
                self.exchanges = stage.relay.exchanges()
                self.requests = stage.window("requests")
                self.counters = stage.window("counters")
                self.work = stage.work
                self.output = stage.output
                found = list(self.scenario.check(self))
                # A client that cannot run the scenario may have sent no request with a grammar.
                is_able = self.scenario.name not in self.client.faults
                if is_able or any(map(grammar.is_checked, self.exchanges)):
                    found += self.grammar(stage, checker)
                self.difference = found[0] if found else None
            except (RuntimeError, OSError, KeyError, ValueError, TypeError) as error:
                self.difference = f"{type(error).__name__}: {error}"
            if self.difference:
                stage.keep(artefacts)
                (artefacts / "difference.txt").write_text(f"{self.difference}\n")
        stage.remove()

    def perform(self, stage):
        scenario, client = self.scenario, self.client
        prompts = scenario.prompts_for(client)
        for at, prompt in enumerate(prompts):
            model = scenario.model_at(at, self.model)
            client.prepare(stage, model)
            if at:
                stage.restart_gateway()
            options = client.mcp(stage, MCP) if scenario.uses_mcp else []
            options = [*options, *scenario.arguments(client, stage)]
            wish, granted = scenario.wish_for(client), {}
            if wish:
                more, granted = client.granted(wish, stage, model)
                options += more
            command = client.command(stage, model, prompt, at > 0, options)
            if wish == "question":
                command = client.attended(command)
            environment = {**client.environment(stage, model), **granted, **scenario.environment(client, stage)}
            stop = stage.work / scenario.interrupted_at if scenario.interrupted_at and not at else None
            ended = stage.run(command, environment, scenario.seconds or client.seconds, stop)
            self.took += ended.took
            self.code = ended.code
            self.text, self.error = client.said(ended)
            self.texts.append(self.text)

    def is_done(self):
        return not self.scenario.ends_in_words or scenarios.DONE in self.text

    def shows_error(self):
        return bool(self.error) or self.code not in (0, None)

    def ended_well(self):
        if self.code is None:
            yield f"it did not end within {self.client.seconds} s"
        elif self.error or self.code != 0:
            yield f"exit {self.code}: {(self.error or self.text).strip()[:160]}"
        elif not self.is_done():
            yield f"it said {self.text[-80:]!r}"

    def was_clean(self, but=()):
        """Checks that Gemini refused nothing, and that no signature was lost or repeated."""
        if self.code is None:
            yield f"it did not end within {self.client.seconds} s"
        for request in self.requests:
            if request["refusal"] and "refusals" not in but:
                yield f"refused: {request['refusal'][:200]}"
        for what in ("placeholders", "doubled", "mismatches", "unexpected"):
            if self.counters[what] and what not in but:
                yield f"{self.counters[what]} {what}"

    def answers(self):
        """Function responses of the last request that has any, in order."""
        for request in reversed(self.requests):
            parts = [
                part
                for content in (request["body"] or {}).get("contents", [])
                for part in content.get("parts", [])
            ]
            # litellm writes snake_case, and pass-through does not change it.
            both = [part.get("functionResponse") or part.get("function_response") for part in parts]
            found = [answer for answer in both if answer]
            if found:
                return found
        return []

    def was_asked(self, *words):
        """Whether one request to Gemini contains all of these."""
        bodies = (json.dumps(request["body"]) for request in self.requests)
        return any(all(word in body for word in words) for body in bodies)

    def declared(self):
        """Names of all functions declared to Gemini."""
        return {
            function["name"]
            for request in self.requests
            for tool in (request["body"] or {}).get("tools", [])
            for function in tool.get("functionDeclarations", [])
        }

    def holds(self, name, wanted):
        place = self.work / name
        found = place.read_text() if place.exists() else None
        # Some clients add a final newline to files, others remove it.
        if found is None or found.rstrip("\n") != wanted.rstrip("\n"):
            yield f"{name} holds {found!r}"

    def grammar(self, stage, checker):
        if stage.gateway:
            yield from grammar.faults(stage.relay.exchanges(), checker)
