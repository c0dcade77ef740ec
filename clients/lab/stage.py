"""Environment of a client: simulator, gateway, relay, and an empty home folder."""

import ctypes
import fcntl
import functools
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import install
from page import Page
from relay import Relay

CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
KEY = "test-key"
# For the simulator's control endpoints; each simulator here is on loopback, for one run.
CONTROL_KEY = secrets.token_hex(16)


def loopback_only():
    """Leaves every network but loopback; returns the reason if it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNET) != 0:
        # Without root it needs a user namespace, if the machine allows one.
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            return os.strerror(ctypes.get_errno())
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    # Same as `ip link set lo up`, for machines without `ip`.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        except OSError as error:
            raise SystemExit(f"error: the loopback device stays down: {error}") from error
    return None


class Server:
    """A `toolgate` server process, with the address that it prints."""

    def __init__(self, binary, arguments, log, cwd):
        self.log = open(log, "w")
        self.process = subprocess.Popen(
            [binary, *arguments],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            cwd=cwd,
            env={"PATH": os.defpath, "HOME": str(cwd), "TOOLGATE_SIM_CONTROL_KEY": CONTROL_KEY},
        )
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError(f"{arguments[0]} does not start, see {log}")
        self.port = int(line.strip().rsplit(":", 1)[1])

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def control(url, what):
    """Reads a control endpoint of the simulator."""
    request = urllib.request.Request(
        f"{url}/__sim/{what}", headers={"x-toolgate-control-key": CONTROL_KEY}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Stage:
    """Servers and folders of one run; a context manager."""

    def __init__(self, binary, options=(), direct=False):
        self.folder = Path(tempfile.mkdtemp(prefix="toolgate-lab-"))
        self.home = self.folder / "home"
        self.work = self.folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.binary = binary
        self.options = list(options)
        self.direct = direct
        self.sim = self.gateway = self.relay = None
        self.output = ""

    def begin(self, script):
        """Starts the servers. A direct stage has no gateway."""
        script_file = self.folder / "script.json"
        script_file.write_text(json.dumps(script, indent=1))
        self.sim = Server(
            self.binary,
            ["sim", "--listen", "127.0.0.1:0", "--script", str(script_file)],
            self.folder / "sim.log",
            self.folder,
        )
        if not self.direct:
            self.start_gateway("gateway.log")
        self.relay = Relay((self.gateway or self.sim).port)
        self.url = f"http://127.0.0.1:{self.relay.port}"

    def start_gateway(self, log):
        upstream = f"http://127.0.0.1:{self.sim.port}"
        self.gateway = Server(
            self.binary,
            ["serve", "--listen", "127.0.0.1:0", "--upstream-url", upstream, *self.options],
            self.folder / log,
            self.folder,
        )

    def restart_gateway(self):
        """Replaces the gateway by another one without shared state."""
        if self.direct:
            return
        self.gateway.stop()
        self.start_gateway("gateway-2.log")
        self.relay.target = ("127.0.0.1", self.gateway.port)

    @functools.cached_property
    def page(self):
        """The lab's web page."""
        return Page(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.relay:
            self.relay.close()
        if "page" in self.__dict__:
            self.page.close()
        for server in (self.gateway, self.sim):
            if server:
                server.stop()

    def window(self, what):
        """Requests that the simulator received."""
        return control(f"http://127.0.0.1:{self.sim.port}", what)

    def run(self, command, environment=(), seconds=90, stop_at=None):
        """Runs a client to its end or to its time limit, or interrupts it once a file exists."""
        environment = {
            "HOME": str(self.home),
            "PATH": os.defpath + ":/usr/local/bin",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": str(self.folder),
            # Compiled once for all runs, outside the folder of our programs.
            "PYTHONPYCACHEPREFIX": str(install.FOLDER / "compiled"),
            **dict(environment),
        }
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.work,
            env=environment,
            start_new_session=True,
        )
        if stop_at:
            threading.Thread(target=interrupt, args=(process, stop_at), daemon=True).start()
        try:
            out, err = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            code = None
        ended = Ended(code, decoded(out), decoded(err), time.monotonic() - began)
        self.output += f"$ {' '.join(command)}\n{ended.out}\n{ended.err}\n[exit {code}, {ended.took:.1f} s]\n"
        return ended

    def keep(self, place):
        """Writes all traffic to files, for debugging."""
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "output.txt").write_text(self.output)
        traffic = [exchange.to_json() for exchange in self.relay.exchanges()]
        (place / "client.json").write_text(json.dumps(traffic, indent=1, ensure_ascii=False))
        for what in ("requests", "counters"):
            try:
                seen = json.dumps(self.window(what), indent=1, ensure_ascii=False)
            except (OSError, urllib.error.URLError) as error:
                seen = str(error)
            (place / f"sim-{what}.json").write_text(seen)
        for log in [*self.folder.glob("*.log"), self.folder / "script.json"]:
            shutil.copy(log, place)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def interrupt(process, place):
    """Interrupts a program once a file exists, and kills it if it does not stop."""
    while process.poll() is None and not place.exists():
        time.sleep(0.05)
    for sign, seconds in ((signal.SIGINT, 5), (signal.SIGKILL, 0)):
        try:
            os.killpg(process.pid, sign)
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


class Ended:
    def __init__(self, code, out, err, took):
        self.code, self.out, self.err, self.took = code, out, err, took

    def lines(self):
        """Output with one JSON value per line."""
        values = []
        # Not splitlines(), which treats U+2028 within a string as a line end.
        for line in self.out.split("\n"):
            try:
                values.append(json.loads(line))
            except ValueError:
                pass
        return values


def decoded(data):
    return data.decode("utf-8", "replace")
