"""SDK features besides tools: each is an option of our programs, and a scenario."""

import json

import install
from run import MCP
from scenarios import DONE, NEW, Scenario, thinking

QUICK = install.ROOT / "clients" / "lab" / "quick.toml"


class Feature(Scenario):
    """A scenario for the programs that have the option of its name."""

    programs_only = True
    # Options of the program, in addition to the usual ones.
    options = ()

    # Refusals that Gemini clients may get: their requests are repaired only after a refusal.
    gemini_refuses = False
    but = ()

    def suits(self, client):
        return self.name in client.features

    def check(self, run):
        fault = run.client.faults.get(self.name)
        if fault:
            yield from own_fault(run, fault)
            return
        yield from self.differences(run)

    def differences(self, run):
        mends = self.gemini_refuses and run.client.dialect == "gemini"
        yield from run.ended_well()
        yield from run.was_clean(but=[*self.but, *(["refusals"] if mends else [])])


class Forced(Feature):
    """The first call is forced."""

    name = "forced-tool"
    options = ("force=list_files",)

    def turns(self, box, work):
        return [{"say": [box.nothing()]}, thinking(box.write(work / "a.txt", "a\n")), {"text": DONE}]

    def differences(self, run):
        yield from super().differences(run)
        yield from run.holds("a.txt", "a\n")
        asked = [calling(request) for request in run.requests if asks(request)]
        wanted = {"mode": "ANY", "names": ["list_files"]}
        if asked[:1] != [wanted]:
            yield f"the first call was not forced but {asked[:1]}"
        if any(it["mode"] == "ANY" for it in asked[1:]):
            yield "later calls were forced too"


class NoTools(Feature):
    """Text only."""

    name = "no-tools"
    options = ("tools=no",)

    def script(self, box, work):
        return {"turn": [{"say": [{"thought": "Easy."}, {"text": f"No tools. {DONE}"}]}]}

    def differences(self, run):
        yield from super().differences(run)
        if any(declared(request) for request in run.requests):
            yield "functions came from nowhere"


class Structured(Feature):
    """An answer by a schema, after tools. 2.5 does not support both: the gateway declares a function for the answer."""

    name = "structured"
    gemini_refuses = True
    options = ("format=json",)
    report = {"files": 3, "done": DONE}

    def turns(self, box, work):
        write = thinking(box.write(work / "a.txt", "a\n"))
        call = {"call": "final_answer", "args": self.report}
        return [
            write,
            {"expect": {"tool": "final_answer"}, "say": [call]},
            # Vercel's provider for Google handles 2.5 the same way, with a function of its own.
            {"expect": {"tool": "json"}, "say": [{**call, "call": "json"}]},
            {"text": json.dumps(self.report)},
        ]

    def differences(self, run):
        yield from super().differences(run)
        yield from run.holds("a.txt", "a\n")
        try:
            said = json.loads(run.text)
        except ValueError:
            yield f"it said {run.text[:80]!r}, which is no JSON"
            return
        if said != self.report:
            yield f"it said {said}"


class Search(Feature):
    """The vendor's web search together with tools; the answer has citations."""

    name = "web-search"
    options = ("search=yes",)
    # 2.5 supports search or functions, not both.
    models = (NEW,)

    def turns(self, box, work):
        text = f"It is known. {DONE}"
        found = {
            "webSearchQueries": ["is it known"],
            "groundingChunks": [{"web": {"uri": "https://example.com/known", "title": "example.com"}}],
            "groundingSupports": [
                {"segment": {"endIndex": 12, "text": "It is known."}, "groundingChunkIndices": [0]}
            ],
        }
        write = thinking(box.write(work / "a.txt", "a\n"))
        return [write, {"text": text, "candidate": {"groundingMetadata": found}}]

    def differences(self, run):
        yield from super().differences(run)
        yield from run.holds("a.txt", "a\n")
        tools = [tool for request in run.requests for tool in (request["body"] or {}).get("tools", [])]
        if not any("googleSearch" in tool or "google_search" in tool for tool in tools):
            yield "Gemini was not told to search"
        if run.client.cites and "cited]" not in run.text:
            yield f"nothing is cited in {run.text!r}"


class Media(Feature):
    """Results with an image and a PDF."""

    name = "media-results"
    gemini_refuses = True
    options = ("media=yes",)

    def turns(self, box, work):
        both = [{"call": "take_photo"}, {"call": "get_paper"}]
        return [{"say": [{"thought": "Both."}, *both]}, thinking({"call": "take_photo"}), {"text": DONE}]

    def differences(self, run):
        yield from super().differences(run)
        seen = [mime for request in run.requests[-1:] for mime in media(request["body"])]
        if sorted(seen) != ["application/pdf", "image/png", "image/png"]:
            yield f"Gemini saw {seen}"


