"""scripts/chaos sick: two workers of one queue, of which one is sick for good, and a list of which most hosts are dead.

Each kind of sickness has a queue, a list of 1,500 URLs on 100 hosts and caches of its own; the sick worker is there before the list is.
Its batch has to end while the sickness lasts, each URL as if there were only the healthy worker, and no good URL on the blacklist.
Those with a network or a file system of their own need root; without, they are left out, and are named.
"""

import collections
import errno
import os
import signal
import socket
import subprocess
import sys
import time

import processes
import rig
from outcomes import outcome
from redis_server import Server

ROOT = "prefetch:{default}"
LEASE = 3
# Leases that a sick worker may hold its jobs, and seconds for the rest of the list.
LEASES, REST = 6, 40

OWN_NETWORK = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def file_system(size):
    """A command with its cache on a file system of its own."""
    return lambda test: ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} none {test.cache("sick")} && exec "$@"', "sh"]


class Kind:
    def __init__(self, what, around=None, words=(), variables=(), names=False, dead=False, root=False):
        self.what, self.names, self.dead, self.root = what, names, dead, root
        self.around = around or (lambda test: [])
        self.words = words if callable(words) else lambda test: list(words)
        self.variables = variables if callable(variables) else lambda test: dict(variables)


def faulty(call, number, begin=1):
    """Each such call on a file of the cache fails with this error from the `begin`th on."""
    return lambda test: {
        "LD_PRELOAD": test.library, "FAULT_ROOT": test.cache("sick"), "FAULT_CALL": call, "FAULT_FROM": str(begin),
        "FAULT_DO": str(number), "FAULT_HIT": test.hit,
    }


KINDS = {
    "none": Kind("both are well"),
    "dead-hosts": Kind("both are well, and 60 of 100 hosts are dead", dead=True),
    "no-network": Kind("no route to any address", around=lambda test: ["unshare", "-n"], root=True),
    "refused": Kind("every connect is refused", around=lambda test: OWN_NETWORK, root=True),
    "portal": Kind(
        "every request is answered by a page",
        around=lambda test: [
            "unshare", "-n", "sh", "-c",
            f'ip link set lo up && {{ {test.world.binaries}/prefetch-origin serve . --portal --address 0.0.0.0 --port {test.world.port} & exec "$@"; }}', "sh",
        ],
        root=True,
    ),
    "resolver": Kind("the resolver is silent", words=lambda test: ["--dns-servers", test.world.mute], names=True),
    "proxy": Kind("its proxy is dead", words=lambda test: ["--proxy", f"http://127.0.0.1:{test.world.closed_port}"]),
    "settings": Kind("the addresses are closed to it", words=["--deny-net", "127.1.0.0/16"]),
    "filter": Kind("its filter excludes half of the URLs", words=["--url-filter", "[02468]$"]),
    "full": Kind("its disk is full", around=file_system("2m"), root=True),
    "read-only": Kind("its file system has become read-only", variables=faulty("openat2", errno.EROFS, 50)),
    "store": Kind("no file of its gets its name (EIO)", variables=faulty("linkat", errno.EIO, 20)),
    "sync": Kind("its disk takes nothing for certain (EIO)", variables=faulty("syncfs", errno.EIO)),
}


class World:
    """What all kinds share: an origin of many hosts, a resolver, and what does not answer."""

    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder
        log, corpus = os.path.join(folder, "origin.log"), os.path.join(folder, "corpus")
        self.pictures = [path for path, *_ in rig.pictures(binaries, corpus, 150, 6000)]
        self.origin, url = rig.serve(binaries, corpus, "--address", "0.0.0.0", "--delay", "30ms-60ms", log=log)
        self.port = int(url.rsplit(":", 1)[1])
        self.resolver = processes.start([f"{binaries}/prefetch-origin", "dns", "--listen", "127.0.0.1:0"], log, output=subprocess.PIPE)
        self.names = self.resolver.stdout.readline().decode().split()[-1]
        silent = socket.socket(type=socket.SOCK_DGRAM)
        silent.bind(("127.0.0.1", 0))
        closed, self.closed_port = rig.refusing("0.0.0.0")
        self.sockets = (silent, closed)
        self.mute = f"127.0.0.1:{silent.getsockname()[1]}"
        self.library = rig.file_faults(folder)


