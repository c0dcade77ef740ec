"""The coding agents: how each is started, what its tools are called, and how it says that it is done."""

import json
import shlex

import install
from stage import KEY


class Agent:
    """A program that runs its own tools in the folder that it is started in."""

    dialect = ""
    folder = ""
    seconds = 120
    can_resume = True
    # Which scenarios of the thinned matrix it runs; all unless named.
    thin = None
    is_agent = True
    is_direct = False
    # Faults that the client itself does not show, and scenarios that it cannot play, in its words.
    hides = ()
    faults = {}
    # What the client itself loses when it resumes a session, in the simulator's words.
    forgets = ()
    # What a client costs that renames calls of tools that it lacks.
    renamed_calls_need = ()

    def version(self):
        _, packages = install.versions()[self.folder]
        return next(iter(packages.values()))

    def binary(self, path):
        return str(install.ensure(self.folder) / "node_modules" / path)

    def prepare(self, stage, model):
        """Writes configuration into the empty home."""

    def shell(self, command):
        raise NotImplementedError

    def write(self, path, text):
        return self.shell(f"mkdir -p {shlex.quote(str(path.parent))} && printf %s {shlex.quote(text)} > {shlex.quote(str(path))}")

    def read(self, path):
        return self.shell(f"cat {shlex.quote(str(path))}")

    def edit(self, path, old, new):
        return self.shell(f"sed -i {shlex.quote(f's/{old}/{new}/')} {shlex.quote(str(path))}")

    def search(self, pattern, folder):
        return self.shell(f"grep -rn {shlex.quote(pattern)} {shlex.quote(str(folder))}")

    def list(self, folder):
        return self.shell(f"ls {shlex.quote(str(folder))}")

    def pause(self, seconds, path, text):
        """Waits, then writes."""
        return self.shell(f"sleep {seconds:.1f} && printf %s {shlex.quote(text)} > {shlex.quote(str(path))}")

    def nothing(self):
        """A call without arguments."""
        raise NotImplementedError

    # How many of the odd server's tools the client declares; some drop a few by themselves.
    mcp_most = 40

    def look(self, path):
        """Reads a picture or a PDF; None where the client cannot."""

    def hides(self, kind, model):
        """Whether the client itself keeps a file of this kind from this model."""
        return False

    def delegate(self, prompt):
        """Gives work to a sub-agent; None where the client has none."""

    def browse(self, query):
        """Searches the web; None where the client cannot."""

    def structured(self, stage, schema):
        """Options that ask for an answer of this schema, and the model's turn that gives it; None if it cannot."""

    def named(self, work):
        """Calls of tools that must work under their own names."""
        return []

    # What the user says to make it sum the session up; None where that takes a terminal.
    compacts_by = None
    # What the user says to see how full the context is.
    counts_by = None

    def mcp_call(self, tool, **args):
        """A call of a tool of the odd server."""
        return {"call": self.mcp_name(tool), "args": args}

    def mcp_name(self, tool):
        raise NotImplementedError


def call(name, **args):
    return {"call": name, "args": args}


