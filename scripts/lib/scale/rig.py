"""What a measurement starts and ends: redis-server, workers, commands; and what each of them cost."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import machine
from resp import Connection, Failure

WORKERS = 3
# A script that takes longer than this is written down (SLOWLOG), in microseconds.
SLOW = 5_000


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(what, hint, code):
    print(f"error: {what}\nhint: {hint}", file=sys.stderr)
    raise SystemExit(code)


def status_bytes(pid, name):
    """A size of a running process (proc(5)), None where it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            found = re.search(rf"^{name}:\s*(\d+) kB", status.read(), re.M)
    except OSError:
        return None
    return int(found.group(1)) * 1024 if found else None


class Child:
    """A process with its output in files, and what it took: CPU by wait4(2), peak memory by its own high-water mark."""

    # Whether what is started goes before other programs (machine.prefer).
    priority = False

    def __init__(self, words, folder, name):
        self.words = words
        self.out, self.err = f"{folder}/{name}.out", f"{folder}/{name}.err"
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self.started = time.monotonic()
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=environment, start_new_session=True
            )
        self.peak, self.cpu, self.wall, self.code = 0, 0.0, 0.0, None
        if Child.priority:
            machine.prefer(self.process.pid)

    @property
    def pid(self):
        return self.process.pid

    def look(self):
        """Takes a look at its memory; whether it still runs."""
        if self.code is not None:
            return False
        self.peak = max(self.peak, status_bytes(self.pid, "VmHWM") or 0)
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return True
        self.wall = time.monotonic() - self.started
        self.cpu = usage.ru_utime + usage.ru_stime
        self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
        return False

    def wait(self, limit=None, step=0.02):
        end = None if limit is None else time.monotonic() + limit
        while self.look():
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(step)
        return True

    def stop(self, kind=signal.SIGTERM):
        if self.look():
            self.process.send_signal(kind)
            if not self.wait(60):
                self.process.kill()
                self.wait()

    def seconds(self):
        return self.cpu if self.code is not None else machine.process_seconds(self.pid)

    def text(self):
        with open(self.out, encoding="utf-8", errors="replace") as file:
            return file.read()

    def errors(self):
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read()


class Redis:
    """A server of its own, set up as the private one of `run` is: an append-only file, written out once a second."""

    def __init__(self, rig, name):
        self.folder = f"{rig.work}/{name}"
        os.makedirs(self.folder)
        self.socket = f"{self.folder}/s"
        self.url = f"unix://{self.socket}"
        self.child = rig.start(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.folder, "--save", "", "--appendonly", "yes",
             "--appendfsync", "everysec", "--daemonize", "no", "--maxmemory-policy", "noeviction",
             "--slowlog-log-slower-than", str(SLOW), "--slowlog-max-len", "4096", "--latency-tracking", "yes"],
            self.folder, "redis")  # fmt: skip
        for _ in range(1000):
            try:
                self.connection = Connection(self.socket)
                self.connection.command("PING")
                break
            except (OSError, Failure):
                if not self.child.look():
                    fail("redis-server did not start", self.child.errors().strip() or "see its log", 69)
                time.sleep(0.01)
        else:
            fail("redis-server does not answer", self.child.errors().strip(), 69)
        self.begin()

    def command(self, *words):
        return self.connection.command(*words)

    def info(self):
        pairs = (line.split(":", 1) for line in self.command("INFO", "everything").decode().splitlines() if ":" in line)
        return dict(pairs)

    def begin(self):
        """From here on costs are counted."""
        self.command("CONFIG", "RESETSTAT")
        self.command("SLOWLOG", "RESET")
        self.before = self.info()

    def cost(self):
        """What it took since then."""
        now = self.info()

        def cpu(facts):
            return float(facts["used_cpu_user"]) + float(facts["used_cpu_sys"])

        quantiles = {}
        for name, value in now.items():
            if name.startswith("latency_percentiles_usec_evalsha"):
                quantiles = dict(part.split("=") for part in value.split(","))
        stat = dict(part.split("=") for part in now.get("cmdstat_evalsha", "calls=0,usec=0").split(","))
        slow = [entry for entry in self.command("SLOWLOG", "GET", "4096") if entry[3][0].lower() in (b"evalsha", b"eval")]
        return {
            "cpu": cpu(now) - cpu(self.before),
            "peak": int(now["used_memory_peak"]) - int(self.before["used_memory"]),
            "left": int(now["used_memory"]) - int(self.before["used_memory"]),
            "p99": float(quantiles.get("p99", "nan")) / 1000,
            "p999": float(quantiles.get("p99.9", "nan")) / 1000,
            "scripts": int(stat["calls"]),
            "slow": len(slow),
            "slowest": max((entry[2] for entry in slow), default=0) / 1000,
        }

    def stop(self):
        self.connection.close()
        self.child.stop()