class Test:
    def __init__(self, world, name):
        self.world, self.name, self.kind = world, name, KINDS[name]
        self.folder = os.path.join(world.folder, name)
        os.makedirs(self.folder)
        self.library, self.hit = world.library, os.path.join(self.folder, "hit")
        self.redis = Server(self.folder)
        self.problems = []

    def cache(self, worker):
        path = os.path.join(self.folder, worker)
        os.makedirs(path, exist_ok=True)
        return path

    def write(self, path):
        """1,500 URLs of 100 hosts in turn; what each has to end as."""
        world, wanted = self.world, []
        with open(path, "w", encoding="ascii") as file:
            for n in range(1500):
                host = n % 100
                isDead = self.kind.dead and host < 60
                address = f"h{host}.test" if self.kind.names else f"127.1.{'9' if isDead else '1'}.{host + 1}"
                port = world.closed_port if isDead else world.port
                file.write(f"http://{address}:{port}/{world.pictures[n % len(world.pictures)]}?{n}\n")
                wanted.append("connect" if isDead else "downloaded")
        return wanted

    def worker(self, name):
        words = [os.path.join(self.world.binaries, "prefetch-worker"), "--redis", self.redis.url, "--cache", self.cache(name)]
        words += ["--lease", f"{LEASE}s", "--allow-net", "127.0.0.0/8", "--max-concurrent-downloads", "8"]
        variables, around = {}, []
        if name == "sick":
            words += self.kind.words(self)
            variables, around = self.kind.variables(self), self.kind.around(self)
        if self.kind.names and "--dns-servers" not in words:
            words += ["--dns-servers", self.world.names]
        # Preloaded into the worker alone.
        settings = [f"{key}={value}" for key, value in variables.items()]
        return processes.start([*around, "env", *settings, *words], os.path.join(self.folder, f"{name}.log"))

    def run(self):
        self.redis.start()
        self.redis.wait()
        client = self.redis.client(5)
        wanted = self.write(os.path.join(self.folder, "list.txt"))
        sick = self.worker("sick")
        self.until(lambda: client("ZCARD", f"{ROOT}:workers") == 1, 20, "the sick worker registers")
        well = self.worker("well")
        self.until(lambda: client("ZCARD", f"{ROOT}:workers") == 2, 20, "the healthy worker registers")
        words = [os.path.join(self.world.binaries, "prefetch-coord"), "submit", os.path.join(self.folder, "list.txt")]
        words += ["--name", "b", "--redis", self.redis.url, "--quiet", "--timeout", "10s"]
        began = time.monotonic()
        log = os.path.join(self.folder, "submit.log")
        coordinator = processes.start(words, log)
        isOver = self.until(lambda: client("HGET", f"{ROOT}:b:b", "state") == "done", REST + LEASES * LEASE, None)
        seconds = time.monotonic() - began
        self.judge(client, wanted, isOver)
        if self.kind.variables(self) and not os.path.exists(self.hit):
            self.problems.append("no call failed: this shows nothing")
        client.close()
        for child in (well, sick, coordinator):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in (well, sick, coordinator):
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                self.problems.append("a program did not end within 20 s of SIGTERM")
            # Its shell and its portal, too: each program has a process group of its own.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.redis.stop()
        return seconds

    def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.02)
        if what:
            self.problems.append(f"not within {seconds} s: {what}")
        return False

    def judge(self, client, wanted, isOver):
        found = client("GET", f"{ROOT}:b:b:o") or ""
        codes = [ord(letter) for letter in found.ljust(len(wanted), "\0")]
        self.outcomes = collections.Counter(outcome(code) for code in codes)
        if not isOver:
            self.problems.append(f"not over after {REST} s and {LEASES} leases")
        wrong = sum(outcome(code) != name for code, name in zip(codes, wanted) if code)
        if wrong:
            self.problems.append(f"{wrong} URLs ended otherwise than with the healthy worker alone")
        self.listed = client("SCARD", f"{ROOT}:failed")
        # Of what ends here only pages and missing files are ever listed.
        if self.listed:
            self.problems.append(f"{self.listed} URLs on the blacklist, expected none")


def main():
    parser = rig.parser("chaos sick", __doc__)
    parser.add_argument("--only", default="", help=f"kinds, with commas in between: {', '.join(KINDS)}")
    parser.add_argument("--work", help="a folder that is new or empty, and kept; by default one in /tmp, kept where something failed")
    options = parser.parse_args()
    names = rig.chosen(options.only, KINDS, "kind")
    folder = rig.kept_folder(options.work, "sick")
    isRoot = os.geteuid() == 0
    if skipped := [name for name in names if KINDS[name].root and not isRoot]:
        print(f"chaos: left out without root: {', '.join(skipped)}")
    failed, ran = 0, 0
    print("| kind | the other worker | seconds | outcomes | listed | |\n|---|---|---|---|---|---|", flush=True)
    try:
        world = World(os.path.abspath(options.binaries), folder)
        for name in names:
            if name in skipped:
                continue
            test, ran = Test(world, name), ran + 1
            seconds = test.run()
            outcomes = ", ".join(f"{what} {count:,}" for what, count in sorted(test.outcomes.items()))
            verdict = "; ".join(test.problems) or "kept"
            print(f"| {name} | {test.kind.what} | {seconds:.1f} | {outcomes} | {test.listed} | {verdict} |", flush=True)
            failed += bool(test.problems)
    except KeyboardInterrupt:
        print(f"chaos: stopped, everything is in {folder}")
        return 130
    finally:
        processes.end_all()
    return rig.verdict(options, folder, "chaos", failed, f"{ran} of {ran} kinds kept every promise", f"{failed} of {ran} kinds of sickness did harm")


if __name__ == "__main__":
    sys.exit(main())
