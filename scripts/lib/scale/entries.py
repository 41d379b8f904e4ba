"""A cache of a million images: what it costs to look one up, to count, to verify and to sweep."""

import json
import os
import random
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cache"))

from fill import fill_many, png  # noqa: E402
from rig import Noise, say  # noqa: E402
from table import Section, mebibytes, microseconds  # noqa: E402

LOOKUPS = 200_000
# Of each command, as that of the coordinator.
MEMORY = 64


def key(number):
    return f"https://example.org/images/{number // 1000}/{number}.png"


class Entries:
    def __init__(self, rig, count):
        self.rig, self.count = rig, count
        self.cache = f"{rig.work}/cache-entries"
        self.body = png(7, padding=3_000)
        self.section = Section(
            f"cache: {count:,} images",
            f"Files of {len(self.body):,} bytes, each a PNG with its record, in 256 folders, made by a script; then each command with the cache "
            "to itself. Times are wall time of the whole command, with what was just written still in the kernel's memory.",
        )

    def coord(self, *words):
        return [self.rig.program("coord"), "cache", *words, "--cache", self.cache]

    def measure(self, name, *words, codes=(0,)):
        child = self.rig.run(self.coord(*words), f"cache-{name}", codes)
        return child

    def row(self, what, child, each, unit="an image"):
        cost = f"{child.wall:.2f} s, {microseconds(child.wall, each):.1f} us {unit}; CPU {microseconds(child.cpu, each):.1f} us"
        self.section.row(what, "", cost)
        self.section.at_most(f"{what}: peak RSS", MEMORY, mebibytes(child.peak), "MiB")

    def look_up(self, name, what, keys, codes):
        path = f"{self.rig.work}/{name}.txt"
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{text}\n" for text in keys)
        # `exec`: the process that is measured is the program.
        words = ["/bin/sh", "-c", 'exec "$0" "$@" <"$LIST"', *self.coord("path", "--missing", "-")]
        os.environ["LIST"] = path
        child = self.rig.run(words, f"cache-{name}", codes)
        self.row(what, child, len(keys), "a URL")
        return child

    def run(self):
        say(f"cache: making {self.count:,} files")
        # A folder for all, and what an opened cache has besides.
        image = self.write_image()
        put = self.rig.run(self.coord("import", image, "--url", key(0)), "cache-put")
        os.remove(put.text().strip())
        fill_many(self.cache, self.count, key, self.body, age=self.count)
        os.sync()
        say("cache: measuring")
        noise, section, count = Noise(self.rig), self.section, self.count
        some = random.Random(1).sample(range(count), min(LOOKUPS, count))
        found = self.look_up("hits", f"`cache path --missing -`, {len(some):,} URLs that are there", [key(number) for number in some], (0,))
        section.exact("of them missing", 0, len(found.text().splitlines()))
        gone = self.look_up("misses", f"`cache path --missing -`, {len(some):,} that are not", [key(count + number) for number in some], (66,))
        section.exact("of them missing", len(some), len(gone.text().splitlines()))
        usage = self.measure("stat", "ls", "--summary", "--json")
        section.exact("`cache ls --summary` counts", count, json.loads(usage.text())["count"])
        self.row("`cache ls --summary`", usage, count)
        verify = self.measure("verify", "verify", "--json")
        result = json.loads(verify.text())
        section.exact("`cache verify` checks", count, result["checked"])
        section.exact("damaged", 0, len(result["damaged"]))
        self.row("`cache verify`, which reads all bytes", verify, count)
        blocks = (len(self.body) + 4095) // 4096 * 4096
        limit = str(blocks * (count - count // 10))
        plan = self.measure("plan", "gc", "--max-size", limit, "--dry-run", "--json")
        section.exact("`cache gc --max-size --dry-run` would remove", count // 10, json.loads(plan.text())["evicted"]["count"])
        self.row("`cache gc --max-size --dry-run`", plan, count)
        sweep = self.measure("gc", "gc", "--yes", "--max-size", limit, "--json")
        section.exact("`cache gc --max-size`, the oldest tenth, leaves", count - count // 10, json.loads(sweep.text())["remaining"]["count"])
        self.row("`cache gc --max-size`", sweep, count)
        section.row("removed by it", "", f"{count // 10 / max(0.001, sweep.wall):,.0f} a second")
        section.row("other programs meanwhile", "", f"{noise.cores():.2f} cores")
        return section

    def write_image(self):
        path = f"{self.rig.work}/entry.png"
        with open(path, "wb") as file:
            file.write(self.body)
        return path


def entries(rig, count):
    return Entries(rig, count).run()
