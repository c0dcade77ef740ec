"""opencode in each of the four dialects."""

import json

from agent import PATIENCE_MS, Agent, call
from page import WORDS
from stage import KEY


class OpenCode(Agent):
    folder = "opencode"
    thin = ("ten-steps",)

    def __init__(self, dialect, package, path):
        self.name = f"opencode-{dialect}"
        # Google's dialect names no issuer, so a foreign signature is known only after a refusal.
        self.renamed_calls_need = ("placeholders", "refusals") if dialect == "gemini" else ("placeholders",)
        self.goes_on_by = ("refusals",) if dialect == "gemini" else ()
        self.dialect, self.package, self.path = dialect, package, path

    def prepare(self, stage, model):
        self.write_settings(stage, model, {})

    def write_settings(self, stage, model, more, context=1_000_000, output=32_000, options=()):
        folder = stage.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        provider = {
            "npm": self.package,
            "options": {"baseURL": stage.url + self.path, "apiKey": KEY, **dict(options)},
            "models": {
                model: {
                    "tool_call": True,
                    "reasoning": True,
                    # Without this it does not send images and PDFs to the model.
                    "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
                    "limit": {"context": context, "output": output},
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
        """opencode has no tool without arguments."""

    def look(self, path):
        return self.read(path)

    def delegate(self, prompt):
        return call("task", description="A part of it", prompt=prompt, subagent_type="general")

    def named(self, work, url):
        todo = {"content": "Write it", "status": "in_progress", "priority": "high"}
        return [
            (call("todowrite", todos=[todo]), "Write it"),
            (call("webfetch", url=url, format="text"), WORDS),
        ]

    @property
    def can(self):
        # Google's dialect has no keep-alive, so only a longer timeout helps.
        return ("no-tools", "compaction") + (("impatience",) if self.dialect != "gemini" else ())

    sums_up = ("summary",)

    def granted(self, wish, stage, model):
        match wish:
            case "no-tools":
                self.write_settings(stage, model, {"permission": {"*": "deny"}})
            case "compaction":
                self.write_settings(stage, model, {}, context=self.compacts_at + 1000, output=1000)
            case "impatience":
                # Timeout for the head of an answer, and for each chunk.
                patience = {"headerTimeout": PATIENCE_MS, "chunkTimeout": PATIENCE_MS}
                self.write_settings(stage, model, {}, options=patience)
        return [], {}


ALL = [
    OpenCode("anthropic", "@ai-sdk/anthropic", "/v1"),
    OpenCode("responses", "@ai-sdk/openai", "/v1"),
    OpenCode("chat", "@ai-sdk/openai-compatible", "/v1"),
    OpenCode("gemini", "@ai-sdk/google", "/v1beta"),
]
