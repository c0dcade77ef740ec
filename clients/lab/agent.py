"""Base class of coding agents in the lab."""

import shlex

import install

# Shorter than the upstream's idle timeout, and far longer than the interval of keep-alives.
PATIENCE_MS = 8_000


class Agent:
    """A program that runs its own tools in the folder that it is started in."""

    dialect = ""
    folder = ""
    seconds = 120
    can_resume = True
    # Scenarios that it runs in the selected matrix; all by default.
    thin = None
    is_agent = True
    is_direct = False
    # Scenarios that it cannot run, with its error text.
    faults = {}
    # Counters of the simulator for losses that the client itself causes when it resumes a session.
    forgets = ()
    # Counters for clients that continue a truncated answer as if it were complete.
    goes_on_by = ()
    # Counters for clients that rename calls of unknown tools.
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

    # Number of the odd server's tools that the client declares; some clients drop a few.
    mcp_most = 40

    def look(self, path):
        """Reads an image or a PDF; None if the client cannot."""

    def delegate(self, prompt):
        """Starts a sub-agent; None if the client has none."""

    def hand_back(self, words):
        """The turn in which a sub-agent ends."""
        return {"text": words}

    # Whether a sub-agent runs concurrently with its parent.
    works_beside = False

    def others_are(self, prompt):
        """Expectations that match the first and the second request of a sub-agent."""
        return {"contains": prompt}, {"contains": prompt} if self.works_beside else {}

    def awaits(self, place):
        """Calls that wait for the output of a concurrent sub-agent."""
        return []

    def finds(self, *words):
        """Calls that load tools which the client does not declare at once."""
        return []

    def browse(self, query):
        """Searches the web; None if the client cannot."""

    def structured(self, stage, schema):
        """Options that request an answer by this schema, and the model's turn with it; None if unsupported."""

    # Settings that the lab can change: "no-tools", "compaction", "impatience", "question".
    can = ()

    def granted(self, wish, stage, model):
        """Applies a setting; returns further arguments and environment variables."""
        raise NotImplementedError

    def named(self, work, url):
        """Calls of tools that must work under their own names, each with a part of its result."""
        return []

    def newly_named(self, work, url):
        """Calls of the newer generation of tools."""
        return []

    def failing(self, work, url):
        """Calls that fail, each with a part of its error."""
        return []

    # Current names of tools that are called by an older name.
    aliases = {}
    # Prompt that makes it summarize the session; None if it does so automatically.
    compacts_by = None
    # Whether it does so only before the user's next prompt.
    compacts_between = False
    # Text of its request for a summary.
    sums_up = ()
    # Token count that triggers it: more than a new session has, less than one with a long file.
    compacts_at = 16_000
    # Whether it accepts the keep-alives of its dialect.
    counts_pings = True
    # Prompt that shows the usage of the context.
    counts_by = None

    def mcp_call(self, tool, **args):
        """A call of a tool of the odd server."""
        return {"call": self.mcp_name(tool), "args": args}

    def mcp_name(self, tool):
        raise NotImplementedError


def call(name, **args):
    return {"call": name, "args": args}
