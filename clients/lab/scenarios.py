"""Scenarios: the model's turns, and the expected outcome."""

import json

OLD, NEW = "gemini-2.5-flash", "gemini-3.6-flash"
DONE = "The lab is done."
# Quotes, a line separator, an astral character: text that careless translators break.
HARD = 'Ω "quoted" \\ back\u2028line 🦀 <b>&amp;</b>\n'


# Long enough to be truncated in any form.
CUT = "I am on my way to an answer that will be cut. " + "It goes on and on. " * 30


class Scenario:
    name = ""
    models = (OLD, NEW)
    prompts = ("Please work through the lab.",)
    thin = False
    is_faulty = False
    agents_only = False
    programs_only = False
    uses_mcp = False
    server_options = ()
    # Options of our programs, in addition to the usual ones.
    options = ()
    # Whether the client prints the model's last text at the end.
    ends_in_words = True
    # File of the tool that the user interrupts.
    interrupted_at = None

    # Setting of the client.
    wish = None
    # Whether it mostly waits, so that it can run beside other scenarios.
    is_idle = False
    # Time limit, if longer than usual.
    seconds = None

    def suits(self, client):
        """Whether a client can run it."""
        return self.wish is None or self.wish in client.can

    def wish_for(self, client):
        return self.wish if self.wish in client.can else None

    def prepare(self, work):
        """Creates files in the client's working folder."""

    def prompts_for(self, client):
        return self.prompts

    def model_at(self, at, model):
        """Model of the process with this number."""
        return model

    def arguments(self, client, stage):
        """Further arguments on the client's command line."""
        return list(self.options)

    def environment(self, client, stage):
        return {}

    def turns(self, box, work):
        raise NotImplementedError

    def script(self, box, stage):
        turns = [{"expect": {"tools": True}, **turn} for turn in self.turns(box, stage.work)]
        # Titles and the like, which some clients request beside the session.
        turns.append({"expect": {"tools": False}, "text": "A lab session", "times": 0})
        return {"any_order": True, "turn": turns}

    def check(self, run):
        """Yields deviations from the expected outcome."""
        yield from run.ended_well()
        yield from run.was_clean()


def thinking(call, thought="I know what to do next."):
    return {"say": [{"thought": thought}, call]}


class Chat(Scenario):
    """Text without tools."""

    name = "chat"
    thin = True

    def turns(self, box, work):
        return [{"say": [{"thought": "Simple."}, {"text": f"Hello. {HARD} {DONE}"}]}]


class TenSteps(Scenario):
    """Ten sequential calls of the client's tools for files, search and commands."""

    name = "ten-steps"
    thin = True

    def turns(self, box, work):
        notes, plan = work / "notes.txt", work / "deep" / "plan.md"
        calls = [
            box.write(notes, "alpha\nbeta\n"),
            box.read(notes),
            box.edit(notes, "beta", "gamma"),
            box.read(notes),
            box.search("gamma", work),
            box.list(work),
            box.write(plan, HARD + "todo\n"),
            box.read(plan),
            box.edit(plan, "todo", "ready"),
            box.read(plan),
        ]
        return [thinking(call) for call in calls] + [{"text": f"Ten steps. {DONE}"}]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("notes.txt", "alpha\ngamma\n")
        yield from run.holds("deep/plan.md", HARD + "ready\n")
        answered = [json.dumps(it, ensure_ascii=False) for it in run.answers()]
        if len(answered) != 10:
            yield f"the last request answers {len(answered)} calls, not 10"
        elif "gamma" not in answered[3] or "ready" not in answered[9]:
            yield "the model did not see what was read"
        if run.model != OLD and run.counters["signatures"] < 10:
            yield f"only {run.counters['signatures']} signatures came back"


class Parallel(Scenario):
    """Six concurrent calls, which end in another order."""

    name = "parallel"
    thin = True

    def turns(self, box, work):
        calls = [box.pause(0.6 - at / 10, work / f"p{at}.txt", f"call {at}\n") for at in range(6)]
        return [
            {"say": [{"thought": "All at once."}, *calls]},
            thinking(box.read(work / "p3.txt")),
            {"text": f"Six. {DONE}"},
        ]

    def check(self, run):
        yield from super().check(run)
        for at in range(6):
            yield from run.holds(f"p{at}.txt", f"call {at}\n")
        if len(run.answers()) != 7:
            yield f"the last request answers {len(run.answers())} calls, not 7"
        if run.counters["reordered"]:
            yield "results were not in the order of their calls"


class Failing(Scenario):
    """A failing tool; the model continues."""

    name = "failing-tool"

    def turns(self, box, work):
        return [
            thinking(box.read(work / "missing.txt")),
            thinking(box.write(work / "made.txt", "made\n")),
            {"text": f"It was not there. {DONE}"},
        ]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("made.txt", "made\n")
        if run.answers() and "made" in json.dumps(run.answers()[0]):
            yield "the failure did not reach the model"


