"""`python3 clients/lab/state.py --binary TOOLGATE`: the official SDKs with state stored by the gateway."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grammar
import install
import stage

MODEL = "gemini-3.6-flash"
DONE = "All steps are taken."
PROGRAMS = install.ROOT / "clients" / "programs"
ARTEFACTS = install.FOLDER / "artefacts"


def says(words, text, **more):
    return {"expect": {"contains": words}, "text": text, **more}


def weather(words):
    call = {"call": "get_weather", "args": {"city": "Oslo"}}
    return {"expect": {"contains": words}, "say": [{"thought": "I shall look."}, call]}


def told(text):
    return {"expect": {"response": "get_weather"}, "text": text}


# Requests of openai_state, in order.
STATE = [
    says("My name is Ada.", "Hello Ada."),
    says("What is my name?", "Ada."),
    says("Say it backwards.", "adA."),
    weather("Weather in Oslo?"),
    told("It is -3."),
    weather("Weather at home?"),
    told("It is 4 at home."),
    says("Tell a story.", "Once upon a time."),
    says("Take your time.", "Later."),
    says("Take your time again.", "Later again.", pace_ms=20),
    says("Take for ever.", "Never.", fault={"kind": "stall"}),
]
STEPS = [{"say": [{"thought": f"Step {n}."}, {"call": "step", "args": {"n": n}}]} for n in range(10)]
THREAD = STEPS + [{"text": DONE}]


def words(request):
    """All texts of a request to the model."""
    contents = request["body"]["contents"]
    return [part["text"] for content in contents for part in content["parts"] if part.get("text")]


def check_state(place):
    """Checks the history of a branch and of a conversation."""
    asked = [words(request) for request in place.window("requests")]
    branch = next((it for it in asked if it[-1] == "Say it backwards."), [])
    if branch != ["My name is Ada.", "Hello Ada.", "Say it backwards."]:
        yield f"the branch is {branch}"
    home = next((it for it in asked if it[-1] == "Weather at home?"), [])
    if home != ["I live in Oslo.", "Weather at home?"]:
        yield f"the conversation is {home}"


def check_thread(place):
    """Checks that every request sends only its new message."""
    bodies = [it.body() for it in place.relay.exchanges() if it.path.startswith("/v1/messages")]
    kinds = [(body.get("thread") or {}).get("type") for body in bodies]
    if kinds != ["create"] + ["continue"] * 10:
        yield f"the threads are {kinds}"
    if any(len(body["messages"]) != 1 for body in bodies):
        yield "a request holds more than what is new"
    last = place.window("requests")[-1]["body"]
    if len(last["contents"]) != 21 or "in order" not in str(last.get("systemInstruction")):
        yield f"the model saw {len(last['contents'])} contents"


RUNS = [
    ("openai_state.py", "py", STATE, check_state, "done", ()),
    ("openai_state.mjs", "js", STATE, check_state, "done", ()),
    ("anthropic_threads.py", "py", THREAD, check_thread, DONE, ("stream=no",)),
    ("anthropic_threads.py", "py", THREAD, check_thread, DONE, ("stream=yes",)),
    ("anthropic_threads.mjs", "js", THREAD, check_thread, DONE, ("stream=no",)),
    ("anthropic_threads.mjs", "js", THREAD, check_thread, DONE, ("stream=yes",)),
]


def played(binary, file, folder, turns, check, wanted, options):
    place = stage.Stage(binary, options=("--store", "memory"))
    with place:
        place.begin({"turn": turns})
        modules = install.FOLDER / folder / "node_modules"
        runner = install.FOLDER / folder / "bin" / "python" if folder == "py" else install.node()
        command = [str(runner), str(PROGRAMS / file), place.url, MODEL, "Take ten steps.", *options]
        quiet = {"LAB_MODULES": str(modules), "PYTHONDONTWRITEBYTECODE": "1"}
        ended = place.run(command, quiet)
        said = ended.lines()[-1] if ended.lines() else {}
        faults = []
        if ended.code != 0 or said.get("text") != wanted:
            faults.append(said.get("error") or ended.err[-600:] or f"it said {said}")
        else:
            faults += check(place)
            counters = place.window("counters")
            names = ("refusals", "unexpected", "placeholders", "doubled", "mismatches", "missing_ids")
            faults += [f"{counters[name]} {name}" for name in names if counters[name]]
            checker = str(Path(binary).parent / "examples" / "grammar")
            faults += grammar.faults(place.relay.exchanges(), checker)
        if faults:
            place.keep(ARTEFACTS / f"state-{file}-{'-'.join(options)}")
    place.remove()
    return ended.took, faults


def main():
    parser = argparse.ArgumentParser(prog="state.py")
    parser.add_argument("--binary", default=str(install.ROOT / "target" / "debug" / "toolgate"))
    parser.add_argument("only", nargs="*", help="these programs only")
    chosen = parser.parse_args()
    for folder in ("py", "node22", "js", "schemas"):
        install.ensure(folder)
    why = stage.loopback_only()
    if why:
        print(f"note: the clients can reach the network, because this machine keeps them in it: {why}")
    failed = 0
    for file, *rest in RUNS:
        if chosen.only and file not in chosen.only:
            continue
        took, faults = played(chosen.binary, file, *rest)
        name = " ".join([file, *rest[-1]])
        print(f"{name:<36} {took:5.1f} s  {faults[0] if faults else 'passed'}", flush=True)
        failed += bool(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