class ClaudeCode(Agent):
    name = "claude-code"
    dialect = "anthropic"
    folder = "claude"
    # It leaves out a tool with `allOf` at the root.
    mcp_most = 39
    compacts_by = "/compact"
    counts_by = "/context"

    def command(self, stage, model, prompt, again=False, options=()):
        binary = self.binary("@anthropic-ai/claude-code-linux-x64/claude")
        tools = (
            "Bash,Read,Write,Edit,Glob,Grep,ListAgents,TodoWrite,TaskCreate,TaskUpdate,TaskList,Agent,"
            "WebSearch,WebFetch,ToolSearch,NotebookEdit,mcp__odd"
        )
        command = [binary, "-p", prompt, "--output-format", "stream-json", "--verbose"]
        return command + ["--allowedTools", tools, *(["--continue"] if again else []), *options]

    def environment(self, stage, model):
        # The first three are all that a user needs (R126); the rest keeps it from calling home.
        return {
            "ANTHROPIC_BASE_URL": stage.url,
            "ANTHROPIC_AUTH_TOKEN": KEY,
            "ANTHROPIC_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            # All tools at once, those of MCP servers too, instead of a search for them.
            **({"ENABLE_TOOL_SEARCH": "false"} if (stage.home / "mcp.json").exists() else {}),
            "IS_SANDBOX": "1",
        }

    def mcp(self, stage, command):
        place = stage.home / "mcp.json"
        server = {"command": command[0], "args": command[1:]}
        place.write_text(json.dumps({"mcpServers": {"odd": server}}))
        return ["--mcp-config", str(place), "--strict-mcp-config"]

    def mcp_name(self, tool):
        return f"mcp__odd__{tool}"

    def said(self, ended):
        for line in reversed(ended.lines()):
            if line.get("type") == "result":
                text = line.get("result") or ""
                return text, text if line.get("is_error") else ""
        return "", ended.err or "no result"

    def shell(self, command):
        return call("Bash", command=command, description="Run a command")

    def write(self, path, text):
        return call("Write", file_path=str(path), content=text)

    def read(self, path):
        return call("Read", file_path=str(path))

    def edit(self, path, old, new):
        return call("Edit", file_path=str(path), old_string=old, new_string=new)

    def search(self, pattern, folder):
        return call("Grep", pattern=pattern, path=str(folder), output_mode="content", **{"-n": True})

    def list(self, folder):
        return call("Glob", pattern="**/*", path=str(folder))

    def nothing(self):
        return call("ListAgents")

    def look(self, path):
        return self.read(path)

    def delegate(self, prompt):
        return call(
            "Agent",
            description="A part of it",
            prompt=prompt,
            subagent_type="general-purpose",
            run_in_background=False,
        )

    def browse(self, query):
        return call("WebSearch", query=query)

    def structured(self, stage, schema):
        return ["--json-schema", json.dumps(schema)], lambda value: call("StructuredOutput", **value)

    def named(self, work):
        """R148 to R158, in the order of the list; Task, which is called Agent now, has a scenario of its own."""
        todo = {"content": "Write it", "status": "in_progress", "activeForm": "Writing it"}
        rest = {"content": "Read it", "status": "pending", "activeForm": "Reading it"}
        note = work / "named.txt"
        return [
            call("TodoWrite", todos=[todo, rest]),
            call("Bash", command="echo from bash", description="Say it", timeout=5000),
            call("Write", file_path=str(note), content="one\ntwo\n"),
            call("Read", file_path=str(note), offset=1, limit=5),
            call("Edit", file_path=str(note), old_string="two", new_string="three", replace_all=False),
            call("Glob", pattern="*.txt", path=str(work)),
            call("Grep", pattern="thr", path=str(work), output_mode="content", head_limit=5, **{"-n": True, "-i": True, "-C": 1}),
            call("WebFetch", url="https://127.0.0.1:9/", prompt="What does it say?"),
            call("WebSearch", query="toolgate", allowed_domains=["example.com"]),
        ]


class OldClaudeCode(ClaudeCode):
    name = "claude-code-2.1.197"
    folder = "claude-197"
    thin = ("ten-steps", "resume")

    def nothing(self):
        return call("TaskList")


