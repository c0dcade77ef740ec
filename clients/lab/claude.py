"""Claude Code: command line and tools, old and new."""

import json
import sys

import install
from agent import Agent, call
from named import DELEGATED, FETCHED, PRESENT
from stage import KEY

CONSOLE = install.ROOT / "clients" / "programs" / "claude_console.py"
# Answer of the console user to every question.
ANSWER = "The second one"


class ClaudeCode(Agent):
    name = "claude-code"
    dialect = "anthropic"
    folder = "claude"
    # It drops a tool with `allOf` at the root.
    mcp_most = 39
    compacts_by = "/compact"
    counts_by = "/context"

    def command(self, stage, model, prompt, again=False, options=()):
        binary = self.binary("@anthropic-ai/claude-code-linux-x64/claude")
        tools = (
            "Bash,Read,Write,Edit,Glob,Grep,ListAgents,TodoWrite,TaskCreate,TaskUpdate,TaskList,Agent,"
            "WebSearch,WebFetch,ToolSearch,NotebookEdit,Skill,mcp__odd"
        )
        command = [binary, "-p", prompt, "--output-format", "stream-json", "--verbose"]
        return command + ["--allowedTools", tools, *(["--continue"] if again else []), *options]

    def environment(self, stage, model):
        # A user needs only the first three (R126); the rest disables its telemetry and updates.
        return {
            "ANTHROPIC_BASE_URL": stage.url,
            "ANTHROPIC_AUTH_TOKEN": KEY,
            "ANTHROPIC_MODEL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            # All tools at once, including those of MCP servers, instead of a tool search.
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
        return call("Agent", **self.delegated(prompt))

    def delegated(self, prompt):
        kind = {"subagent_type": "general-purpose", "run_in_background": False}
        return {"description": "A part of it", "prompt": prompt, **kind}

    def browse(self, query):
        return call("WebSearch", query=query)

    def structured(self, stage, schema):
        return ["--json-schema", json.dumps(schema)], lambda value: call("StructuredOutput", **value)

    # Its timeout is at least five minutes, regardless of its settings.
    can = ("no-tools", "question")

    def granted(self, wish, stage, model):
        match wish:
            case "no-tools":
                return ["--tools", ""], {}
            case "question":
                # Before it fetches a URL it asks a vendor service, which is unreachable here.
                return ["--settings", json.dumps({"skipWebFetchPreflight": True})], {}

    def attended(self, command):
        """Claude Code with a console user who answers questions."""
        binary, print_, prompt, *options = command
        return [sys.executable, str(CONSOLE), prompt, binary, print_, *options]

    # It still runs `Task`, under the new name Agent.
    aliases = {"Task": "Agent"}

    def named(self, work, url):
        """R148 to R158; Read and Edit need an existing file."""
        todo = {"content": "Write it", "status": "in_progress", "activeForm": "Writing it"}
        rest = {"content": "Read it", "status": "pending", "activeForm": "Reading it"}
        return [
            (call("TodoWrite", todos=[todo, rest]), "modified successfully"),
            (call("TodoWrite", todos=[{"content": "Write it", "status": "lost", "activeForm": "Writing it"}]), "InputValidationError"),
            (call("Task", **self.delegated(DELEGATED)), PRESENT),
            *self.plain(work),
            *self.asking(url),
        ]

    def newly_named(self, work, url):
        """Current tools: tasks instead of todos, and tools that only a search finds."""
        return [
            *self.found(),
            (call("TaskCreate", subject="Write it", description="All of it", activeForm="Writing it"), "Task #1 created"),
            (call("TaskUpdate", taskId="1", status="in_progress"), "Updated task #1"),
            (call("TaskGet", taskId="1"), "in_progress"),
            (call("TaskList"), "Write it"),
            (call("Agent", **self.delegated(DELEGATED)), PRESENT),
            *self.plain(work),
            *self.newest(work),
            *self.asking(url),
        ]

    def newest(self, work):
        """Tools that older versions lack or name otherwise."""
        notebook = str(work / "sum.ipynb")
        return [
            (call("Skill", skill="greet"), "greet"),
            (call("ReportFindings", level="low", findings=[]), "indings"),
            (call("Read", file_path=notebook), "1 + 1"),
            (call("NotebookEdit", notebook_path=notebook, cell_id="first", new_source="2 + 2"), "2 + 2"),
        ]

    def failing(self, work, url):
        missing = str(work / "missing.txt")
        notebook = str(work / "sum.ipynb")
        one = [{"label": "Only", "description": "It is alone."}]
        question = {"question": "Which one?", "header": "Choice", "multiSelect": False, "options": one}
        return [
            *self.found(),
            (call("Bash", command="echo failing; exit 3", description="Fail"), "Exit code 3"),
            (call("Read", file_path=missing), "does not exist"),
            (call("Write", file_path=str(work), content="x"), "directory"),
            (call("Edit", file_path=missing, old_string="a", new_string="b"), "does not exist"),
            (call("Glob", pattern="*", path=str(work / "nowhere")), "does not exist"),
            (call("Grep", pattern="a", path=str(work / "nowhere")), "does not exist"),
            (call("TaskUpdate", taskId="99", status="completed"), "not found"),
            (call("Agent", **{**self.delegated("Do it."), "subagent_type": "nobody"}), "not found"),
            (call("WebFetch", url="not a url", prompt="What does it say?"), "Invalid URL"),
            (call("WebSearch", query="toolgate", allowed_domains=["a.example"], blocked_domains=["b.example"]), "domains"),
            (call("AskUserQuestion", questions=[question]), "InputValidationError"),
            (call("Skill", skill="nothing-of-the-kind"), "nothing-of-the-kind"),
            ({"call": "Workflow", "args": {"name": "nothing-of-the-kind"}}, "not found"),
            (call("NotebookEdit", notebook_path=notebook, cell_id="none", new_source="2"), "not"),
        ]

    def found(self):
        tools = "TaskCreate,TaskUpdate,TaskGet,TaskList,WebFetch,WebSearch,NotebookEdit"
        return [(call("ToolSearch", query=f"select:{tools}", max_results=9), "TaskCreate is loaded")]

    def plain(self, work):
        note = work / "named.txt"
        return [
            (call("Bash", command="echo from bash", description="Say it", timeout=5000), "from bash"),
            (call("Write", file_path=str(note), content="one\ntwo\n"), "named.txt"),
            (call("Read", file_path=str(note), offset=1, limit=5), "two"),
            (call("Edit", file_path=str(note), old_string="two", new_string="three", replace_all=False), "named.txt"),
            (call("Glob", pattern="*.txt", path=str(work)), "named.txt"),
            (
                call("Grep", pattern="THR", path=str(work), output_mode="content", head_limit=5, **{"-n": True, "-i": True, "-C": 1}),
                "three",
            ),
        ]

    def asking(self, url):
        choices = [{"label": f"The {it} one", "description": f"It is {it}."} for it in ("first", "second")]
        question = {"question": "Which one?", "header": "Choice", "multiSelect": False, "options": choices}
        return [
            (call("AskUserQuestion", questions=[question]), ANSWER),
            (call("WebFetch", url=url, prompt="What does it say?"), FETCHED),
            (call("WebSearch", query="toolgate", allowed_domains=["example.com"]), "Nothing was found."),
        ]


class OldClaudeCode(ClaudeCode):
    name = "claude-code-2.1.197"
    folder = "claude-197"
    thin = ("ten-steps", "resume", "named-tools", "new-tools")

    # It disconnects after five minutes of pings, and retries without a stream.
    counts_pings = False

    def nothing(self):
        return call("TaskList")

    def failing(self, work, url):
        """The newer version's are run."""
        return []

    def newest(self, work):
        return []

    def found(self):
        """It has all tools at once, without a tool search."""
        return []


ALL = [ClaudeCode(), OldClaudeCode()]
