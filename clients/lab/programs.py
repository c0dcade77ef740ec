"""The SDKs: small programs that use them as documented."""

import json

import install
from agent import call
from stage import KEY

PROGRAMS = install.ROOT / "clients" / "programs"


class Program:
    """A program that runs six tools of its own."""

    seconds = 90
    thin = ("ten-steps", "parallel")
    is_agent = False
    is_direct = False
    forgets = ()
    renamed_calls_need = ()
    goes_on_by = ()
    can = ()

    # Number of the odd server's tools that it declares.
    mcp_most = 40

    def __init__(self, name, file, folder, dialect, *options, resumes=False, direct=False, features=(), cites=False, faults=()):
        self.name, self.file, self.folder, self.dialect = name, file, folder, dialect
        self.options, self.can_resume, self.is_direct = options, resumes, direct
        self.features, self.cites = features, cites
        # Scenarios that the SDK refuses before any request, with its error text.
        self.faults = dict(faults)
        if folder == "js":
            # They start in a second, so every test runs all features.
            self.thin = (*self.thin, *(it for it in features if it != "silence"))

    def version(self):
        """Version of the package that the name begins with."""
        _, packages = install.versions()[self.folder]
        package = OF[self.file]
        return packages.get(package if isinstance(package, str) else package[self.dialect], "")

    def prepare(self, stage, model):
        """Writes nothing: everything is on the command line."""

    def command(self, stage, model, prompt, again=False, options=()):
        place = install.ensure(self.folder)
        script = PROGRAMS / self.file
        if self.file.endswith(".py"):
            runner = [str(place / "bin" / "python"), str(script)]
        else:
            runner = [install.node(), str(script)]
        return [*runner, stage.url, model, prompt, *self.options, *options]

    def mcp(self, stage, command):
        return [f"mcp={json.dumps(command)}"]

    def odd(self, name):
        """Name of a tool of the odd server."""
        return name

    def environment(self, stage, model):
        # Modules are found beside the program, or here.
        modules = install.FOLDER / self.folder / "node_modules"
        return {"LAB_MODULES": str(modules), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def said(self, ended):
        text, error = "", ""
        for line in ended.lines():
            text = line.get("text") or text
            error = line.get("error") or error
        return text, error or ("" if ended.code == 0 else ended.err[-600:] or "failed")

    def write(self, path, text):
        return call("write_file", path=str(path), content=text)

    def read(self, path):
        return call("read_file", path=str(path))

    def edit(self, path, old, new):
        return call("edit_file", path=str(path), old=old, new=new)

    def search(self, pattern, folder):
        return call("search", pattern=pattern, folder=str(folder))

    def list(self, folder):
        return call("list_files")

    def pause(self, seconds, path, text):
        return call("pause", seconds=round(seconds, 1), path=str(path), content=text)

    def nothing(self):
        return call("list_files")


class ClaudeAgent(Program):
    """Claude Code inside a program: longer tool names, configuration by environment variables."""

    # It drops a tool with `allOf` at the root.
    mcp_most = 39

    def command(self, stage, model, prompt, again=False, options=()):
        resume = ["again=yes"] if again else []
        return super().command(stage, model, prompt, again, [*options, *resume])

    def environment(self, stage, model):
        own = {
            "ANTHROPIC_BASE_URL": stage.url,
            "ANTHROPIC_AUTH_TOKEN": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            # All tools at once, instead of a tool search.
            "ENABLE_TOOL_SEARCH": "false",
        }
        return {**super().environment(stage, model), **own}

    def named(self, call):
        return {**call, "call": f"mcp__lab__{call['call']}"}

    def write(self, path, text):
        return self.named(super().write(path, text))

    def read(self, path):
        return self.named(super().read(path))

    def edit(self, path, old, new):
        return self.named(super().edit(path, old, new))

    def search(self, pattern, folder):
        return self.named(super().search(pattern, folder))

    def list(self, folder):
        return self.named(super().list(folder))

    def pause(self, seconds, path, text):
        return self.named(super().pause(seconds, path, text))

    def nothing(self):
        return self.named(super().nothing())

    def odd(self, name):
        return f"mcp__odd__{name}"


OF = {
    "claude_agent.py": "claude-agent-sdk",
    "anthropic_messages.py": "anthropic",
    "anthropic_runner.py": "anthropic",
    "openai_chat.py": "openai",
    "openai_responses.py": "openai",
    "openai_agents.py": "openai-agents",
    "google_genai.py": "google-genai",
    "langchain_tools.py": {
        "anthropic": "langchain-anthropic",
        "responses": "langchain-openai",
        "chat": "langchain-openai",
        "gemini": "langchain-google-genai",
    },
    "litellm_tools.py": "litellm",
    "anthropic.mjs": "@anthropic-ai/sdk",
    "openai.mjs": "openai",
    "google.mjs": "@google/genai",
    "vercel.mjs": "ai",
}
PY, JS, CHAINS = "py", "js", "py-chains"
PLAIN = ("forced-tool", "no-tools", "structured", "odd-tools", "model-switch", "silence")
MORE = (*PLAIN, "media-results", "web-search")
# The SDK's own loop uses a single model.
LOOP = tuple(it for it in PLAIN if it != "model-switch")
AGENT = (*LOOP, "media-results", "web-search")
# Features that Claude Code exposes to programs.
CLAUDE = ("odd-tools", "silence")
# Loops that fail on a call of an unknown function.
GIVES_UP = {"unknown-tool": "KeyError: 'delete_everything'"}
MISBEHAVED = {"unknown-tool": "ModelBehaviorError: Tool delete_everything not found"}
# Its structured output does not support tools.
LINK = tuple(it for it in PLAIN if it != "structured")
CHAIN = (*LINK, "media-results")
ALL = [
    Program("anthropic-py", "anthropic_messages.py", PY, "anthropic", "thinking=yes", resumes=True, features=MORE, cites=True),
    Program("anthropic-py-whole", "anthropic_messages.py", PY, "anthropic", "stream=no", resumes=True, features=MORE, cites=True),
    Program("anthropic-py-runner", "anthropic_runner.py", PY, "anthropic"),
    Program("openai-py-responses", "openai_responses.py", PY, "responses", resumes=True, features=MORE, cites=True),
    Program("openai-py-responses-whole", "openai_responses.py", PY, "responses", "stream=no", resumes=True, features=MORE, cites=True),
    Program("openai-py-responses-stored", "openai_responses.py", PY, "responses", "state=server"),
    Program("openai-py-chat", "openai_chat.py", PY, "chat", resumes=True, features=PLAIN),
    Program("openai-py-chat-whole", "openai_chat.py", PY, "chat", "stream=no", resumes=True, features=PLAIN),
    Program("google-genai-py", "google_genai.py", PY, "gemini", resumes=True, features=MORE),
    Program("google-genai-py-whole", "google_genai.py", PY, "gemini", "stream=no", resumes=True, features=MORE),
    Program("google-genai-py-auto", "google_genai.py", PY, "gemini", "calls=automatic", faults=GIVES_UP),
    Program("google-genai-py-auto-whole", "google_genai.py", PY, "gemini", "calls=automatic", "stream=no", faults=GIVES_UP),
    Program("google-genai-py-mcp", "google_genai.py", PY, "gemini", "own=yes", features=("odd-tools",), faults={"odd-tools": "cannot pickle '_asyncio.Task' object"}),
    Program("google-genai-py-on-sim", "google_genai.py", PY, "gemini", resumes=True, direct=True),
    Program("google-genai-py-auto-on-sim", "google_genai.py", PY, "gemini", "calls=automatic", direct=True, faults=GIVES_UP),
    Program("openai-agents-responses", "openai_agents.py", PY, "responses", "api=responses", "own=yes", features=AGENT, faults=MISBEHAVED),
    Program("openai-agents-responses-whole", "openai_agents.py", PY, "responses", "api=responses", "own=yes", "stream=no", features=AGENT, faults=MISBEHAVED),
    Program("openai-agents-chat", "openai_agents.py", PY, "chat", "api=chat", "own=yes", features=LOOP, faults=MISBEHAVED),
    ClaudeAgent("claude-agent-sdk", "claude_agent.py", PY, "anthropic", "own=yes", resumes=True, features=CLAUDE),
    Program("langchain-anthropic", "langchain_tools.py", CHAINS, "anthropic", "api=anthropic", features=CHAIN),
    Program("langchain-anthropic-whole", "langchain_tools.py", CHAINS, "anthropic", "api=anthropic", "stream=no", features=CHAIN),
    Program("langchain-responses", "langchain_tools.py", CHAINS, "responses", "api=responses", features=CHAIN),
    Program("langchain-chat", "langchain_tools.py", CHAINS, "chat", "api=chat", features=LINK),
    Program("langchain-google", "langchain_tools.py", CHAINS, "gemini", "api=google", features=CHAIN, faults={"odd-tools": "Invalid type: ['integer', 'null']"}),
    Program("litellm-anthropic", "litellm_tools.py", CHAINS, "anthropic", "api=anthropic", features=PLAIN),
    Program("litellm-anthropic-whole", "litellm_tools.py", CHAINS, "anthropic", "api=anthropic", "stream=no", features=PLAIN),
    Program("litellm-openai", "litellm_tools.py", CHAINS, "chat", "api=openai", features=PLAIN),
    Program("litellm-gemini", "litellm_tools.py", CHAINS, "gemini", "api=gemini", features=PLAIN, faults={"odd-tools": "'bool' object has no attribute 'get'"}),
    Program("anthropic-js", "anthropic.mjs", JS, "anthropic", features=MORE, cites=True),
    Program("anthropic-js-whole", "anthropic.mjs", JS, "anthropic", "stream=no", features=MORE, cites=True),
    Program("anthropic-js-runner", "anthropic.mjs", JS, "anthropic", "calls=runner"),
    Program("openai-js-responses", "openai.mjs", JS, "responses", "api=responses", features=MORE, cites=True),
    Program("openai-js-responses-whole", "openai.mjs", JS, "responses", "api=responses", "stream=no", features=MORE, cites=True),
    Program("openai-js-chat", "openai.mjs", JS, "chat", "api=chat", features=PLAIN),
    Program("openai-js-chat-whole", "openai.mjs", JS, "chat", "api=chat", "stream=no", features=PLAIN),
    Program("openai-js-runtools", "openai.mjs", JS, "chat", "api=runTools"),
    Program("google-genai-js", "google.mjs", JS, "gemini", features=MORE),
    Program("google-genai-js-whole", "google.mjs", JS, "gemini", "stream=no", features=MORE),
    Program("google-genai-js-auto", "google.mjs", JS, "gemini", "calls=automatic"),
    Program("google-genai-js-on-sim", "google.mjs", JS, "gemini", direct=True),
    Program("google-genai-js-auto-on-sim", "google.mjs", JS, "gemini", "calls=automatic", direct=True),
    Program("vercel-anthropic", "vercel.mjs", JS, "anthropic", "api=anthropic", features=MORE, cites=True),
    Program("vercel-anthropic-whole", "vercel.mjs", JS, "anthropic", "api=anthropic", "stream=no", features=MORE, cites=True),
    Program("vercel-responses", "vercel.mjs", JS, "responses", "api=responses", features=MORE, cites=True),
    Program("vercel-responses-unstored", "vercel.mjs", JS, "responses", "api=responses", "store=no", features=MORE, cites=True),
    Program("vercel-chat", "vercel.mjs", JS, "chat", "api=chat", features=PLAIN),
    Program("vercel-compatible", "vercel.mjs", JS, "chat", "api=compatible", features=PLAIN),
    Program("vercel-google", "vercel.mjs", JS, "gemini", "api=google", features=MORE, cites=True),
]