class Codex(Agent):
    name = "codex"
    dialect = "responses"
    folder = "codex"
    # It leaves out a tool with `required` inside a property.
    mcp_most = 39

    def prepare(self, stage, model):
        home = stage.home / "codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f'model = "{model}"\n'
            'model_provider = "toolgate"\n'
            'approval_policy = "never"\n'
            'sandbox_mode = "danger-full-access"\n'
            'model_providers.toolgate = { name = "toolgate", '
            f'base_url = "{stage.url}/v1", env_key = "TOOLGATE_CLIENT_KEY" }}\n'
        )

    def command(self, stage, model, prompt, again=False, options=()):
        binary = self.binary(
            "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
        )
        resume = ["resume", "--last"] if again else []
        return [binary, "exec", "--skip-git-repo-check", "--json", *options, *resume, prompt]

    def environment(self, stage, model):
        return {"CODEX_HOME": str(stage.home / "codex"), "TOOLGATE_CLIENT_KEY": KEY}

    def mcp_name(self, tool):
        return f"mcp__odd__{tool}"

    def mcp(self, stage, command):
        settings = {"command": command[0], "args": command[1:]}
        options = []
        for name, value in settings.items():
            options += ["-c", f"mcp_servers.odd.{name}={json.dumps(value)}"]
        return options

    def said(self, ended):
        text, error = "", ""
        for line in ended.lines():
            item = line.get("item", {})
            if line.get("type") == "item.completed" and item.get("type") == "agent_message":
                text = item.get("text", "")
            if line.get("type") == "turn.failed":
                error = json.dumps(line)
        return text, error or ("" if ended.code == 0 else ended.err or "failed")

    def shell(self, command):
        return call("exec_command", cmd=command)

    def nothing(self):
        return call("get_goal")

    def look(self, path):
        return call("view_image", path=str(path)) if path.suffix == ".png" else None

    def structured(self, stage, schema):
        place = stage.home / "schema.json"
        place.write_text(json.dumps(schema))
        return ["--output-schema", str(place)], lambda value: {"text": json.dumps(value)}


class CodexBuiltIn(Codex):
    """The provider that is built in, which tries a WebSocket first."""

    name = "codex-websocket"
    can_resume = False
    thin = ("ten-steps", "parallel")

    def prepare(self, stage, model):
        (stage.home / "codex").mkdir(exist_ok=True)

    def command(self, stage, model, prompt, again=False, options=()):
        command = super().command(stage, model, prompt, again, options)
        settings = [
            f'openai_base_url="{stage.url}/v1"',
            'approval_policy="never"',
            'sandbox_mode="danger-full-access"',
        ]
        for setting in settings:
            command[2:2] = ["-c", setting]
        command[2:2] = ["-m", model]
        return command

    def environment(self, stage, model):
        return {"CODEX_HOME": str(stage.home / "codex"), "CODEX_API_KEY": KEY}


