"""scripts/chaos matrix: every script of the project, and what can go wrong with each of its calls.

Each cell is a queue of its own with workers, a batch whose outcomes are planted, and a proxy before Redis that lets one call of one script go
wrong: error, error-ran, cut-before, cut-after, late, and type:KEY or lost:KEY, where a key that the script touches has a wrong type for a
lease and then has its value back, or has lost it for good. The scripts are those of the sources, their calls and keys those
of a first round without faults, which fails where a script is in no scenario. Afterwards every batch has to be over within three leases, every
count be that of the outcomes, every outcome as planted, every file as the origin sent it, and fsck has to say what is true.
"""

import asyncio
import collections
import fnmatch
import os
import pathlib
import random
import secrets
import shutil
import sys
import tempfile
import time
import zlib

import keys
import names
import rig
import verdict
from cell import LEASE, Broken, Cell
from files import ERRORS, KILLS, PLANTS, Files
from proxy import KINDS, Fault, Proxy
from scenarios import SCENARIOS
from world import World

# Scenarios in which a batch that lost something is made again: the list is all it needs.
MENDABLE = {"run", "control", "death", "leaving"}
# Scenarios in which somebody else ends what a worker leaves behind, and the script that sees to it.
HEALERS = {"death": "REAP", "leaving": "RELEASE"}
# Cells that every cut has: what most depends on, and what was red once.
ALWAYS = ("REPORT/error", "CLAIM/cut-after", "PUSH/cut-before", "OPEN/type:batches", "JOIN/error", "HEAL/error", "plant(v1/x/x/image)/symlink")

# Sent by `run` alone, to a Redis of its own that no proxy is before: LostWorkerTests and CrashingRunTests.
OF_RUN = {"BLAME"}


