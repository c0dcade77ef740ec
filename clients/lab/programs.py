"""The SDKs: small programs of ours that use them as their manuals say."""


import install
from agents import call

PROGRAMS = install.ROOT / "clients" / "programs"


class Program:
    """A program with six tools of its own, which it runs by itself."""

    seconds = 90
    thin = ("ten-steps", "parallel")
    is_agent = False
    is_direct = False
    forgets = ()

    def __init__(self, name, file, folder, dialect, *options, resumes=False, direct=False):
        self.name, self.file, self.folder, self.dialect = name, file, folder, dialect
        self.options, self.can_resume, self.is_direct = options, resumes, direct

    def version(self):
        """The version of the package that its name begins with."""
        _, packages = install.versions()[self.folder]
        return next((it for name, it in packages.items() if OF[self.file] == name), "")

    def prepare(self, stage, model):
        """Nothing: all that it needs is on its command line."""

    def command(self, stage, model, prompt, again=False, options=()):
        place = install.ensure(self.folder)
        script = PROGRAMS / self.file
        if self.file.endswith(".py"):
            runner = [str(place / "bin" / "python"), str(script)]
        else:
            runner = [install.node(), str(script)]
        return [*runner, stage.url, model, prompt, *self.options]

    def environment(self, stage, model):
        # Modules are looked for beside the program, or here.
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


OF = {
    "anthropic_messages.py": "anthropic",
    "anthropic_runner.py": "anthropic",
    "openai_chat.py": "openai",
    "openai_responses.py": "openai",
    "openai_agents.py": "openai-agents",
    "google_genai.py": "google-genai",
    "langchain_tools.py": "langchain-openai",
    "litellm_tools.py": "litellm",
    "anthropic.mjs": "@anthropic-ai/sdk",
    "openai.mjs": "openai",
    "google.mjs": "@google/genai",
    "vercel.mjs": "ai",
}
PY, JS, CHAINS = "py", "js", "py-chains"
ALL = [
    Program("anthropic-py", "anthropic_messages.py", PY, "anthropic", "thinking=yes", resumes=True),
    Program("anthropic-py-whole", "anthropic_messages.py", PY, "anthropic", "stream=no", resumes=True),
    Program("anthropic-py-runner", "anthropic_runner.py", PY, "anthropic"),
    Program("openai-py-responses", "openai_responses.py", PY, "responses", resumes=True),
    Program("openai-py-responses-whole", "openai_responses.py", PY, "responses", "stream=no", resumes=True),
    Program("openai-py-responses-stored", "openai_responses.py", PY, "responses", "state=server"),
    Program("openai-py-chat", "openai_chat.py", PY, "chat", resumes=True),
    Program("openai-py-chat-whole", "openai_chat.py", PY, "chat", "stream=no", resumes=True),
    Program("google-genai-py", "google_genai.py", PY, "gemini", resumes=True),
    Program("google-genai-py-whole", "google_genai.py", PY, "gemini", "stream=no", resumes=True),
    Program("google-genai-py-auto", "google_genai.py", PY, "gemini", "calls=automatic"),
    Program("google-genai-py-auto-whole", "google_genai.py", PY, "gemini", "calls=automatic", "stream=no"),
    Program("google-genai-py-on-sim", "google_genai.py", PY, "gemini", resumes=True, direct=True),
    Program("google-genai-py-auto-on-sim", "google_genai.py", PY, "gemini", "calls=automatic", direct=True),
    Program("openai-agents-responses", "openai_agents.py", PY, "responses", "api=responses"),
    Program("openai-agents-chat", "openai_agents.py", PY, "chat", "api=chat"),
    Program("langchain-anthropic", "langchain_tools.py", CHAINS, "anthropic", "api=anthropic"),
    Program("langchain-responses", "langchain_tools.py", CHAINS, "responses", "api=responses"),
    Program("langchain-chat", "langchain_tools.py", CHAINS, "chat", "api=chat"),
    Program("langchain-google", "langchain_tools.py", CHAINS, "gemini", "api=google"),
    Program("litellm-anthropic", "litellm_tools.py", CHAINS, "anthropic", "api=anthropic"),
    Program("litellm-openai", "litellm_tools.py", CHAINS, "chat", "api=openai"),
    Program("litellm-gemini", "litellm_tools.py", CHAINS, "gemini", "api=gemini"),
    Program("anthropic-js", "anthropic.mjs", JS, "anthropic"),
    Program("anthropic-js-runner", "anthropic.mjs", JS, "anthropic", "calls=runner"),
    Program("openai-js-responses", "openai.mjs", JS, "responses", "api=responses"),
    Program("openai-js-chat", "openai.mjs", JS, "chat", "api=chat"),
    Program("openai-js-runtools", "openai.mjs", JS, "chat", "api=runTools"),
    Program("google-genai-js", "google.mjs", JS, "gemini"),
    Program("google-genai-js-auto", "google.mjs", JS, "gemini", "calls=automatic"),
    Program("google-genai-js-on-sim", "google.mjs", JS, "gemini", direct=True),
    Program("google-genai-js-auto-on-sim", "google.mjs", JS, "gemini", "calls=automatic", direct=True),
    Program("vercel-anthropic", "vercel.mjs", JS, "anthropic", "api=anthropic"),
    Program("vercel-responses", "vercel.mjs", JS, "responses", "api=responses"),
    Program("vercel-responses-unstored", "vercel.mjs", JS, "responses", "api=responses", "store=no"),
    Program("vercel-chat", "vercel.mjs", JS, "chat", "api=chat"),
    Program("vercel-compatible", "vercel.mjs", JS, "chat", "api=compatible"),
    Program("vercel-google", "vercel.mjs", JS, "gemini", "api=google"),
]