class OddTools(Feature):
    """Forty tools with difficult schemas from the field, on an MCP server of our own."""

    name = "odd-tools"
    gemini_refuses = True
    uses_mcp = True

    def turns(self, box, work):
        circle = {"call": box.odd("a8_circles"), "args": {"tree": {"name": "a", "next": {"name": "b"}}}}
        names = {"call": box.odd("a11_names"), "args": {"ref": "main", "title": "T", "with space": "x"}}
        number = {"call": box.odd("a15_numbers"), "args": {"level": 2, "kind": "fixed"}}
        return [
            {"say": [{"thought": "The odd ones."}, circle, names]},
            {"say": [number, {"call": box.odd("a5_no_properties")}]},
            {"text": f"Odd. {DONE}"},
        ]

    def differences(self, run):
        yield from super().differences(run)
        said = json.dumps(run.answers())
        for name in ("a8_circles", "a11_names", "a15_numbers", "a5_no_properties"):
            if f"{name} was given" not in said:
                yield f"{name} did not run"
        if '\\"level\\": 2' not in said.replace("\\\\", "\\") and '"level": 2' not in said:
            yield "a number did not arrive as one"
        names = {name for request in run.requests for name in declared(request)}
        if len(names) < run.client.mcp_most:
            yield f"only {len(names)} of the odd tools reached Gemini"


class Switch(Feature):
    """A change of model within the conversation, to which the first model's signatures are invalid."""

    name = "model-switch"
    gemini_refuses = True
    # Google documents the placeholder for calls of another model.
    but = ("placeholders",)
    models = (NEW,)
    options = ("switch=gemini-3.8-flash",)

    def turns(self, box, work):
        calls = [box.write(work / f"{at}.txt", f"{at}\n") for at in range(4)]
        return [thinking(call) for call in calls] + [{"text": DONE}]

    def differences(self, run):
        yield from super().differences(run)
        for at in range(4):
            yield from run.holds(f"{at}.txt", f"{at}\n")
        asked = [request["path"] for request in run.requests if asks(request)]
        models = list(dict.fromkeys(path.rsplit("/", 1)[-1].split(":")[0] for path in asked))
        if models != [NEW, "gemini-3.8-flash"]:
            yield f"the models were {models}"


class Silence(Feature):
    """The model pauses for longer than the keep-alive interval, before the first text and between texts."""

    name = "silence"
    server_options = ("--config", str(QUICK))

    def turns(self, box, work):
        slow = thinking(box.write(work / "a.txt", "a\n"))
        return [
            {**slow, "delay_ms": 2500},
            {"say": [{"thought": "Hm."}, {"text": f"At last. {DONE}"}], "fault": {"kind": "stall", "after": 1, "ms": 2500}},
        ]

    def differences(self, run):
        yield from super().differences(run)
        yield from run.holds("a.txt", "a\n")


def own_fault(run, fault):
    """The SDK refuses by itself, without a request."""
    if fault not in run.error:
        yield f"it does not say {fault!r} any more but {(run.error or run.text)[:160]!r}"
    if any(asks(request) for request in run.requests):
        yield "it is not the client's own fault: Gemini was asked"


def asks(request):
    return "enerateContent" in request["path"]


def calling(request):
    """Calls that a request forces, in either spelling."""
    config = (request["body"] or {}).get("toolConfig") or {}
    found = config.get("functionCallingConfig") or {}
    names = found.get("allowedFunctionNames") or found.get("allowed_function_names")
    return {"mode": found.get("mode"), "names": names}


def declared(request):
    tools = (request["body"] or {}).get("tools") or []
    both = [tool.get("functionDeclarations") or tool.get("function_declarations") or [] for tool in tools]
    return [function["name"] for functions in both for function in functions]


def media(value):
    """MIME types of all media within results and beside them."""
    if isinstance(value, list):
        return [mime for it in value for mime in media(it)]
    if not isinstance(value, dict):
        return []
    inline = value.get("inlineData") or value.get("inline_data")
    own = [inline.get("mimeType") or inline.get("mime_type")] if isinstance(inline, dict) else []
    return own + [mime for it in value.values() for mime in media(it)]


ALL = [Forced(), NoTools(), Structured(), Search(), Media(), OddTools(), Switch(), Silence()]
