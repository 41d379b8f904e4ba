"""scripts/chaos: a queue under fire, and whether it kept every promise."""

import collections
import functools
import os
import random
import secrets
import signal
import sys
import threading
import time

import png
import processes
import rig
from batches import Batches
from poison import Poison
from redis_server import Server
from storm import Storm
from verdict import Verdict
from witness import Witness
from workers import Workers

# Seconds without any progress, when nothing is killed any more, after which a batch is stuck.
STUCK = 60


class World:
    """Everything that runs, and what was done to it."""

    def __init__(self, options, folder):
        self.binaries, self.folder = options.binaries, folder
        self.random = random.Random(options.seed)
        self.cache = os.path.join(folder, "cache")
        os.makedirs(os.path.join(folder, "lists"))
        self.counts, self.lock = collections.Counter(), threading.Lock()
        self.failures, self.poisons = [], {}
        self.redis = Server(folder, isWitnessed=True)
        self.witness = Witness(self.redis)
        self.witness.start()
        self.redis.start()
        self.redis.wait()
        self.origins()
        self.workers = Workers(self, options.workers)
        self.batches = Batches(self, 3)
        self.poison = Poison(self, self.bad.stdout)

    def program(self, name):
        return os.path.join(self.binaries, name)

    def origins(self):
        corpus = self.corpus = os.path.join(self.folder, "corpus")
        self.pictures = [path for path, *_ in rig.pictures(self.binaries, corpus, 150, 3000)]
        log = os.path.join(self.folder, "origins.log")
        _, self.good_url = rig.serve(self.binaries, corpus, log=log)
        faults = os.path.join(self.folder, "faults")
        os.makedirs(faults)
        with open(os.path.join(faults, "poison.png"), "wb") as file:
            file.write(png.slow(10_000, 9_000))
        self.bad, url = rig.serve(self.binaries, faults, "--faults", "--log", "--address", "0.0.0.0", log=log)
        # Hosts of their own: the URLs of a host that answers 503 for too long end together, as httpError.
        self.bad_url, self.down_url, poison = (url.replace("0.0.0.0", f"127.0.0.{number}") for number in (1, 3, 2))
        self.poison_url = f"{poison}/poison.png"
        self.bad_picture = rig.body(f"{self.bad_url}/fault/slow/sample.jpg")
        self.closed, self.closed_port = rig.refusing()

    @functools.cache
    def sent(self, url):
        """The bytes that the origins send for the picture of a URL."""
        if not url.startswith(self.good_url):
            return self.bad_picture
        with open(self.corpus + url[len(self.good_url) :].split("?")[0], "rb") as file:
            return file.read()

    def count(self, what):
        with self.lock:
            self.counts[what] += 1


def run(world, minutes):
    """The storm, then the healing."""
    storm = Storm(world)
    started = said = time.monotonic()
    isHealing, deadline, finished = False, started + minutes * 60, -1
    while True:
        now = time.monotonic()
        if not world.witness.is_alive():
            raise RuntimeError("the witness has ended")
        world.workers.step()
        world.batches.step()
        processes.reap()
        if not isHealing:
            storm.step()
            world.redis.look()
        if now >= deadline and not isHealing:
            isHealing, world.batches.isOpen, deadline = True, False, now + STUCK
            storm.end()
            rig.say("healing: nothing is killed any more, but by what is planted")
        if isHealing and world.batches.are_over():
            return
        if isHealing and world.batches.finished != finished:
            finished, deadline = world.batches.finished, now + STUCK
        if isHealing and now >= deadline:
            names = [f"{b.name} {b.state} {b.finished} of {b.total}" for b in world.batches.active if not b.is_over]
            world.failures.append(f"stuck for {STUCK} s after the last fault: {', '.join(names)}")
            return
        if now - said > 10:
            said = now
            done = sum(batch.is_over for batch in world.batches.all)
            kills = sum(n for what, n in world.counts.items() if what.startswith("worker kill"))
            rig.say(f"{int(now - started)} s: {done} of {len(world.batches.all)} batches over, {kills} workers killed")
        time.sleep(0.01)


def table(world, verdict, seconds):
    lines = [f"{number:7,}  {what}" for what, number in sorted(world.counts.items())]
    batches = world.batches.all
    urls = sum(batch.total for batch in batches)
    resumes = sum(batch.resumes for batch in batches)
    lines += [f"{len(batches):7,}  batches of {urls:,} URLs in {seconds:.0f} s, resumed {resumes} times"]
    lines += [f"{sum(batch.poisons for batch in batches):7,}  planted pictures that end a worker"]
    lines += [f"{number:7,}  URLs {name}" for name, number in sorted(verdict.counts.items())]
    lines += [f"{number:7,}  {what}" for what, number in world.witness.counts.items()]
    return lines


def main():
    parser = rig.parser("chaos", __doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=2)
    parser.add_argument("seed", nargs="?", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--work", help="a folder that is new or empty, and kept; by default one in /tmp, kept where something failed")
    options = parser.parse_args()
    folder = rig.kept_folder(options.work, "chaos")
    print(f"chaos: seed {options.seed}, {options.minutes:g} minutes, in {folder}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        world = World(options, folder)
        started = time.monotonic()
        run(world, options.minutes)
        world.workers.stop()
        world.witness.end()
        rig.say("checking every batch")
        verdict = Verdict(world).run()
        for line in table(world, verdict, time.monotonic() - started):
            print(line)
    except KeyboardInterrupt:
        print(f"chaos: stopped, seed {options.seed}, everything is in {folder}")
        return 130
    finally:
        processes.end_all()
    for failure in verdict.failures[:40]:
        print("FAIL ", failure)
    bad = len(verdict.failures)
    return rig.verdict(options, folder, "chaos", bad, f"every promise kept, seed {options.seed}", f"{bad} promises broken, seed {options.seed}")


if __name__ == "__main__":
    sys.exit(main())
