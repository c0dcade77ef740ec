"""Tools that are called by name: R148 to R158, and their successors."""

import json
from pathlib import Path

from page import WORDS
from scenarios import DONE, Scenario, thinking

FETCHED = "It says when the lab is open."
DELEGATED = "Please say that you are there."
PRESENT = "The sub-agent is there."


class Named(Scenario):
    """Tool names of the requirements."""

    name = "named-tools"
    agents_only = True
    thin = True
    wish = "question"

    def calls(self, client, work, url):
        return client.named(work, url)

    def suits(self, client):
        return bool(self.calls(client, Path("work"), ""))

    def wish_for(self, client):
        return self.wish if self.wish in client.can else None

    def environment(self, client, stage):
        trusted = {"NODE_EXTRA_CA_CERTS": str(stage.page.certificate)}
        return {"ENABLE_TOOL_SEARCH": "false", "CLAUDE_CODE_ENABLE_TASKS": "0", **trusted}

    def script(self, box, stage):
        calls = [it for it, _ in self.calls(box, stage.work, stage.page.url)]
        turns = [
            {"expect": {"tools": True, "contains": DELEGATED}, "text": PRESENT},
            *({"expect": {"tools": True}, **thinking(it)} for it in calls),
            {"expect": {"tools": True}, "text": f"Every one. {DONE}"},
            # Requests of the tools themselves.
            {"expect": {"tools": False, "contains": WORDS}, "text": FETCHED, "times": 0},
            {"expect": {"tools": False}, "text": "Nothing was found.", "times": 0},
        ]
        return {"any_order": True, "turn": turns}

    def check(self, run):
        yield from run.ended_well()
        wanted = [(it["call"], words) for it, words in self.calls(run.client, run.work, "")]
        renamed = [run.client.aliases.get(name, name) for name, _ in wanted]
        # The signature of a call that the client has renamed is invalid.
        yield from run.was_clean(but=("placeholders",) if run.client.aliases.keys() & {it for it, _ in wanted} else ())
        if missing := set(renamed) - run.declared():
            yield f"not declared: {sorted(missing)}"
        answers = run.answers()
        if [it["name"] for it in answers] != renamed:
            yield f"answered: {[it['name'] for it in answers]}"
        for answer, (name, words) in zip(answers, wanted):
            said = json.dumps(answer, ensure_ascii=False)
            if words not in said:
                yield f"{name} did not give {words!r} but {said[:200]}"


# A skill of the project, and a notebook with one cell.
SKILL = "---\nname: greet\ndescription: Greets the lab.\n---\n\nGreet the lab.\n"
NOTEBOOK = {
    "cells": [{"cell_type": "code", "id": "first", "metadata": {}, "outputs": [], "execution_count": None, "source": ["1 + 1"]}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


class NewlyNamed(Named):
    """Current tool names, some of which need a tool search first."""

    name = "new-tools"

    def prepare(self, work):
        skill = work / ".claude" / "skills" / "greet" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(SKILL)
        (work / "sum.ipynb").write_text(json.dumps(NOTEBOOK))

    def calls(self, client, work, url):
        return client.newly_named(work, url)

    def environment(self, client, stage):
        return {"NODE_EXTRA_CA_CERTS": str(stage.page.certificate)}


class Failing(NewlyNamed):
    """The same tools, each with a call that fails: the model gets the error, and the session goes on."""

    name = "failing-tools"

    def calls(self, client, work, url):
        return client.failing(work, url)


ALL = [Named(), NewlyNamed(), Failing()]
