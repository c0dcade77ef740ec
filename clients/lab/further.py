"""Further coding agents, with the settings that `toolgate setup` prints, and agent frameworks."""

import json
import shlex
import subprocess

import install
from agent import Agent, call
from programs import Program
from scenarios import DONE, Scenario, thinking
from stage import KEY


# One of each client that installs quickly, over all dialects; `--all` runs the rest.
SELECTED = (
    "qwen-code-chat",
    "pi-anthropic",
    "continue-chat",
    "llm",
    "pydantic-ai-gemini",
    "google-adk",
    "agno-responses",
    "openai-agents-js-responses-whole",
    "google-adk-js-whole",
    "mastra-anthropic",
)


def selected(name):
    return ("session",) if name in SELECTED else ()


def settings(stage, name, model):
    """Writes the files that `toolgate setup` prints for a client; returns its variables and command."""
    command = [stage.binary, "setup", name, "--gateway", stage.url, "--model", model, "--key", KEY, "--json"]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for path, content in printed["files"].items():
        place = stage.home / path.removeprefix("~/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    variables = {name: "".join(shlex.split(value)) for name, value in printed["variables"].items()}
    return variables, shlex.split(printed["command"].replace("~", str(stage.home)))


class Further(Agent):
    """An agent that is set up as `toolgate setup` says."""

    is_further = True

    def __init__(self, name, dialect, setup, forgets=()):
        self.name, self.dialect, self.setup, self.forgets = name, dialect, setup, forgets
        self.thin = selected(name)

    def prepare(self, stage, model):
        self.variables, self.words = settings(stage, self.setup, model)

    def environment(self, stage, model):
        return self.variables

    def said(self, ended):
        """It prints the model's last text."""
        return ended.out.strip(), "" if ended.code == 0 else ended.err or ended.out or "failed"

    def nothing(self):
        """A tool without arguments is not known."""


class Qwen(Further):
    folder = "qwen"

    def command(self, stage, model, prompt, again=False, options=()):
        script = self.binary("@qwen-code/qwen-code/cli.js")
        resume = ["--continue"] if again else []
        return [install.node(), script, "--yolo", *self.words[1:], *resume, *options, prompt]

    def shell(self, command):
        return call("run_shell_command", command=command, description="Run a command", is_background=False)

    def write(self, path, text):
        return call("write_file", file_path=str(path), content=text)

    def read(self, path):
        return call("read_file", file_path=str(path))


class Pi(Further):
    folder = "pi"

    def command(self, stage, model, prompt, again=False, options=()):
        script = self.binary("@earendil-works/pi-coding-agent/dist/cli.js")
        resume = ["--continue"] if again else []
        return [install.node(), script, "-p", *self.words[1:], *resume, *options, prompt]

    def shell(self, command):
        return call("bash", command=command)

    def write(self, path, text):
        return call("write", path=str(path), content=text)

    def read(self, path):
        return call("read", path=str(path))


class Continue(Further):
    folder = "continue"

    def command(self, stage, model, prompt, again=False, options=()):
        script = self.binary("@continuedev/cli/dist/cn.js")
        resume = ["--resume"] if again else []
        return [install.node(), script, "-p", "--auto", *self.words[1:], *resume, *options, prompt]

    def environment(self, stage, model):
        return {**self.variables, "CONTINUE_TELEMETRY_ENABLED": "0"}

    def shell(self, command):
        return call("Bash", command=command)

    def write(self, path, text):
        return call("Write", filepath=str(path), content=text)

    def read(self, path):
        return call("Read", filepath=str(path))


class Droid(Further):
    """It continues a session only after a login."""

    folder = "droid"
    can_resume = False

    def command(self, stage, model, prompt, again=False, options=()):
        model = ["-m", "custom:toolgate-0", "--output-format", "json"]
        return [self.binary(".bin/droid"), "exec", "--skip-permissions-unsafe", *model, *options, prompt]

    def said(self, ended):
        for line in ended.lines():
            text = line.get("result", "")
            return text, text if line.get("is_error") else ""
        return "", ended.err or ended.out or "failed"

    def shell(self, command):
        return call("Execute", command=command, summary="Run a command", timeout=10, riskLevel="low", riskLevelReason="It only reads.")

    def write(self, path, text):
        return call("Create", file_path=str(path), content=text)

    def read(self, path):
        return call("Read", file_path=str(path))


class Aider(Further):
    """It has no tools: its edits are text."""

    folder = "aider"
    has_tools = False
    can_resume = False

    def command(self, stage, model, prompt, again=False, options=()):
        binary = str(install.ensure(self.folder) / "bin" / "aider")
        quiet = "--no-check-update --no-analytics --yes-always --no-git --no-show-model-warnings --no-pretty --no-detect-urls"
        return [binary, *self.words[1:], *quiet.split(), *options, "--message", prompt]

    def environment(self, stage, model):
        return {**self.variables, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


class Llm(Further):
    """llm with the functions of our programs."""

    folder = "py-agents"

    def version(self):
        return install.versions()[self.folder][1]["llm"]

    def command(self, stage, model, prompt, again=False, options=()):
        place = install.ensure(self.folder)
        functions = stage.folder / "functions.py"
        own = (install.ROOT / "clients" / "programs" / "toolbox.py").read_text()
        # Only the functions: the rest reads the program's command line.
        start, end = own.index("def write_file"), own.index("def take_photo")
        functions.write_text(f"import time\nfrom pathlib import Path\n\n\n{own[start:end]}")
        resume = ["--continue"] if again else []
        stream = ["--no-stream"] if self.is_whole else []
        return [str(place / "bin" / "llm"), *self.words[1:], *stream, "--functions", str(functions), *resume, prompt]

    is_whole = False

    def write(self, path, text):
        return call("write_file", path=str(path), content=text)

    def read(self, path):
        return call("read_file", path=str(path))


class LlmWhole(Llm):
    is_whole = True


class Framework(Program):
    """A program on an agent framework."""

    is_further = True
    version_of = {
        "pydantic_agent.py": "pydantic-ai-slim[anthropic,openai,google]",
        "adk_agent.py": "google-adk",
        "agno_agent.py": "agno",
        "strands_agent.py": "strands-agents[anthropic,openai,gemini]",
        "agents.mjs": "@openai/agents",
        "adk.mjs": "@google/adk",
        "mastra.mjs": "@mastra/core",
    }

    def __init__(self, *arguments, forgets=()):
        super().__init__(*arguments)
        self.forgets = forgets
        self.thin = selected(self.name)

    def version(self):
        return install.versions()[self.folder][1][self.version_of[self.file]]


class Session(Scenario):
    """Parallel calls of which one fails, then a second turn of the user."""

    name = "session"
    second = "Please go on with the rest."

    def suits(self, client):
        return getattr(client, "is_further", False) and getattr(client, "has_tools", True)

    def prompts_for(self, client):
        return ("Please begin.", self.second) if client.is_agent and client.can_resume else ("Please begin.",)

    def has_second(self, client):
        return not client.is_agent or client.can_resume

    def arguments(self, client, stage):
        return [] if client.is_agent else [f"then={self.second}"]

    def turns(self, box, work):
        first = [box.write(work / "a.txt", "a\n"), box.read(work / "missing.txt"), box.write(work / "b.txt", "b\n")]
        return [
            {"say": [{"thought": "All at once."}, *first]},
            thinking(box.read(work / "a.txt")),
            *([{"text": "The first half is done."}] if self.has_second(box) else []),
            thinking(box.write(work / "c.txt", "c\n")),
            {"text": f"Both halves. {DONE}"},
        ]

    def check(self, run):
        yield from run.ended_well()
        yield from run.was_clean(but=run.client.forgets)
        for name in "abc":
            yield from run.holds(f"{name}.txt", f"{name}\n")
        if self.has_second(run.client) and not run.was_asked("Please begin.", self.second):
            yield "the second turn does not hold the first"
        if len(run.answers()) != 5:
            yield f"the last request answers {len(run.answers())} calls, not 5"


class Words(Scenario):
    """A text without tools, for clients that have none."""

    name = "words"

    def suits(self, client):
        return not getattr(client, "has_tools", True)

    def script(self, box, stage):
        return {"turn": [{"text": f"Hello. {DONE}", "times": 0}]}


# It joins the pieces of a text and moves the signature; the gateway repairs that after a refusal.
MERGES = ("refusals",)
# It copies a signature to all parallel calls.
COPIES = ("doubled",)
AGENTS, STRANDS, JS = "py-agents", "py-strands", "js-agents"
ALL = [
    Qwen("qwen-code-chat", "chat", "qwen-code"),
    Qwen("qwen-code-anthropic", "anthropic", "qwen-code-messages"),
    Qwen("qwen-code-gemini", "gemini", "qwen-code-gemini"),
    Pi("pi-anthropic", "anthropic", "pi"),
    Pi("pi-responses", "responses", "pi-responses"),
    Pi("pi-chat", "chat", "pi-chat"),
    Pi("pi-gemini", "gemini", "pi-gemini", forgets=MERGES),
    Continue("continue-chat", "chat", "continue"),
    Continue("continue-anthropic", "anthropic", "continue-messages"),
    Droid("droid", "anthropic", "droid"),
    Aider("aider-chat", "chat", "aider"),
    Aider("aider-anthropic", "anthropic", "aider-messages"),
    Llm("llm", "chat", "llm"),
    LlmWhole("llm-whole", "chat", "llm"),
    Framework("pydantic-ai-anthropic", "pydantic_agent.py", AGENTS, "anthropic", "api=anthropic"),
    Framework("pydantic-ai-anthropic-whole", "pydantic_agent.py", AGENTS, "anthropic", "api=anthropic", "stream=no"),
    Framework("pydantic-ai-responses", "pydantic_agent.py", AGENTS, "responses", "api=responses"),
    Framework("pydantic-ai-responses-whole", "pydantic_agent.py", AGENTS, "responses", "api=responses", "stream=no"),
    Framework("pydantic-ai-chat", "pydantic_agent.py", AGENTS, "chat", "api=chat"),
    Framework("pydantic-ai-chat-whole", "pydantic_agent.py", AGENTS, "chat", "api=chat", "stream=no"),
    Framework("pydantic-ai-gemini", "pydantic_agent.py", AGENTS, "gemini", "api=google", forgets=MERGES),
    Framework("pydantic-ai-gemini-whole", "pydantic_agent.py", AGENTS, "gemini", "api=google", "stream=no"),
    Framework("google-adk", "adk_agent.py", AGENTS, "gemini"),
    Framework("google-adk-whole", "adk_agent.py", AGENTS, "gemini", "stream=no"),
    Framework("agno-anthropic", "agno_agent.py", AGENTS, "anthropic", "api=anthropic"),
    Framework("agno-anthropic-whole", "agno_agent.py", AGENTS, "anthropic", "api=anthropic", "stream=no"),
    Framework("agno-responses", "agno_agent.py", AGENTS, "responses", "api=responses"),
    Framework("agno-responses-whole", "agno_agent.py", AGENTS, "responses", "api=responses", "stream=no"),
    Framework("agno-chat", "agno_agent.py", AGENTS, "chat", "api=chat"),
    Framework("agno-chat-whole", "agno_agent.py", AGENTS, "chat", "api=chat", "stream=no"),
    Framework("agno-gemini", "agno_agent.py", AGENTS, "gemini", "api=google", forgets=MERGES),
    Framework("agno-gemini-whole", "agno_agent.py", AGENTS, "gemini", "api=google", "stream=no"),
    Framework("strands-anthropic", "strands_agent.py", STRANDS, "anthropic", "api=anthropic"),
    Framework("strands-chat", "strands_agent.py", STRANDS, "chat", "api=chat"),
    Framework("strands-gemini", "strands_agent.py", STRANDS, "gemini", "api=google"),
    Framework("openai-agents-js-responses", "agents.mjs", JS, "responses", "api=responses"),
    Framework("openai-agents-js-responses-whole", "agents.mjs", JS, "responses", "api=responses", "stream=no"),
    Framework("openai-agents-js-chat", "agents.mjs", JS, "chat", "api=chat"),
    Framework("openai-agents-js-chat-whole", "agents.mjs", JS, "chat", "api=chat", "stream=no"),
    Framework("google-adk-js", "adk.mjs", JS, "gemini", forgets=COPIES),
    Framework("google-adk-js-whole", "adk.mjs", JS, "gemini", "stream=no"),
    Framework("mastra-anthropic", "mastra.mjs", JS, "anthropic", "api=anthropic"),
    Framework("mastra-anthropic-whole", "mastra.mjs", JS, "anthropic", "api=anthropic", "stream=no"),
    Framework("mastra-chat", "mastra.mjs", JS, "chat", "api=chat"),
    Framework("mastra-chat-whole", "mastra.mjs", JS, "chat", "api=chat", "stream=no"),
]
SCENARIOS = [Session(), Words()]
