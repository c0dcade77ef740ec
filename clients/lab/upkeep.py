"""Long sessions: token counts, summaries, and slow answers."""

import install
from agent import PATIENCE_MS
from features import QUICK
from scenarios import DONE, Scenario, thinking

PATIENT = install.ROOT / "clients" / "lab" / "patient.toml"


class Counted(Scenario):
    """The user asks for the usage of the context."""

    name = "context"
    agents_only = True
    ends_in_words = False

    def suits(self, client):
        return client.counts_by is not None

    def prompts_for(self, client):
        return (client.counts_by,)

    def turns(self, box, work):
        return []

    def check(self, run):
        if run.error or run.code != 0:
            yield f"exit {run.code}: {run.error or run.text}"
        counted = [it for it in run.exchanges if "/count_tokens" in it.path]
        wrong = [it.status for it in counted if it.status != 200]
        if not counted or wrong:
            yield f"{len(counted)} counts, of which failed: {wrong}"
        for request in run.requests:
            if request["refusal"]:
                yield f"refused: {request['refusal'][:200]}"


class Compacted(Scenario):
    """The session is summarized, and continues from the summary."""

    name = "compaction"
    agents_only = True
    thin = True
    summary = "One file was read: long.txt."
    wish = "compaction"

    def suits(self, client):
        return client.compacts_by is not None or super().suits(client)

    def prepare(self, work):
        lines = (f"Line {at} of a file that fills the memory of whoever reads it.\n" for at in range(700))
        (work / "long.txt").write_text("".join(lines))

    def prompts_for(self, client):
        if client.compacts_by:
            return ("Please begin.", client.compacts_by, "Please go on.")
        return ("Please begin.", "Please go on.") if client.compacts_between else ("Please begin.",)

    def script(self, box, stage):
        work = stage.work
        # Requests beside the session have no tools; Claude Code's request for a summary may have some.
        expect = {} if box.compacts_by else {"expect": {"tools": True}}
        begun = [{"text": "The first half is done."}] if len(self.prompts_for(box)) > 1 else []
        turns = [
            # A client that summarizes by itself uses its own text.
            *({"expect": {"contains": words}, "text": f"<state_snapshot>{self.summary}</state_snapshot>", "times": 0} for words in box.sums_up),
            {**expect, **thinking(box.read(work / "long.txt"))},
            *({**expect, **it} for it in begun),
            *([{"text": f"<summary>{self.summary}</summary>"}] if box.compacts_by else []),
            {**expect, **thinking(box.write(work / "two.txt", "two\n"))},
            {**expect, "text": f"Both halves. {DONE}"},
            {"expect": {"tools": False}, "text": "A lab session", "times": 0},
        ]
        return {"any_order": True, "turn": turns}

    def check(self, run):
        yield from run.ended_well()
        yield from run.was_clean(but=run.client.forgets)
        yield from run.holds("two.txt", "two\n")
        last = run.requests[-1]["body"]
        if self.summary not in str(last):
            yield "the summary is lost"
        if "Line 300 of a file" in str(last):
            yield "what was summed up is still there"


class Silence(Scenario):
    """The model pauses for longer than the keep-alive interval and a client's short timeout: before the
    first text, and within a stream."""

    name = "silence"
    agents_only = True
    server_options = ("--config", str(QUICK))

    def suits(self, client):
        return True

    def wish_for(self, client):
        return "impatience" if "impatience" in client.can else None

    def milliseconds(self, client):
        return PATIENCE_MS + 4000 if self.wish_for(client) else 4000

    def turns(self, box, work):
        slow = thinking(box.write(work / "late.txt", "late\n"))
        return [
            {**slow, "delay_ms": self.milliseconds(box)},
            {
                "say": [{"thought": "Hm."}, {"text": f"At last. {DONE}"}],
                "fault": {"kind": "stall", "after": 1, "ms": self.milliseconds(box)},
            },
        ]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("late.txt", "late\n")
        asked = [it for it in run.requests if it["body"].get("tools")]
        if len(asked) != 2 and not self.is_own_fault(run):
            yield f"it lost patience, and asked {len(asked)} times"

    def is_own_fault(self, run):
        return False


class LongSilence(Silence):
    """A pause longer than the agents' default timeout of five minutes, with default keep-alives."""

    name = "long-silence"
    server_options = ("--config", str(PATIENT))
    seconds = 900
    is_idle = True

    def suits(self, client):
        # Gemini's dialect has no keep-alive.
        return client.dialect != "gemini"

    def wish_for(self, client):
        return None

    def milliseconds(self, client):
        return 330_000

    def turns(self, box, work):
        first, then = super().turns(box, work)
        again = [] if box.counts_pings else [{"text": f"At last. {DONE}"}]
        return [{**first, "delay_ms": 0}, then, *again]

    def is_own_fault(self, run):
        """Whether it left a stream with keep-alives, and retries it by itself."""
        left = [it for it in run.exchanges if it.answer and not it.answer["whole"]]
        return not run.client.counts_pings and any(it.text().count("event: ping") > 15 for it in left)


ALL = [Counted(), Compacted(), Silence(), LongSilence()]
