"""What the programs share that measure prefetch, or break what is around it: options, processes that end with them, an origin, tables on pages."""

import argparse
import datetime
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import machine
from processes import BOUND, CLEAN, end_all, start, started
from redis_server import Server


def fail(what, hint, code):
    print(f"error: {what}\nhint: {hint}", file=sys.stderr)
    raise SystemExit(code)


def say(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


# Options


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(message, f"see {self.prog} --help", 64)


def parser(script, description):
    result = Parser(prog=f"scripts/{script}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Where the programs are, and what was typed: scripts/lib/lab/start.sh.
    result.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    result.add_argument("--typed", default="", help=argparse.SUPPRESS)
    return result


def table_parser(script, description):
    """Of a program that writes a table."""
    result = parser(script, description)
    result.add_argument("--work", default="/var/tmp", help="a folder with room; all below is removed at the end (/var/tmp)")
    result.add_argument("--page", metavar="FILE", help="put the table into this page, in place of the one before")
    return result


def image_options(script, description, samples, count, what):
    """Of a program that measures images which it makes."""
    result = table_parser(script, description)
    result.add_argument("--samples", type=positive, default=samples, help=f"images of each kind ({samples})")
    result.add_argument("--count", type=positive, default=count, help=f"{what} ({count:,})")
    result.add_argument("--reps", type=positive, default=5, help="repetitions (5)")
    result.add_argument("--seed", type=int, default=1, help="of the images (1)")
    return result.parse_args()


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("wants a number from 1 on")
    return number


def chosen(text, known, what):
    """The names in a text with commas in between, each of which has to be known; all where there is no text."""
    names = text.split(",") if text else list(known)
    for name in names:
        if name not in known:
            fail(f"there is no {what} '{name}'", f"there are {', '.join(known)}", 64)
    return names


def kept_folder(path, prefix):
    """The folder that an option names, which has to be new or empty, or a temporary one."""
    folder = os.path.abspath(path or tempfile.mkdtemp(prefix=f"prefetch-{prefix}."))
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        fail(f"{folder} is not empty", "name another folder", 64)
    return folder


def verdict(options, folder, name, bad, kept, broken):
    """What is said at the end, and the exit code: the folder goes where nothing is bad and no option has named it."""
    print(f"{name}: {f'{broken}, everything is in {folder}' if bad else kept}")
    if not bad and not options.work:
        shutil.rmtree(folder)
    return int(bool(bad))


# Servers


def generate(binaries, folder, count, median, seed=1):
    """A folder of images; path, kind, size and SHA-256 of each."""
    words = [f"{binaries}/prefetch-origin", "generate", folder, "--count", str(count), "--median", str(median), "--seed", str(seed)]
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    with open(f"{folder}/manifest.tsv", encoding="ascii") as manifest:
        return [line.split() for line in manifest]


def pictures(binaries, folder, count, median):
    """The same, but for what is no picture that is decoded."""
    return [row for row in generate(binaries, folder, count, median) if row[0].rsplit(".", 1)[-1] in ("jpg", "png", "gif", "webp")]


def serve(binaries, folder, *options, log=None, environment=None):
    """prefetch-origin over a folder: the process, and its address without the last slash."""
    words = [f"{binaries}/prefetch-origin", "serve", folder, *options]
    child = start(words, log, subprocess.PIPE, environment)
    return child, child.stdout.readline().decode().strip().rstrip("/")


def body(url):
    """What a server here answers, past every proxy."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as reply:
        return reply.read()


def file_faults(folder):
    """The library that lets calls on files go wrong, to be preloaded: its head says how."""
    path, source = os.path.join(folder, "file_faults.so"), pathlib.Path(__file__).resolve().parents[1] / "matrix/file_faults.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path, source, "-ldl"], check=True)
    return path


def refusing(address="127.0.0.1"):
    """A socket and its port, bound and not listening: connections are refused, and nobody else gets the port."""
    closed = socket.socket()
    closed.bind((address, 0))
    return closed, closed.getsockname()[1]


class Rig:
    """Used with `with`: its folder and all processes are gone afterwards."""

    def __init__(self, options):
        self.binaries = options.binaries
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.folder = tempfile.mkdtemp(prefix="prefetch-", dir=os.path.abspath(options.work))
        self.environment = {**CLEAN, "XDG_STATE_HOME": self.path("state")}
        self.code = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_all()
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return f"{self.folder}/{name}"

    def program(self, name):
        return f"{self.binaries}/{name}"

    def start(self, words, name=None, output=None):
        return start(words, name and self.path(name + ".log"), output, self.environment, cwd=self.folder)

    def run(self, words, codes=(0,), input=os.devnull):
        """A program to its end: its wall and CPU seconds, and both of its outputs. Its exit code is `code`."""
        with open(self.path("run.log"), "wb") as log, open(input, "rb") as given:
            began = time.monotonic()
            child = subprocess.Popen(
                [*BOUND, *words], stdin=given, stdout=log, stderr=log, env=self.environment, cwd=self.folder, start_new_session=True
            )
            started.append(child)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - began
        started.remove(child)
        self.code = child.returncode = os.waitstatus_to_exitcode(status)
        with open(self.path("run.log"), encoding="utf-8", errors="replace") as log:
            text = log.read()
        if self.code not in codes:
            say(text[-2000:])
            fail(f"{os.path.basename(words[0])} ended with {self.code}", "its last lines are above", 70)
        return wall, usage.ru_utime + usage.ru_stime, text

    def coord(self, *words, **options):
        return self.run([self.program("prefetch-coord"), *words], **options)

    def one_worker(self, listed, cache, *words):
        """A run of one worker that nothing else holds back: its wall and CPU seconds."""
        fixed = ["-n", "1", "--allow-net", "127.0.0.0/8", "--max-per-host", "0", "--quiet", "--durability", "none"]
        return self.coord("run", listed, "--cache", cache, *fixed, *words)[:2]

    def redis(self, name="redis", *options):
        """A server that is ready."""
        os.makedirs(self.path(name))
        server = Server(self.path(name), options=options)
        server.start()
        server.wait()
        return server

    def serve(self, folder, *options):
        return serve(self.binaries, folder, *options, environment=self.environment)[1]

    def write(self, name, lines):
        path = self.path(name)
        with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
            file.writelines(line + "\n" for line in lines)
        return path

    def compile(self, name, *words):
        """A program, or a library with `-shared`, of C."""
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", self.path(name), *words], check=True)
        return self.path(name)


# Tables


def put(path, script, text):
    """Puts text between the marks of its script in a page, at its end where there are none yet."""
    begin, end = f"<!-- from scripts/{script} -->", f"<!-- end of scripts/{script} -->"
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    head, found, rest = whole.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        head, tail = whole.rstrip("\n") + "\n\n", "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{head}{begin}\n{text}\n{end}{tail}")


def publish(options, script, lines):
    """Prints a table with the command that made it, and puts it between its two marks of the page that is named."""
    text = "\n".join([*lines, "", f"`{options.typed}`"])
    print(text, flush=True)
    if options.page:
        put(options.page, script, text)


def heading(name, what):
    """A title with the date, and the machine in one line."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    cores = f"{os.cpu_count()} cores ({machine.processor()}), {machine.memory_gib():.1f} GiB"
    return [f"## {name}: {what}, {now}", "", f"{cores}; everything shares the cores.", ""]
