"""`python3 clients/lab/launch.py --binary TOOLGATE`: agents on the built-in simulator, as `toolgate run` starts them.

Each agent is given tasks without a key; the demo model carries them out with the agent's own tools.
"""

import argparse
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import further
import install
import stage

MODEL = "gemini-3.6-flash"
ARTEFACTS = install.FOLDER / "artefacts"
CODE = 'def add(a, b):\n    """Add two numbers."""\n    return a - b\n\n\ndef double(a):\n    return a * 2\n'
TEST = 'from calc import add, double\n\nassert add(2, 3) == 5\nassert double(4) == 8\nprint("both are right")\n'
README = "# Calc\n\nA small calculator.\n"


class Task:
    """A prompt and its outcome."""

    def __init__(self, name, prompt, check):
        self.name, self.prompt, self.check = name, prompt, check


def fixed(run):
    if "return a + b" not in (run.work / "calc.py").read_text():
        yield "calc.py is not fixed"
    if "both are right" not in run.ended.out:
        yield "the test's output is not in the answer"


def listed(run):
    if "test_calc.py" not in run.ended.out:
        yield "the folder's files are not in the answer"


def documented(run):
    text = (run.work / "README.md").read_text()
    if not text.startswith("# Calc\n") or "`add`, `double`" not in text or "A small calculator." not in text:
        yield f"README.md holds {text!r}"
    if 'return a - b' not in (run.work / "calc.py").read_text():
        yield "a review changed the code"


TASKS = [
    Task("fix", "Read calc.py and fix the bug", fixed),
    Task("command", "Run ls", listed),
    Task("readme", "review the code carefully and update readme", documented),
]


class Claude:
    name, folder = "claude", "claude"
    path = "@anthropic-ai/claude-code-linux-x64/claude"
    arguments = ["--output-format", "text", "--allowedTools", "Bash,Read,Edit,Write"]

    def program(self, place):
        return str(place / "node_modules" / self.path)

    def command(self, run, prompt):
        return [run.binary, "run", "claude", "--program", self.program(run.place), "--", "-p", prompt, *self.arguments]

    def environment(self, run):
        return {"IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def check(self, run):
        """The request names Gemini's model, and the program knows it."""
        if "doesn't recognize the model" in run.ended.err:
            yield f"Claude Code does not know the model: {run.ended.err[:300]}"
        if "gemini-3.1-pro-preview (opus)" not in run.ended.err:
            yield f"the models are not named: {run.ended.err[:300]}"


class Codex:
    name, folder = "codex", "codex"
    path = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    arguments = ["--skip-git-repo-check", "-c", 'approval_policy="never"', "-c", 'sandbox_mode="danger-full-access"']

    def program(self, place):
        return str(place / "node_modules" / self.path)

    def command(self, run, prompt):
        return [run.binary, "run", "codex", "--program", self.program(run.place), "--", "exec", *self.arguments, prompt]

    def environment(self, run):
        return {"CODEX_HOME": str(run.stage.home / ".codex")}

    def prepare(self, run):
        (run.stage.home / ".codex").mkdir()

    def check(self, run):
        if "Model metadata" in run.ended.err:
            yield "Codex has no description of the model"
        if run.task.name == "fix" and "apply_patch" not in run.ended.err and "apply patch" not in run.ended.err:
            yield "the change was not made with apply_patch"


class Gemini:
    name, folder = "gemini", "gemini"
    arguments = ["--approval-mode", "yolo", "-m", MODEL]

    def command(self, run, prompt):
        script = run.stage.home / "gemini"
        bundle = run.place / "node_modules" / "@google/gemini-cli/bundle/gemini.js"
        script.write_text(f'#!/bin/sh\nexec "{install.node()}" "{bundle}" "$@"\n')
        script.chmod(0o755)
        return [run.binary, "run", "gemini", "--program", str(script), "--", "-p", prompt, *self.arguments]

    def environment(self, run):
        return {"GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def check(self, run):
        left = [it.name for it in run.stage.folder.glob("toolgate-run-*")]
        if left:
            yield f"left over: {left}"


class OpenCode:
    """Set up by `toolgate setup`, on a gateway that runs."""

    name, folder = "opencode", "opencode"

    def prepare(self, run):
        folder = run.stage.folder
        run.gateway = stage.Server(run.binary, ["serve", "--listen", "127.0.0.1:0"], folder / "gateway.log", folder)
        run.stage.url = f"http://127.0.0.1:{run.gateway.port}"
        further.settings(run.stage, "opencode", MODEL)

    def command(self, run, prompt):
        binary = run.place / "node_modules" / "opencode-linux-x64/bin/opencode"
        return [str(binary), "run", "-m", f"toolgate/{MODEL}", prompt]

    def environment(self, run):
        allowed = json.dumps({"edit": "allow", "bash": "allow"})
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_PERMISSION": allowed}

    def check(self, run):
        return []


AGENTS = [Claude(), Codex(), Gemini(), OpenCode()]


class Run:
    """An agent with a task."""

    gateway = None

    def __init__(self, agent, task, binary):
        self.agent, self.task, self.binary = agent, task, binary

    def play(self):
        self.place = install.ensure(self.agent.folder)
        self.stage = stage.Stage(self.binary)
        self.work = self.stage.work
        for name, text in (("calc.py", CODE), ("test_calc.py", TEST), ("README.md", README)):
            (self.work / name).write_text(text)
        try:
            if hasattr(self.agent, "prepare"):
                self.agent.prepare(self)
            command = self.agent.command(self, self.task.prompt)
            environment = {"TOOLGATE_LISTEN": "127.0.0.1:0", **self.agent.environment(self)}
            self.ended = self.stage.run(command, environment, 180)
            found = list(self.faults())
        finally:
            if self.gateway:
                self.gateway.stop()
        if found:
            place = ARTEFACTS / f"launch-{self.agent.name}-{self.task.name}"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            (place / "output.txt").write_text(self.stage.output)
        self.stage.remove()
        print(f"{self.agent.name:<10} {self.task.name:<10} {self.ended.took:5.1f} s  {found[0] if found else 'passed'}", flush=True)
        return not found

    def faults(self):
        if self.ended.code != 0:
            yield f"exit {self.ended.code}: {self.ended.err[-300:]}"
        if "MALFORMED_FUNCTION_CALL" in self.ended.out + self.ended.err:
            yield "a call was malformed"
        if self.gateway is None and "BUILT-IN SIMULATOR" not in self.ended.err:
            yield "it does not say what it runs on"
        yield from self.task.check(self)
        yield from self.agent.check(self)


def main():
    parser = argparse.ArgumentParser(prog="clients/lab/launch.py")
    parser.add_argument("--binary", default=str(install.TARGET / "debug" / "toolgate"))
    parser.add_argument("names", nargs="*", metavar="AGENT")
    options = parser.parse_args()
    agents = [it for it in AGENTS if not options.names or it.name in options.names]
    installer = install.Installer(["node22", *(it.folder for it in agents)])
    installer.end()
    why = stage.loopback_only()
    if why:
        print(f"note: the clients can reach the network, because this machine keeps them in it: {why}")
    runs = [Run(agent, task, options.binary) for agent in agents for task in TASKS]
    with ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(Run.play, runs))
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
