"""Codex: command line, tool names, and completion."""

import json
import shlex

from agent import PATIENCE_MS, Agent, call
from scenarios import DONE, OLD, Scenario, thinking
from stage import KEY


class Codex(Agent):
    """Codex as `toolgate run codex` starts it."""

    name = "codex"
    dialect = "responses"
    folder = "codex"
    # It drops a tool with `required` inside a property.
    mcp_most = 39

    def prepare(self, stage, model):
        home = stage.home / "codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text('approval_policy = "never"\nsandbox_mode = "danger-full-access"\n')

    def command(self, stage, model, prompt, again=False, options=()):
        start = [stage.binary, "run", "codex", "--program", self.program(), "--gateway", stage.url, "--model", model, "--"]
        return [*start, *self.exec(prompt, again, options)]

    def program(self):
        return self.binary("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")

    def exec(self, prompt, again, options):
        resume = ["resume", "--last"] if again else []
        return ["exec", "--skip-git-repo-check", "--json", *options, *resume, prompt]

    def environment(self, stage, model):
        return {"CODEX_HOME": str(stage.home / "codex")}

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

    can = ("compaction", "impatience")

    def granted(self, wish, stage, model):
        match wish:
            case "compaction":
                return ["-c", f"model_auto_compact_token_limit={self.compacts_at}"], {}
            case "impatience":
                return ["-c", f"model_providers.toolgate.stream_idle_timeout_ms={PATIENCE_MS}"], {}

    def finds(self, *words):
        return [call("tool_search", query=" ".join(words), limit=60)]

    def delegate(self, prompt):
        return call("multi_agent_v1__spawn_agent", message=prompt)

    works_beside = True

    def awaits(self, place):
        return [self.shell(f"until [ -e {shlex.quote(str(place))} ]; do sleep 0.1; done; sleep 1")]

    sums_up = ("CONTEXT CHECKPOINT COMPACTION",)
    # It reads only a part of a long file.
    compacts_at = 11_000

    def structured(self, stage, schema):
        place = stage.home / "schema.json"
        place.write_text(json.dumps(schema))
        return ["--output-schema", str(place)], lambda value: {"text": json.dumps(value)}


class CodexBuiltIn(Codex):
    """Codex with its built-in provider, which tries a WebSocket first."""

    name = "codex-websocket"
    can_resume = False

    def finds(self, *words):
        """Without a catalogue it declares everything at once."""
        return []
    # The built-in provider has fixed timeouts, and leaves summaries to the gateway.
    can = ("compaction",)
    sums_up = ("Write a summary of this conversation",)
    thin = ("ten-steps", "parallel", "compaction")

    def prepare(self, stage, model):
        (stage.home / "codex").mkdir(exist_ok=True)

    def command(self, stage, model, prompt, again=False, options=()):
        command = [self.program(), *self.exec(prompt, again, options)]
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


class CataloguedModel(Scenario):
    """Codex knows the model: it offers all its tools, and the effort is sent."""

    name = "catalogue"
    agents_only = True
    thin = True

    def suits(self, client):
        return isinstance(client, Codex) and not isinstance(client, CodexBuiltIn)

    def turns(self, box, work):
        patch = "*** Begin Patch\n*** Add File: patched.txt\n+by a patch\n*** End Patch\n"
        return [thinking(call("apply_patch", input=patch)), {"text": DONE}]

    def check(self, run):
        yield from run.ended_well()
        yield from run.was_clean()
        yield from run.holds("patched.txt", "by a patch\n")
        if missing := {"apply_patch", "tool_search", "exec_command"} - run.declared():
            yield f"not declared: {sorted(missing)}"
        if "Model metadata" in run.output:
            yield "Codex has no description of the model"
        settings = run.requests[0]["body"].get("generationConfig", {}).get("thinkingConfig", {})
        if run.model != OLD and settings.get("thinkingLevel", "").lower() != "high":
            yield f"the effort is not sent: {settings}"


ALL = [Codex(), CodexBuiltIn()]
SCENARIOS = [CataloguedModel()]
