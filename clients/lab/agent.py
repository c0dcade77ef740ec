"""What the lab knows of a coding agent, whichever it is."""

import shlex

import install

# Less than the silence that a model is given, and by far more than the time between two signs of life.
PATIENCE_MS = 8_000


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
    # Scenarios that it cannot play, in its words.
    faults = {}
    # What the client itself loses when it resumes a session, in the simulator's words.
    forgets = ()
    # What it costs that it goes on from half an answer as if the model had stopped there.
    goes_on_by = ()
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

    def delegate(self, prompt):
        """Gives work to a sub-agent; None where the client has none."""

    def hand_back(self, words):
        """The turn in which a sub-agent ends."""
        return {"text": words}

    # Whether a sub-agent works while its master goes on.
    works_beside = False

    def others_are(self, prompt):
        """How the first and the second request of a sub-agent are known."""
        return {"contains": prompt}, {"contains": prompt} if self.works_beside else {}

    def awaits(self, place):
        """Calls that wait for what a sub-agent makes, where it works beside its master."""
        return []

    def browse(self, query):
        """Searches the web; None where the client cannot."""

    def structured(self, stage, schema):
        """Options that ask for an answer of this schema, and the model's turn that gives it; None if it cannot."""

    # Which of its settings the lab knows: "no-tools", "compaction", "impatience", "question".
    can = ()

    def granted(self, wish, stage, model):
        """Sets it so; returns more arguments and more environment."""
        raise NotImplementedError

    def named(self, work, url):
        """Calls of tools that must work under their own names, each with words of its result."""
        return []

    def newly_named(self, work, url):
        """The same of a newer generation."""
        return []

    # What it calls a tool that is called by an older name.
    aliases = {}
    # What the user says to make it sum the session up; None where it does so by itself.
    compacts_by = None
    # Whether it does so only before the user's next words.
    compacts_between = False
    # The words with which it asks for a summary.
    sums_up = ()
    # At how many tokens: more than a beginning has, less than a session with a long file in it.
    compacts_at = 16_000
    # Whether it takes the signs of life of its dialect for such.
    counts_pings = True
    # What the user says to see how full the context is.
    counts_by = None

    def mcp_call(self, tool, **args):
        """A call of a tool of the odd server."""
        return {"call": self.mcp_name(tool), "args": args}

    def mcp_name(self, tool):
        raise NotImplementedError


def call(name, **args):
    return {"call": name, "args": args}
