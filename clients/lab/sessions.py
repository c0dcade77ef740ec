"""What coding agents do that SDKs leave to their users."""

import json
import zlib
from pathlib import Path

from agents import Agent
from features import QUICK
from scenarios import DONE, NEW, OLD, Scenario, thinking


class Mcp(Scenario):
    """Forty tools of a server of ours, with the ugliest schemas of the field."""

    name = "mcp"
    agents_only = True
    uses_mcp = True
    thin = True

    def turns(self, box, work):
        circle = box.mcp_call("a8_circles", tree={"name": "a", "next": {"name": "b"}})
        odd = box.mcp_call("a11_names", ref="main", title="T")
        number = box.mcp_call("a15_numbers", level=2, kind="fixed")
        bare = box.mcp_call("a5_no_properties")
        return [
            {"say": [{"thought": "The odd ones."}, circle, odd]},
            {"say": [number, bare]},
            {"text": f"Odd. {DONE}"},
        ]

    def check(self, run):
        yield from run.ended_well()
        # The Gemini door sends a client's schemas as they are, and mends what Gemini refuses.
        yield from run.was_clean(but=["refusals"] if run.client.dialect == "gemini" else [])
        said = json.dumps(run.answers())
        for name in ("a8_circles", "a11_names", "a15_numbers", "a5_no_properties"):
            if f"{name} was given" not in said:
                yield f"{name} did not run"
        odd = [name for name in run.declared() if "odd" in name]
        if len(odd) < run.client.mcp_most:
            yield f"only {len(odd)} of the odd tools reached Gemini"


class Interrupted(Scenario):
    """The user stops the client while a tool runs, and goes on in a new process."""

    name = "interrupted"
    agents_only = True
    interrupted_at = "begun.txt"
    prompts = ("Please begin.", "Please go on.")

    def turns(self, box, work):
        return [
            thinking(box.write(work / "one.txt", "one\n")),
            thinking(box.shell(f"touch {work}/begun.txt && sleep 30 && touch {work}/too-late.txt")),
            thinking(box.write(work / "two.txt", "two\n")),
            {"text": f"Then without it. {DONE}"},
        ]

    def check(self, run):
        yield from run.ended_well()
        yield from run.was_clean(but=run.client.forgets)
        yield from run.holds("one.txt", "one\n")
        yield from run.holds("two.txt", "two\n")
        if (run.work / "too-late.txt").exists():
            yield "the tool was not interrupted"


class Look(Scenario):
    """A tool whose result is a file that is no text; the model gets to see it."""

    agents_only = True
    file = ""
    kind = ""

    def suits(self, client):
        return client.look(Path(self.file)) is not None

    def prepare(self, work):
        (work / self.file).write_bytes(self.content())

    def content(self):
        raise NotImplementedError

    def turns(self, box, work):
        return [
            thinking(box.look(work / self.file)),
            thinking(box.write(work / "seen.txt", "seen\n")),
            {"text": f"I have seen it. {DONE}"},
        ]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("seen.txt", "seen\n")
        if not run.was_asked('"inlineData"', f'"mimeType": "{self.kind}"'):
            if not run.client.hides(self.kind, run.model):
                yield f"no {self.kind} reached the model"


class Image(Look):
    name = "image"
    file, kind = "red.png", "image/png"

    def content(self):
        def chunk(kind, data):
            whole = kind + data
            return len(data).to_bytes(4) + whole + zlib.crc32(whole).to_bytes(4)

        size = 8
        head = size.to_bytes(4) * 2 + bytes([8, 2, 0, 0, 0])
        rows = (b"\0" + b"\xff\0\0" * size) * size
        chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + chunks


class Pdf(Look):
    name = "pdf"
    file, kind = "page.pdf", "application/pdf"

    def content(self):
        words = b"BT /F1 24 Tf 20 100 Td (The lab) Tj ET"
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R >> >> >>",
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(words), words),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        out, places = b"%PDF-1.4\n", []
        for number, body in enumerate(objects, 1):
            places.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        table = b"".join(b"%010d 00000 n \n" % place for place in places)
        end = len(out)
        out += b"xref\n0 6\n0000000000 65535 f \n" + table
        return out + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % end


class Structured(Scenario):
    """An answer of a schema, from a session with tools."""

    name = "structured"
    agents_only = True
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string"}, "steps": {"type": "integer"}},
        "required": ["answer", "steps"],
        "additionalProperties": False,
    }
    value = {"answer": DONE, "steps": 2}

    def script(self, box, stage):
        _, self_says = box.structured(stage, self.schema)
        said = self_says(self.value)
        last = {"say": [said]} if "call" in said else said
        turns = [thinking(box.write(stage.work / "made.txt", "made\n")), last, {"text": DONE, "times": 0}]
        return {"any_order": True, "turn": turns}

    def suits(self, client):
        return type(client).structured is not Agent.structured

    def arguments(self, client, stage):
        options, _ = client.structured(stage, self.schema)
        return options

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("made.txt", "made\n")


