"""A cache on each kind of file system: workers that are killed in mid run, and then whether it is whole, exact and swept.

On each: what the file system does when it is asked; a batch of images fetched by two workers of which one is killed with -9 again and again,
while it stores; then every URL must be counted and its file there, `cache verify` must find nothing, the account must be what a count says
(lengths in blocks of 4 KiB; how far du(1) is from it is told), and `cache gc` must leave what it was told to and nothing else lying about.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from mounts import KINDS, Missing, features, unmount  # noqa: E402
from origin import Origin, outcomes  # noqa: E402

MARKS = ("<!-- scripts/filesystems -->", "<!-- /scripts/filesystems -->")


class Wrong(Exception):
    """What is not as it has to be."""


def must(holds, sentence):
    if not holds:
        raise Wrong(sentence)


class Trial:
    """One file system."""

    def __init__(self, binaries, work, cache, count, kills):
        self.binaries, self.work, self.cache, self.count, self.kills = binaries, work, cache, count, kills
        self.children = []

    def coord(self, *words, codes=(0,), text=None):
        done = subprocess.run(
            [f"{self.binaries}/prefetch-coord", *words], input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        must(done.returncode in codes, f"{' '.join(words[:2])} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
        return done.stdout

    def on_cache(self, *words, **options):
        return self.coord("cache", *words, "--cache", self.cache, **options)

    def worker(self, name):
        with open(f"{self.work}/{name}.err", "ab") as err:
            child = subprocess.Popen(
                [f"{self.binaries}/prefetch-worker", "--redis", self.redis, "--cache", self.cache, "--allow-net", "127.0.0.0/8", "--quiet",
                 "--lease", "2", "--max-concurrent-downloads", "8"], stdout=subprocess.DEVNULL, stderr=err)  # fmt: skip
        self.children.append(child)
        return child

    def run(self):
        """Fetches everything, with kills; how many there were."""
        socket = f"{self.work}/redis.sock"
        self.children.append(
            subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", str(self.work)], stdout=subprocess.DEVNULL))
        self.until(lambda: os.path.exists(socket), "redis-server starts")
        self.redis = f"unix://{socket}"
        origin = Origin()
        self.urls = origin.urls(self.count)
        path = f"{self.work}/urls.txt"
        with open(path, "w", encoding="ascii") as file:
            file.writelines(url + "\n" for url in self.urls)
        self.coord("submit", path, "--name", "trial", "--redis", self.redis)
        self.worker("other")
        victim = self.worker("victim")
        for kill in range(self.kills):
            mark = (kill + 1) * self.count // (self.kills + 1)
            origin.gate.allow(mark)
            must(origin.gate.wait(mark - 16, 120), "the workers stopped asking")
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            victim = self.worker("victim")
        # Those that were killed are asked again for what they had.
        origin.gate.allow(10 * self.count)
        self.until(lambda: self.all_counted(socket), "every URL has its image")
        for child in self.children[1:]:
            if child.poll() is None:
                child.terminate()
                child.wait()
        self.coord("fsck", "--redis", self.redis)
        return self.kills

    def all_counted(self, socket):
        codes = outcomes(socket, "trial")
        return len(codes) == self.count and all(1 <= code <= 3 for code in codes)

    def until(self, holds, what):
        end = time.monotonic() + 180
        while not holds():
            must(time.monotonic() < end, f"waited in vain until {what}")
            time.sleep(0.05)

    def files(self, ending=""):
        """Names below v1."""
        return [path for path in pathlib.Path(self.cache, "v1").rglob("*") if path.is_file() and path.name.endswith(ending)]

    def temporary(self):
        return [path for path in pathlib.Path(self.cache).rglob(".t-*")]

    def look(self):
        """Everything is there, whole and counted; what was found beside it."""
        missing = self.on_cache("path", "--missing", "-", text="".join(url + "\n" for url in self.urls), codes=(0, 66)).split()
        must(not missing, f"{len(missing)} counted URLs are not there")
        verify = json.loads(self.on_cache("verify", "--json", codes=(0, 1)))
        must(verify["checked"] == self.count and not verify["damaged"], f"verify: {verify}"[:400])
        usage = json.loads(self.on_cache("ls", "--summary", "--json"))
        must(usage["count"] == self.count, f"du counts {usage['count']}")
        plan = json.loads(self.on_cache("gc", "--max-size", "1000GB", "--dry-run", "--json"))["remaining"]
        must(plan["count"] == self.count, f"gc counts {plan['count']}")
        images = [path for path in self.files() if not path.name.endswith(".m") and not path.name.startswith(".t-")]
        taken = 512 * sum(path.stat().st_blocks for path in images)
        apparent = sum(-(-path.stat().st_size // 4096) * 4096 for path in images)
        off = abs(plan["allocated_bytes"] - apparent) / apparent
        must(off <= 0.01, f"the account says {plan['allocated_bytes']}, the files are {apparent}")
        beside = sum(1 for _ in self.files(".m"))
        return beside, 100 * (plan["allocated_bytes"] - taken) / max(1, taken)

    def sweep(self):
        """Half of it goes, and what kills have left."""
        left = self.temporary()
        for path in left:
            os.utime(path, (0, 0))
        blocks = json.loads(self.on_cache("gc", "--max-size", "1000GB", "--dry-run", "--json"))["remaining"]["allocated_bytes"]
        report = json.loads(self.on_cache("gc", "--yes", "--max-size", str(blocks // 2), "--json"))
        must(report["remaining"]["allocated_bytes"] <= blocks // 2, f"gc leaves {report['remaining']}")
        must(report["remaining"]["count"] >= self.count // 2 - 1, f"gc removed too much: {report['remaining']}")
        must(not self.temporary(), f"temporary files are left: {self.temporary()[:3]}")
        verify = json.loads(self.on_cache("verify", "--json", codes=(0, 1)))
        must(verify["checked"] == report["remaining"]["count"] and not verify["damaged"], f"verify after gc: {verify}"[:400])
        return len(left)

    def end(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.kill()
                child.wait()


def yes(value):
    return "yes" if value else "no"


def attempt(name, options):
    """The row of one kind."""
    work = tempfile.mkdtemp(prefix="filesystems-")
    mounted = f"{work}/fs"
    os.mkdir(mounted)
    trial = None
    try:
        try:
            place = KINDS[name](mounted)
        except Missing as reason:
            return [name, *[""] * 6, f"not tried: {reason}"], True
        found = features(place)
        cells = [name, yes(found["unnamed files"]), yes(found["attributes"]), yes(found["hard links"]),
                 yes(found["rename without replacing"]), yes(found["shared blocks"])]  # fmt: skip
        must(found["locks"], "it has no locks")
        trial = Trial(options.binaries, work, f"{place}/cache", options.count, options.kills)
        kills = trial.run()
        beside, difference = trial.look()
        left = trial.sweep()
        must((beside == 0) == found["attributes"], f"{beside} records have files of their own")
        records = f"{beside} records in files, " if beside else ""
        result = (f"{options.count} of {options.count} whole after {kills} kills; {records}account {difference:+.1f} % of du; "
                  f"{left} temporary files left for gc, 0 after it")  # fmt: skip
        return [*cells, yes(found["shared memory"]), result], True
    except Wrong as wrong:
        cells = [name, *[""] * 6] if trial is None else [*cells, yes(found["shared memory"])]
        return [*cells, f"**wrong**: {wrong}"], False
    finally:
        if trial:
            trial.end()
        unmount(work)
        shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/filesystems", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all by default")
    parser.add_argument("--count", type=int, default=1000, help="images (1000)")
    parser.add_argument("--kills", type=int, default=5, help="of a worker, in mid run (5)")
    parser.add_argument("--page", metavar="FILE", help="put the table into this page, in place of the one before")
    parser.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--typed", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no {unknown[0]}: {', '.join(KINDS)}")
    if options.count < 50 * (options.kills + 1) or options.kills < 0:
        parser.error("--count wants 50 images or more for each part of the run that the kills make")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines = [
        f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, Linux {platform.release()}, `{options.typed}`:",
        "",
        "| file system | unnamed files | attributes | hard links | rename without replacing | shared blocks | shared memory | run |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    good = True
    for name in options.kinds or KINDS:
        cells, held = attempt(name, options)
        good = good and held
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if options.page:
        page = pathlib.Path(options.page)
        text = page.read_text(encoding="utf-8")
        if any(text.count(mark) != 1 for mark in MARKS):
            sys.exit(f"error: {page} has no place for the table: the lines {MARKS[0]} and {MARKS[1]}")
        before, rest = text.split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        page.write_text(before + "\n".join([MARKS[0], *lines, MARKS[1]]) + after, encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