class GeminiCli(Agent):
    name = "gemini-cli"
    dialect = "gemini"
    folder = "gemini"
    # It gives every result twice and no signature; the gateway mends that when Gemini objects.
    forgets = ("refusals", "mismatches", "placeholders")

    def prepare(self, stage, model):
        self.write_settings(stage, {})

    def write_settings(self, stage, more):
        folder = stage.home / ".gemini"
        folder.mkdir(exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
            **more,
        }
        (folder / "settings.json").write_text(json.dumps(settings))

    def command(self, stage, model, prompt, again=False, options=()):
        script = self.binary("@google/gemini-cli/bundle/gemini.js")
        resume = ["--resume", "latest"] if again else []
        return (
            [install.node(), script, "-p", prompt, "--approval-mode", "yolo"]
            + ["--output-format", "stream-json", "-m", model, *resume, *options]
        )

    def environment(self, stage, model):
        return {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": stage.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def mcp(self, stage, command):
        server = {"command": command[0], "args": command[1:], "trust": True}
        self.write_settings(stage, {"mcpServers": {"odd": server}})
        return []

    def mcp_name(self, tool):
        return f"mcp_odd_{tool}"

    def said(self, ended):
        text, error = "", ""
        for line in ended.lines():
            kind = line.get("type")
            if kind == "message" and line.get("role") == "assistant":
                text += line.get("content", "")
            elif kind == "tool_use":
                text = ""
            elif kind == "error":
                error = line.get("message", "error")
            elif kind == "result" and line.get("status") != "success":
                error = json.dumps(line.get("error", "failed"))
        return text, error or ("" if ended.code == 0 else ended.err or "failed")

    def shell(self, command):
        return call("run_shell_command", command=command, description="Run a command")

    def write(self, path, text):
        return call("write_file", file_path=str(path), content=text)

    def read(self, path):
        return call("read_file", file_path=str(path))

    def edit(self, path, old, new):
        return call(
            "replace", file_path=str(path), instruction="Change it.", old_string=old, new_string=new
        )

    def search(self, pattern, folder):
        return call("grep_search", pattern=pattern, dir_path=str(folder))

    def list(self, folder):
        return call("list_directory", dir_path=str(folder))

    def nothing(self):
        return call("list_background_processes")

    def look(self, path):
        return self.read(path)

    def browse(self, query):
        return call("google_web_search", query=query)


class OpenCode(Agent):
    folder = "opencode"
    thin = ("ten-steps",)

    def __init__(self, dialect, package, path):
        self.name = f"opencode-{dialect}"
        # Google's own dialect names no issuer: there Gemini must refuse before anybody can know.
        self.renamed_calls_need = ("placeholders", "refusals") if dialect == "gemini" else ("placeholders",)
        self.dialect, self.package, self.path = dialect, package, path

    def prepare(self, stage, model):
        self.write_settings(stage, model, {})

    def write_settings(self, stage, model, more):
        folder = stage.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        provider = {
            "npm": self.package,
            "options": {"baseURL": stage.url + self.path, "apiKey": KEY},
            "models": {
                model: {
                    "tool_call": True,
                    "reasoning": True,
                    "limit": {"context": 1000000, "output": 32000},
                }
            },
        }
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "permission": "allow",
            "provider": {"gw": provider},
            **more,
        }
        (folder / "opencode.json").write_text(json.dumps(settings))
        self.model = model

    def command(self, stage, model, prompt, again=False, options=()):
        binary = self.binary("opencode-linux-x64/bin/opencode")
        resume = ["--continue"] if again else []
        return [binary, "run", "--format", "json", "-m", f"gw/{model}", *resume, *options, prompt]

    def environment(self, stage, model):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def mcp(self, stage, command):
        server = {"type": "local", "command": command, "enabled": True}
        self.write_settings(stage, self.model, {"mcp": {"odd": server}})
        return []

    def mcp_name(self, tool):
        return f"odd_{tool}"

    def said(self, ended):
        text, error = "", ""
        for line in ended.lines():
            if line.get("type") == "text":
                text = line.get("part", {}).get("text", "")
            if line.get("type") == "error":
                error = json.dumps(line.get("error"))
        return text, error or ("" if ended.code == 0 else ended.err or "failed")

    def shell(self, command):
        return call("bash", command=command, description="Run a command")

    def write(self, path, text):
        return call("write", filePath=str(path), content=text)

    def read(self, path):
        return call("read", filePath=str(path))

    def edit(self, path, old, new):
        return call("edit", filePath=str(path), oldString=old, newString=new)

    def search(self, pattern, folder):
        return call("grep", pattern=pattern, path=str(folder))

    def list(self, folder):
        return call("glob", pattern="**/*", path=str(folder))

    def nothing(self):
        """It has no tool without arguments."""

    def look(self, path):
        return self.read(path)

    def delegate(self, prompt):
        return call("task", description="A part of it", prompt=prompt, subagent_type="general")

    def named(self, work):
        todo = {"content": "Write it", "status": "in_progress", "priority": "high"}
        return [call("todowrite", todos=[todo]), call("webfetch", url="http://127.0.0.1:9/", format="text")]


ALL = [
    ClaudeCode(),
    OldClaudeCode(),
    Codex(),
    CodexBuiltIn(),
    GeminiCli(),
    OpenCode("anthropic", "@ai-sdk/anthropic", "/v1"),
    OpenCode("responses", "@ai-sdk/openai", "/v1"),
    OpenCode("chat", "@ai-sdk/openai-compatible", "/v1"),
    OpenCode("gemini", "@ai-sdk/google", "/v1beta"),
]