class WebSearch(Scenario):
    """The client searches by a request of its own, which Gemini answers from Google."""

    name = "web-search"
    agents_only = True

    def suits(self, client):
        return client.browse("") is not None

    def environment(self, client):
        return {"ENABLE_TOOL_SEARCH": "false"}

    def script(self, box, stage):
        page = {"uri": "https://example.com/lab", "title": "The lab"}
        found = {
            "webSearchQueries": ["toolgate lab"],
            "groundingChunks": [{"web": page}],
            "groundingSupports": [
                {"segment": {"startIndex": 0, "endIndex": 16, "text": "The lab is open."}, "groundingChunkIndices": [0]}
            ],
        }
        turns = [
            {"expect": {"tools": False}, "text": "The lab is open.", "candidate": {"groundingMetadata": found}},
            {"expect": {"tools": True}, **thinking(box.browse("toolgate lab"))},
            {"expect": {"tools": True}, "text": f"It is open. {DONE}"},
        ]
        return {"any_order": True, "turn": turns}

    def check(self, run):
        yield from super().check(run)
        if not run.was_asked('"googleSearch"'):
            yield "nobody searched"
        if "The lab is open" not in json.dumps(run.answers()):
            yield "what was found did not reach the model"


class SubAgent(Scenario):
    """The model gives work to another one, which has tools of its own."""

    name = "sub-agent"
    agents_only = True

    def suits(self, client):
        return client.delegate("") is not None

    def turns(self, box, work):
        return [
            thinking(box.delegate("Please write the file of the sub-agent.")),
            thinking(box.write(work / "sub.txt", "sub\n")),
            {"text": "The sub-agent has written it."},
            thinking(box.read(work / "sub.txt")),
            {"text": f"Both of us. {DONE}"},
        ]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("sub.txt", "sub\n")
        if "The sub-agent has written it" not in json.dumps(run.answers()):
            yield "the sub-agent's words did not reach the model"


class Named(Scenario):
    """Tools that are asked for by name: R148 to R158."""

    name = "named-tools"
    agents_only = True

    def suits(self, client):
        return bool(client.named(Path("work")))

    def environment(self, client):
        return {"ENABLE_TOOL_SEARCH": "false", "CLAUDE_CODE_ENABLE_TASKS": "0"}

    def script(self, box, stage):
        turns = [{"expect": {"tools": True}, **thinking(it)} for it in box.named(stage.work)]
        turns.append({"expect": {"tools": True}, "text": f"Every one. {DONE}"})
        # What the tools themselves ask.
        turns.append({"expect": {"tools": False}, "text": "Nothing was found.", "times": 0})
        return {"any_order": True, "turn": turns}

    def check(self, run):
        yield from super().check(run)
        called = [it["call"] for it in run.client.named(run.work)]
        if missing := set(called) - run.declared():
            yield f"not declared: {sorted(missing)}"
        answers = run.answers()
        if [it["name"] for it in answers] != called:
            yield f"answered: {[it['name'] for it in answers]}"
        for answer in answers:
            said = json.dumps(answer)
            if "No such tool" in said or "InputValidationError" in said:
                yield f"{answer['name']}: {said[:160]}"


class Counted(Scenario):
    """The user asks how full the context is."""

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
    """The session is summed up, and goes on from the summary."""

    name = "compaction"
    agents_only = True

    def suits(self, client):
        return client.compacts_by is not None

    def prompts_for(self, client):
        return ("Please begin.", client.compacts_by, "Please go on.")

    def script(self, box, stage):
        work = stage.work
        summary = {"text": "<summary>One file was written: one.txt.</summary>"}
        turns = [
            thinking(box.write(work / "one.txt", "one\n")),
            {"text": "The first half is done."},
            summary,
            thinking(box.write(work / "two.txt", "two\n")),
            {"text": f"Both halves. {DONE}"},
        ]
        return {"any_order": True, "turn": turns}

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("two.txt", "two\n")
        if not run.was_asked("One file was written: one.txt."):
            yield "the summary is lost"


class Switched(Scenario):
    """The session goes on with another model, to which the signatures of the first mean nothing."""

    name = "model-switch"
    agents_only = True
    prompts = ("Please begin.", "Please go on.")

    def model_at(self, at, model):
        return model if at == 0 else NEW if model == OLD else OLD

    def turns(self, box, work):
        return [
            thinking(box.write(work / "one.txt", "one\n")),
            {"text": "The first half is done."},
            thinking(box.write(work / "two.txt", "two\n")),
            thinking(box.read(work / "two.txt")),
            {"text": f"Both halves. {DONE}"},
        ]

    def check(self, run):
        yield from run.ended_well()
        yield from run.was_clean(but=run.client.forgets)
        yield from run.holds("two.txt", "two\n")


class Silence(Scenario):
    """The model thinks for long before its first word, and again in the middle of a stream."""

    name = "silence"
    agents_only = True
    server_options = ("--config", str(QUICK))

    def turns(self, box, work):
        slow = thinking(box.write(work / "late.txt", "late\n"))
        return [
            {**slow, "delay_ms": 2500},
            {
                "say": [{"thought": "Hm."}, {"text": f"At last. {DONE}"}],
                "fault": {"kind": "stall", "after": 1, "ms": 2500},
            },
        ]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("late.txt", "late\n")


ALL = [
    Interrupted(),
    Switched(),
    Compacted(),
    Counted(),
    Mcp(),
    Named(),
    SubAgent(),
    WebSearch(),
    Structured(),
    Image(),
    Pdf(),
    Silence(),
]
