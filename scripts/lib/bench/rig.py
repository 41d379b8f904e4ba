"""What the smaller benchmarks share: a folder of their own, and programs that end with it."""

import argparse
import datetime
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine
import page


def fail(what, hint, code):
    print(f"error: {what}\nhint: {hint}", file=sys.stderr)
    raise SystemExit(code)


def say(text):
    print(text, file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(message, f"see {self.prog} --help", 64)


def parser(name, description):
    result = Parser(prog=f"scripts/bench {name}", description=description)
    result.add_argument("--work", default="/var/tmp", help="a folder with room; all below is removed at the end (/var/tmp)")
    result.add_argument("--page", metavar="FILE", help="put the table into this page, in place of the one before")
    # What scripts/bench has built, and what was typed.
    result.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    result.add_argument("--typed", required=True, help=argparse.SUPPRESS)
    return result


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("wants a number from 1 on")
    return number


def cases(text, known):
    """The names in a text with commas in between, each of which has to be known."""
    names = text.split(",")
    for name in names:
        if name not in known:
            fail(f"there is no case '{name}'", f"one of {', '.join(known)}", 64)
    return names


class Rig:
    """Used with `with`: its folder and its programs are gone afterwards."""

    def __init__(self, options):
        self.binaries = options.binaries
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.folder = tempfile.mkdtemp(prefix="prefetch-bench-", dir=os.path.abspath(options.work))
        self.children = []
        names = [name for name in os.environ if name.lower().endswith("_proxy") or name in ("REDIS_URL", "PREFETCH_REDIS_URL")]
        self.environment = {name: value for name, value in os.environ.items() if name not in names}
        self.environment["XDG_STATE_HOME"] = self.path("state")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return f"{self.folder}/{name}"

    def program(self, name):
        return f"{self.binaries}/{name}"

    def start(self, words, **options):
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.DEVNULL)
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=self.environment, cwd=self.folder, **options)
        self.children.append(child)
        return child

    def run(self, words, codes=(0,)):
        """A program to its end, its CPU and wall seconds; both of its outputs."""
        with open(self.path("run.log"), "wb") as log:
            began = time.monotonic()
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, cwd=self.folder
            )
            self.children.append(child)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        with open(self.path("run.log"), encoding="utf-8", errors="replace") as log:
            text = log.read()
        if child.returncode not in codes:
            say(text[-2000:])
            fail(f"{os.path.basename(words[0])} ended with {child.returncode}", "its last lines are above", 70)
        return wall, usage.ru_utime + usage.ru_stime, text

    def redis(self, *options):
        """A throw-away server; the URL and the process."""
        socket = self.path("redis.sock")
        words = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", self.folder, "--save", "", *options]
        child = self.start(words)
        for _ in range(1000):
            probe = subprocess.run(["redis-cli", "-s", socket, "PING"], capture_output=True, check=False)
            if probe.stdout.strip() == b"PONG":
                return f"unix://{socket}", child
            time.sleep(0.01)
        return fail("redis-server did not start", "is it installed?", 69)

    def serve(self, folder, *options):
        """prefetch-origin over a folder; its address without the last slash."""
        words = [self.program("prefetch-origin"), "serve", folder, *options]
        child = self.start(words, stdout=subprocess.PIPE)
        return child.stdout.readline().decode().strip().rstrip("/")

    def write(self, name, lines):
        path = self.path(name)
        with open(path, "w", encoding="ascii") as file:
            file.writelines(line + "\n" for line in lines)
        return path


def publish(options, name, lines):
    """Prints a table, and puts it between its two marks of the page that is named."""
    page.publish(options.page, f"scripts/bench {name}", [*lines, "", f"`{options.typed}`"])


def heading(name, what):
    """A title with the date, and the machine in one line."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    cores = f"{os.cpu_count()} cores ({machine.processor()}), {machine.memory_gib():.1f} GiB"
    return [f"## {name}: {what}, {now}", "", f"{cores}; everything shares the cores.", ""]
