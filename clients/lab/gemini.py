"""Gemini CLI: command line, tool names, and completion."""

import json

import install
from agent import Agent, call
from stage import KEY


class GeminiCli(Agent):
    name = "gemini-cli"
    dialect = "gemini"
    folder = "gemini"
    # It sends every result twice and no signature; the gateway repairs that after a refusal.
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

    def delegate(self, prompt):
        return call("invoke_agent", agent_name="generalist", prompt=prompt)

    def hand_back(self, words):
        return {"say": [call("complete_task", result={"response": words})]}

    def others_are(self, prompt):
        return {"tool": "complete_task"}, {"tool": "complete_task"}

    compacts_between = True
    sums_up = ("state_snapshot",)
    can = ("no-tools", "compaction")

    def granted(self, wish, stage, model):
        match wish:
            case "no-tools":
                self.write_settings(stage, {"tools": {"core": ["none"]}})
            case "compaction":
                self.write_settings(stage, {"model": {"compressionThreshold": self.compacts_at / 1_048_576}})
        return [], {}


ALL = [GeminiCli()]
