"""Scenarios of coding agents that SDKs do not have."""

import json
import os
import signal
import zlib
from pathlib import Path

from agent import Agent
from scenarios import DONE, NEW, OLD, Scenario, thinking


class Mcp(Scenario):
    """Forty tools of our MCP server, with difficult schemas from the field."""

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
            *(thinking(it) for it in box.finds("odd", "a8_circles", "a11_names", "a15_numbers", "a5_no_properties")),
            {"say": [{"thought": "The odd ones."}, circle, odd]},
            {"say": [number, bare]},
            {"text": f"Odd. {DONE}"},
        ]

    def check(self, run):
        yield from run.ended_well()
        # Pass-through forwards schemas unchanged, and repairs them after a refusal.
        yield from run.was_clean(but=["refusals"] if run.client.dialect == "gemini" else [])
        said = json.dumps(run.answers())
        for name in ("a8_circles", "a11_names", "a15_numbers", "a5_no_properties"):
            if f"{name} was given" not in said:
                yield f"{name} did not run"
        odd = [name for name in run.declared() if "odd" in name]
        if len(odd) < run.client.mcp_most:
            yield f"only {len(odd)} of the odd tools reached Gemini"


class Interrupted(Scenario):
    """The user interrupts the client while a tool runs, and continues in a new process."""

    name = "interrupted"
    agents_only = True
    interrupted_at = "begun.txt"
    prompts = ("Please begin.", "Please go on.")

    def turns(self, box, work):
        return [
            thinking(box.write(work / "one.txt", "one\n")),
            thinking(box.shell(f"echo $$ > {work}/begun.txt && exec sleep 60")),
            thinking(box.write(work / "two.txt", "two\n")),
            {"text": f"Then without it. {DONE}"},
        ]

    def check(self, run):
        yield from run.ended_well()
        yield from run.was_clean(but=run.client.forgets)
        yield from run.holds("one.txt", "one\n")
        yield from run.holds("two.txt", "two\n")
        # Not every client ends its child processes; the lab does.
        end((run.work / "begun.txt").read_text())


def end(pid):
    try:
        os.kill(int(pid), signal.SIGKILL)
    except (ProcessLookupError, ValueError):
        pass


class Look(Scenario):
    """A tool whose result is a binary file, which is sent to the model."""

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
    """An answer by a schema, in a session with tools."""

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
    """The client searches with a separate request, which Gemini answers by web search."""

    name = "web-search"
    agents_only = True

    def suits(self, client):
        return client.browse("") is not None

    def environment(self, client, stage):
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
    """The model starts a sub-agent with tools of its own."""

    name = "sub-agent"
    agents_only = True
    thin = True
    prompt = "Please write the file of the sub-agent."
    words = "The sub-agent has written it."

    def suits(self, client):
        return client.delegate("") is not None

    def turns(self, box, work):
        others = [thinking(box.write(work / "sub.txt", "sub\n")), box.hand_back(self.words)]
        first, then = ({**turn, "expect": {"tools": True, **expect}} for turn, expect in zip(others, box.others_are(self.prompt)))
        return [
            first,
            *([then] if box.works_beside else []),
            *(thinking(it) for it in box.finds("spawn", "agent")),
            thinking(box.delegate(self.prompt)),
            *([] if box.works_beside else [then]),
            *(thinking(it) for it in box.awaits(work / "sub.txt")),
            thinking(box.read(work / "sub.txt")),
            {"text": f"Both of us. {DONE}"},
        ]

    def check(self, run):
        yield from super().check(run)
        yield from run.holds("sub.txt", "sub\n")
        if not run.was_asked("functionResponse", self.words):
            yield "the sub-agent's words did not reach the model"


class Switched(Scenario):
    """The session continues with another model, to which the first model's signatures are invalid."""

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


class ToolsAway(Scenario):
    """All tools are disabled."""

    name = "tools-away"
    agents_only = True
    wish = "no-tools"

    def script(self, box, stage):
        return {"turn": [{"text": f"Words alone. {DONE}", "times": 0}]}

    def check(self, run):
        yield from run.ended_well()
        # Gemini CLI sends an empty list of functions, which Gemini refuses and the gateway repairs.
        yield from run.was_clean(but=["refusals"] if run.client.dialect == "gemini" else [])
        if run.declared():
            yield f"declared all the same: {sorted(run.declared())}"


ALL = [
    Interrupted(),
    Switched(),
    Mcp(),
    SubAgent(),
    WebSearch(),
    Structured(),
    ToolsAway(),
    Image(),
    Pdf(),
]