class Plan:
    """What may go wrong, and in which cell it is tried."""

    def __init__(self, seed, scripts):
        self.seed, self.scripts = seed, scripts
        # scenario -> script -> calls; script -> key pattern -> commands; and where it was seen.
        self.calls, self.keys, self.seen, self.seconds = {}, {}, {}, {}

    def note(self, cell, scenario, touched, seconds):
        calls = self.calls.setdefault(scenario, {})
        for script, count in cell.proxy.calls.items():
            calls[script] = max(count, calls.get(script, 0))
        self.seconds[scenario] = max(seconds, self.seconds.get(scenario, 0))
        for script, found in touched.items():
            # Some calls are the verdict's own, around the proxy.
            if script not in cell.proxy.calls:
                continue
            for key, verbs in found.items():
                name = keys.pattern(key, cell.names)
                if not name.startswith("aside:") and verbs - keys.ANY:
                    self.keys.setdefault(script, {}).setdefault(name, set()).update(verbs)
                    self.seen.setdefault((script, name), set()).add(scenario)

    def problems(self):
        reached = set().union(*self.calls.values()) if self.calls else set()
        missing = [name for name in self.scripts if name not in reached and name not in OF_RUN]
        lines = [f"{name} is in no scenario: scripts/lib/matrix/scenarios.py" for name in missing]
        return lines + [f"a script that no source names: {name}" for name in sorted(reached - set(self.scripts)) if name != "?"]

    def cells(self):
        """(name, script, kind, key or None), all there are."""
        out = []
        reached = set().union(*self.calls.values())
        for script in self.scripts:
            if script not in reached:
                continue
            out += [(f"{script}/{kind}", script, kind, None) for kind in KINDS]
            out += [(f"{script}/type:{key}", script, "type", key) for key in sorted(self.keys.get(script, {}))]
        lost = {}
        for (script, key), where in self.seen.items():
            if where & MENDABLE:
                lost.setdefault(key, []).append(script)
        for key, scripts in sorted(lost.items()):
            script = min(scripts, key=lambda script: self.rank("lost", key, script))
            out.append((f"{script}/lost:{key}", script, "lost", key))
        return out

    def rank(self, *words):
        return zlib.crc32(repr((self.seed, *words)).encode())

    def dice(self, *words):
        return random.Random(self.rank(*words))

    def scenario(self, name, script, kind, key):
        """The scenario of a cell, and from which call on how many are hit. What other runs have more or less does not change it."""
        dice = self.dice(name)
        able = [s for s in SCENARIOS if self.calls.get(s, {}).get(script)]
        if key:
            able = [s for s in able if s in self.seen[(script, key)]]
        if kind == "lost":
            able = [s for s in able if s in MENDABLE]
        # Where a worker is killed or leaves, others get what a fault left with it: only for the script this is about.
        able = [s for s in able if HEALERS.get(s, script) == script] or able
        if script in HEALERS.values():
            able = [s for s in able if s in HEALERS] or able
        wanted, times = dice.choice((1, 1, 2, 3)), dice.randint(1, 2)
        scenario = min(able, key=lambda s: self.rank(name, s))
        call = min(wanted, max(1, self.calls[scenario][script] // 2))
        return scenario, call, 1 if kind in ("late", "type", "lost") else times


class Harness:
    def __init__(self, options, world):
        self.options, self.world, self.digests = options, world, names.Digests()
        self.plan = Plan(options.seed, names.names())
        self.turns = asyncio.Semaphore(options.jobs)
        # Seconds that no fault accounts for, on a machine as busy as this one: set by the round without faults.
        self.results, self.serial, self.tries, self.wait_limit = [], 0, {}, 12.0

    async def cell(self, name, scenario, fault, key=None, verbs=frozenset()):
        """Runs one cell, with a queue of its own each time."""
        self.serial += 1
        proxy = Proxy(os.path.join(self.world.folder, f"{self.serial}.sock"), self.world.socket, self.digests, fault)
        turn = self.tries[(name, scenario)] = self.tries.get((name, scenario), 0) + 1
        cell = Cell(self.world, f"{name} {scenario} {turn}", proxy, fault, self.options.seed)
        cell.wait_limit = self.wait_limit
        await proxy.start()
        if key:
            fault.spoil = lambda words: cell.spoil(key, verbs, words)
        try:
            await asyncio.wait_for(self.act(cell, scenario), 240)
        except Broken:
            pass
        except asyncio.TimeoutError:
            cell.fail("did not end within 240 s")
        except Exception as error:  # One cell does not end the others.
            cell.fail(f"the harness: {error!r}")
        finally:
            await cell.close()
        if not cell.failures:
            shutil.rmtree(cell.folder, ignore_errors=True)
        return cell

    async def bare(self, name):
        """A cell without a proxy."""
        fault = Fault()
        cell = Cell(self.world, name, Proxy(self.world.socket, self.world.socket, self.digests, fault), fault, self.options.seed)
        cell.wait_limit = self.wait_limit
        return cell

    async def act(self, cell, scenario):
        await SCENARIOS[scenario](cell)
        if cell.fault.kind and cell.fault.hit_at:
            await asyncio.wait_for(cell.fault.over.wait(), 60)
        await verdict.judge(cell)

    async def clean(self):
        """Every scenario without a fault: what is called, what is touched, and that all is well then."""
        monitor = keys.Monitor(self.world.socket, self.digests)
        await monitor.start()

        async def one(scenario):
            async with self.turns:
                began = time.monotonic()
                cell = await self.cell("clean", scenario, Fault())
                return scenario, cell, time.monotonic() - began

        failures = []
        # Some scripts are called in some runs only, when the machine is busy: those runs are not the ones that count.
        for _ in range(3):
            for scenario, cell, seconds in await asyncio.gather(*(one(scenario) for scenario in SCENARIOS)):
                self.plan.note(cell, scenario, monitor.touched.get(cell.queue, {}), seconds)
                failures += [f"without a fault, {scenario}: {text} ({cell.folder})" for text in cell.failures]
            if self.options.only or not self.plan.problems():
                break
        monitor.stop()
        self.wait_limit = max(self.wait_limit, 2 * max(self.plan.seconds.values()))
        return failures + (self.plan.problems() if not self.options.only else [])

    async def one(self, name, script, kind, key):
        scenario, call, times = self.plan.scenario(name, script, kind, key)
        scenario, call = self.options.scenario or scenario, self.options.call or call
        async with self.turns:
            verbs = self.plan.keys.get(script, {}).get(key, frozenset())
            for turn in range(3):
                # A call that comes late in one run may not come in another: then the first one is taken.
                fault = Fault(script, kind, call if turn == 0 else 1, times, 2 * LEASE)
                cell = await self.cell(name, scenario, fault, key, verbs)
                if fault.hits or cell.failures:
                    break
            if not fault.hits:
                cell.fail(f"not reached: {scenario} made no call of {script}")
        self.say(name, script, kind, f"{scenario}, call {fault.call}", cell, f" --in {scenario} --call {fault.call}")

    async def file(self, files, name, call, kind, fault):
        # Some calls are made in some runs only. A cell that was not reached has shown nothing: it is tried again, and red in the end.
        for turn in range(5):
            cell = await files.one(name, call, kind, fault, turn)
            if not any(text.startswith("not reached") for text in cell.failures):
                break
        if not cell.failures:
            shutil.rmtree(cell.folder, ignore_errors=True)
        self.say(name, call, fault, "files", cell)

    def say(self, name, row, column, where, cell, exactly=""):
        state = "red" if cell.failures else "mended" if cell.mended else "ok"
        self.results.append((name, row, column, where, state, cell))
        if self.options.verbose or state == "red":
            print(f"{state:7}{name} in {where}, {time.monotonic() - cell.began:.0f} s" + "".join(f"\n       - {text}" for text in cell.failures), flush=True)
            if state == "red":
                print(f"       scripts/chaos matrix --only '{name}' --seed {self.options.seed}{exactly}    {cell.folder}", flush=True)


def table(title, rows, columns, results):
    """Rows and faults, with how many cells of each were as they must be."""
    counts = {}
    for _, row, column, _, state, _ in results:
        counts.setdefault((row, column), []).append(state)
    lines = [f"{title:16}" + "".join(f"{name:>14}" for name in columns)]
    for row in rows:
        cells = []
        for column in columns:
            states = counts.get((row, column), [])
            red = states.count("red")
            cells.append("-" if not states else f"{red} of {len(states)} RED" if red else f"{len(states)} ok")
        if any(cell != "-" for cell in cells):
            lines.append(f"{row:16}" + "".join(f"{cell:>14}" for cell in cells))
    return lines


def cut(plan, cells, size):
    """A sample in which every kind of fault appears, and as many rows as there is room for."""
    left = sorted(cells, key=lambda cell: plan.rank("cut", cell[0]))
    chosen = [cell for cell in left if cell[0] in ALWAYS]
    while len(chosen) < min(size, len(cells)):
        left = [cell for cell in left if cell not in chosen]
        kinds, rows = collections.Counter(map(kind, chosen)), collections.Counter(cell[1] for cell in chosen)
        rarest = min(kinds[kind(cell)] for cell in left)
        chosen.append(min((cell for cell in left if kinds[kind(cell)] == rarest), key=lambda cell: rows[cell[1]]))
    return chosen


def kind(cell):
    return cell[0].rsplit("/", 1)[1].split(":")[0] if cell[0].endswith(tuple([*ERRORS, *KILLS, *PLANTS])) else cell[2]


async def run(options, folder):
    began = time.monotonic()
    world = World(options.binaries, folder, options.seed)
    await world.open()
    harness = Harness(options, world)
    files = Files(harness)
    try:
        failures = [text for found in await asyncio.gather(harness.clean(), files.prepare()) for text in found]
        cells, others = harness.plan.cells(), files.cells()
        count = f"{len(harness.plan.scripts)} scripts in {len(SCENARIOS)} scenarios"
        print(f"{count}, {len(cells)} cells; a round without faults took {time.monotonic() - began:.0f} s", flush=True)
        print(f"{len(files.calls)} calls on kinds of files, {len(others)} cells", flush=True)
        if options.only:
            def wanted(cell):
                return any(fnmatch.fnmatchcase(cell[0], pattern) for pattern in options.only)

            cells, others = list(filter(wanted, cells)), list(filter(wanted, others))
            if not cells and not others:
                failures.append(f"no cell is called {' or '.join(options.only)}")
        elif options.cut:
            # Two thirds are calls of scripts, where that leaves room for each kind of the others.
            share = min(options.cut * 2 // 3, options.cut - len(set(map(kind, others))))
            cells = cut(harness.plan, cells, share)
            others = cut(harness.plan, others, options.cut - len(cells))
        if options.list:
            print("\n".join(cell[0] for cell in [*cells, *others]))
            return failures, harness
        await asyncio.gather(*(harness.one(*cell) for cell in cells), *(harness.file(files, *cell) for cell in others))
    finally:
        await world.close()
    for line in table("script", harness.plan.scripts, [*KINDS, "type", "lost"], harness.results):
        print(line)
    rows = list(dict.fromkeys(cell[1] for cell in files.cells()))
    for line in table("call", rows, [*ERRORS, *KILLS, *PLANTS], harness.results):
        print(line)
    return failures, harness


def main():
    parser = rig.parser("chaos matrix", __doc__)
    parser.add_argument("--only", action="append", metavar="CELL", help="only these cells, as REPORT/error or 'CLAIM/type:*'; may be repeated")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="which calls are hit, and in which scenarios")
    parser.add_argument("--in", dest="scenario", choices=sorted(SCENARIOS), help="the scenario, where it is not to be the seed's")
    parser.add_argument("--call", type=int, metavar="N", help="the first call that is hit, where it is not to be the seed's")
    parser.add_argument("--cut", type=int, metavar="N", help="only N cells, in which every kind of fault appears")
    parser.add_argument("--jobs", type=int, default=6 * (os.cpu_count() or 2), help="cells at a time; 6 a core by default, since they mostly wait")
    parser.add_argument("--list", action="store_true", help="name the cells and run none")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each cell")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="prefetch-matrix."))
    print(f"matrix: seed {options.seed}, in {folder}", flush=True)
    began = time.monotonic()
    try:
        failures, harness = asyncio.run(run(options, folder))
    except KeyboardInterrupt:
        return 130
    red = [result for result in harness.results if result[4] == "red"]
    mended = sum(result[4] == "mended" for result in harness.results)
    for text in failures:
        print("FAIL ", text)
    print(f"matrix: {len(harness.results)} cells, {len(red)} red, {mended} with a batch made again, {time.monotonic() - began:.0f} s, seed {options.seed}")
    if failures or red:
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