class UnknownTool(Scenario):
    """The model calls an unknown tool with arguments; the client reports it, and the model continues."""

    name = "unknown-tool"

    def turns(self, box, work):
        return [
            thinking({"call": "delete_everything", "args": {"path": "/", "force": True}}),
            thinking(box.write(work / "kept.txt", "kept\n")),
            {"text": f"Nothing was deleted. {DONE}"},
        ]

    def check(self, run):
        fault = run.client.faults.get(self.name)
        if fault:
            # SDK loops that fail, although a program could continue.
            if fault not in run.error:
                yield f"it does not say {fault!r} any more but {(run.error or run.text)[:160]!r}"
            return
        yield from run.ended_well()
        # The signature of a call that the client has renamed is invalid.
        yield from run.was_clean(but=run.client.renamed_calls_need)
        yield from run.holds("kept.txt", "kept\n")


class NoArguments(Scenario):
    """A call without arguments, alone and among others."""

    name = "no-arguments"

    def turns(self, box, work):
        bare = {"call": box.nothing()["call"]}
        between = [box.write(work / "a.txt", "a\n"), box.nothing(), box.write(work / "b.txt", "b\n")]
        return [thinking(bare), {"say": between}, {"text": DONE}]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("a.txt", "a\n")
        yield from run.holds("b.txt", "b\n")


class Resume(Scenario):
    """Two processes with different gateways: only echoed state survives."""

    name = "resume"
    thin = True
    prompts = ("Please begin.", "Please go on.")

    def turns(self, box, work):
        return [
            thinking(box.write(work / "one.txt", "one\n")),
            thinking(box.read(work / "one.txt")),
            {"text": "The first half is done."},
            thinking(box.write(work / "two.txt", "two\n")),
            {"text": f"Both halves. {DONE}"},
        ]

    def check(self, run):
        yield from run.ended_well()
        yield from run.was_clean(but=run.client.forgets)
        yield from run.holds("one.txt", "one\n")
        yield from run.holds("two.txt", "two\n")


class Faulty(Scenario):
    """A fault within a session. It is recovered, or the user sees an error."""

    is_faulty = True
    fault = {}
    broken = None

    def turns(self, box, work):
        broken = self.broken or [{"thought": "Hm."}, {"text": CUT}]
        return [
            thinking(box.write(work / "before.txt", "before\n")),
            {"say": broken, "fault": self.fault},
            thinking(box.write(work / "after.txt", "after\n")),
            {"text": f"In spite of all. {DONE}"},
        ]

    def check(self, run):
        yield from run.was_clean(but=run.client.goes_on_by)
        yield from run.holds("before.txt", "before\n")
        if run.is_done():
            yield from run.holds("after.txt", "after\n")
        elif not run.shows_error():
            yield f"the turn ended silently (exit {run.code}, said {run.text[:80]!r})"


class RateLimited(Faulty):
    name = "429"
    thin = True
    fault = {"kind": "status", "code": 429, "retry_after": "1s"}


class Overloaded(Faulty):
    name = "503"
    fault = {"kind": "status", "code": 503}


class MidStream(Faulty):
    name = "error-in-stream"
    fault = {"kind": "mid_stream", "after": 2, "code": 503}


class Cut(Faulty):
    name = "cut-stream"
    fault = {"kind": "cut", "after": 700}


class CutEarly(Faulty):
    name = "reset-first"
    fault = {"kind": "reset", "after": 0}


class Malformed(Faulty):
    name = "malformed-call"
    thin = True
    fault = {"kind": "malformed_call"}


class Unexpected(Faulty):
    name = "unexpected-call"
    fault = {"kind": "unexpected_call"}


class Empty(Faulty):
    name = "empty-turn"
    fault = {"kind": "empty_stop"}


class ThinkingOnly(Faulty):
    name = "thinking-only"
    fault = {"kind": "thinking_only"}


class Safety(Faulty):
    name = "safety"
    fault = {"kind": "safety"}


class OutOfTokens(Faulty):
    """The text before the truncation reaches the user. Some clients do not report the truncation."""

    name = "max-tokens"
    fault = {"kind": "finish", "reason": "MAX_TOKENS"}

    def check(self, run):
        yield from run.was_clean()
        if not (run.is_done() or run.shows_error() or "will be cut" in run.text):
            yield f"the words are lost (exit {run.code}, said {run.text[:80]!r})"


ALL = [
    Chat(),
    TenSteps(),
    Parallel(),
    Failing(),
    UnknownTool(),
    NoArguments(),
    Resume(),
    RateLimited(),
    Overloaded(),
    MidStream(),
    Cut(),
    CutEarly(),
    Malformed(),
    Unexpected(),
    Empty(),
    ThinkingOnly(),
    Safety(),
    OutOfTokens(),
]