class Workers:
    """Three workers over one cache."""

    def __init__(self, rig, redis, cache, name, options=()):
        self.children = [
            rig.start(
                [rig.program("worker"), "--redis", redis.url, "--cache", cache, "--allow-net", "127.0.0.0/8", *options],
                rig.work, f"{name}-worker{number}")  # fmt: skip
            for number in range(WORKERS)
        ]
        for _ in range(3000):
            if redis.command("ZCARD", "prefetch:{default}:workers") == WORKERS:
                break
            for child in self.children:
                if not child.look():
                    fail("a worker ended at once", child.errors().strip(), 70)
            time.sleep(0.01)

    def stop(self):
        """Ends them in order; returns the sum of what they say of themselves."""
        for child in self.children:
            if child.look():
                child.process.send_signal(signal.SIGTERM)
        counts = {}
        for child in self.children:
            if not child.wait(60):
                child.stop(signal.SIGKILL)
            for number, name in last_line(child.text()):
                counts[name] = counts.get(name, 0) + number
        return counts

    @property
    def cpu(self):
        return sum(child.seconds() for child in self.children)

    @property
    def peak(self):
        for child in self.children:
            child.look()
        return max(child.peak for child in self.children)


def last_line(text):
    """The counts of `prefetch-worker host:pid finished 4,812 skipped 188 (downloaded 4,700, …)`."""
    lines = [line for line in text.splitlines() if line.startswith("prefetch-worker ")]
    words = lines[-1].split() if lines else []
    found = [(words[place + 1], words[place]) for place in range(len(words) - 1) if words[place].lstrip("(").isalpha()]
    return [(int(re.sub(r"\D", "", number)), name.lstrip("(")) for number, name in found if re.match(r"[\d,]+\W*$", number)]


class Rig:
    def __init__(self, work, binaries):
        self.work = work
        self.binaries = binaries
        self.children = []

    def program(self, name):
        return f"{self.binaries}/prefetch-{name}"

    def start(self, words, folder, name):
        child = Child(words, folder, name)
        self.children.append(child)
        return child

    def run(self, words, name, codes=(0,)):
        """Runs a command to its end."""
        child = self.start(words, self.work, name)
        child.wait()
        if child.code not in codes:
            fail(f"{' '.join(words[:3])} … ended with {child.code}", child.errors().strip()[-2000:] or "it said nothing", 70)
        return child

    def submit(self, redis, path, name, *options, codes=(0,)):
        """`submit --wait`, and the batch as it says at the end."""
        words = [self.program("coord"), "submit", path, "--redis", redis.url, "--wait", "--json", *options]
        child = self.run(words, name, codes)
        return child, json.loads(child.text().splitlines()[-1])

    def fsck(self, redis, name):
        """Whether every invariant of every batch holds; and what the command took."""
        child = self.run([self.program("coord"), "fsck", "--redis", redis.url], name, (0, 1))
        return child.code == 0, child

    def seconds(self):
        """CPU of everything it has started."""
        return sum(child.seconds() for child in self.children)

    def end(self):
        for child in self.children:
            child.stop(signal.SIGKILL)


class Noise:
    """How many cores other programs used between two moments, a look every few seconds."""

    def __init__(self, rig, extra=lambda: 0.0):
        self.own = lambda: rig.seconds() + extra() + time.process_time()
        self.began = time.monotonic()
        self.first = (machine.busy_seconds(), self.own())

    def cores(self):
        busy, own = machine.busy_seconds() - self.first[0], self.own() - self.first[1]
        return max(0.0, busy - own) / max(0.001, time.monotonic() - self.began)


class Sampler(threading.Thread):
    """Calls `body` again and again beside the measurement."""

    def __init__(self, interval, body):
        super().__init__(daemon=True)
        self.interval, self.body, self.over = interval, body, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(self.interval):
            self.body()

    def stop(self):
        self.over.set()
        self.join()
