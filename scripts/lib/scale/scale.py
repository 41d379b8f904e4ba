"""The queue and the cache at full size: `urls`, ten million URLs of cached images, or with --failing as many that are not there; `batches`, ten
thousand of them that wait at once; `cache`, a million images. Prints target, measured and verdict; exit 1 where a target is missed."""

import json
import os
import random
import re
import signal
import sys
import time

import machine
import rig
from fill import fill_many, png

ROOT = "prefetch:{default}"
WORKERS, QUERIES, LOOKUPS = 3, 100, 200_000
# Mebibytes of a command, however large the list or the cache is.
MEMORY = 64
COUNTS = {"urls": 10_000_000, "batches": 10_000, "cache": 1_000_000}


class Table:
    def __init__(self, title, about):
        self.title, self.about, self.rows, self.missed = title, about, [], []

    def row(self, what, target, measured, met=None):
        """`met`: None where there is no target."""
        self.rows.append(f"| {what} | {target} | {measured} | {'' if met is None else 'met' if met else '**missed**'} |")
        if met is False:
            self.missed.append(what)

    def exact(self, what, wanted, found):
        self.row(what, f"exactly {wanted:,}", f"{found:,}", wanted == found)

    def below(self, what, limit, found, unit):
        self.row(what, f"< {limit} {unit}", f"{found:.1f} {unit}", found < limit)

    def lines(self):
        return [f"{self.about}", "", "| what | target | measured | verdict |", "|---|---|---|---|", *self.rows]


class Bench(rig.Rig):
    def __init__(self, options):
        super().__init__(options)
        self.options, self.count = options, options.count or COUNTS[options.what]
        self.peak = 0.0

    def measured(self, *words, **options):
        """`prefetch-coord` to its end, as `coord`; its largest size in MiB is `peak`."""
        size = self.path("size")
        found = self.run(["/usr/bin/time", "-q", "-f", "%M", "-o", size, self.program("prefetch-coord"), *words], **options)
        with open(size, encoding="ascii") as file:
            self.peak = int(file.read()) / 1024
        return found

    def submit(self, redis, path, *options, codes=(0,)):
        """`submit --wait`: seconds, CPU, and the batch at its end."""
        wall, cpu, text = self.measured("submit", path, "--redis", redis.url, "--wait", "--json", *options, codes=codes)
        return wall, cpu, json.loads(text.splitlines()[-1])

    def fsck(self, redis, table):
        wall, cpu, text = self.measured("fsck", "--redis", redis.url, codes=(0, 1))
        table.row("`fsck`", "clean", f"clean, in {wall:.1f} s, {cpu:.1f} s CPU" if self.code == 0 else text.strip()[-300:], self.code == 0)


class Workers:
    """Three over one cache."""

    def __init__(self, bench, redis, cache):
        words = [bench.program("prefetch-worker"), "--redis", redis.url, "--cache", cache, "--allow-net", "127.0.0.0/8"]
        self.logs = [bench.path(f"worker{number}-{time.monotonic_ns()}.log") for number in range(WORKERS)]
        self.children = [rig.start(words, log, environment=bench.environment) for log in self.logs]
        client = redis.client()
        while client("ZCARD", f"{ROOT}:workers") < WORKERS:
            if any(child.poll() is not None for child in self.children):
                rig.fail("a worker ended at once", "start one by hand and see what it says", 70)
            time.sleep(0.01)

    def stop(self):
        """Ends them in order: how many URLs they finished, as they say, and their CPU seconds."""
        cpu = sum(machine.process_seconds(child.pid) for child in self.children)
        finished = 0
        for child in self.children:
            child.send_signal(signal.SIGTERM)
        for child, log in zip(self.children, self.logs):
            child.wait(60)
            with open(log, encoding="utf-8", errors="replace") as file:
                said = re.findall(r"^prefetch-worker \S+ finished ([\d,]+)", file.read(), re.M)
            finished += int(said[-1].replace(",", "")) if said else 0
        return finished, cpu


class Redis:
    """What a server took since it was looked at first: its own facts (INFO)."""

    def __init__(self, server):
        self.client = server.client(60)
        self.client("CONFIG", "RESETSTAT")
        self.before = self.info()

    def info(self):
        return dict(line.split(":", 1) for line in self.client("INFO", "everything").splitlines() if ":" in line)

    def calls(self, command="evalsha"):
        """Calls of a command, and their microseconds."""
        stat = dict(part.split("=") for part in self.info().get(f"cmdstat_{command}", "calls=0,usec=0").split(","))
        return int(stat["calls"]), int(stat["usec"])

    def rows(self, table, count, unit):
        now = self.info()
        cpu = sum(float(now[name]) - float(self.before[name]) for name in ("used_cpu_user", "used_cpu_sys"))
        quantiles = dict(part.split("=") for part in now["latency_percentiles_usec_evalsha"].split(","))
        table.row(f"Redis CPU a {unit}", "", f"{cpu / count * 1e6:.2f} us")
        slow = float(quantiles["p99.9"]) / 1000
        table.row("scripts, p99.9", "< 5 ms", f"{slow:.2f} ms ({self.calls()[0]:,} calls)", slow < 5)

    def memory(self, name="used_memory"):
        """In bytes, less what it had first."""
        return int(self.info()[name]) - int(self.before["used_memory"])


def urls(bench):
    """A list as long as can be: of images that are all cached, or of URLs of which none is there."""
    count, fails = bench.count, bench.options.failing
    rows = rig.generate(bench.binaries, bench.path("images"), 1 if fails else -(-count // QUERIES), 1000)
    base, cache = bench.serve(bench.path("images")), bench.path("cache")
    names = [path for path, *_ in rows]
    if fails:
        path = bench.write("urls.txt", (f"{base}/missing/{n:07}.png" for n in range(count)))
    else:
        warm, redis = bench.write("warm.txt", (f"{base}/{name}" for name in names)), bench.redis("warm")
        workers = Workers(bench, redis, cache)
        bench.submit(redis, warm, "--cache-key", "without-query")
        workers.stop()
        path = bench.write("urls.txt", (f"{base}/{names[n % len(names)]}?q={n // len(names)}" for n in range(count)))
    server = bench.redis("redis", "--latency-tracking", "yes")
    redis, workers = Redis(server), Workers(bench, server, cache)
    rig.say(f"{count:,} URLs")
    options = ["--window", bench.options.window, *([] if fails else ["--cache-key", "without-query"])]
    wall, cpu, batch = bench.submit(server, path, *options, codes=(0, 3))
    what, outcome = ("URLs that are not there", "httpError") if fails else (f"URLs of {len(names):,} cached images", "hit")
    table = Table(f"{count:,} {what}", f"`submit --wait --window {bench.options.window}`, {WORKERS} workers, everything else by default.")
    table.exact(f"`{outcome}`", count, batch["outcomes"][outcome])
    peak, coordinator = redis.memory("used_memory_peak") / 2**20, bench.peak
    redis.rows(table, count, "URL")
    finished, spent = workers.stop()
    table.exact("the workers' own counts", count, finished)
    if fails:
        table.exact("failed URLs listed", min(count, 500_000), redis.client("SCARD", f"{ROOT}:failed"))
    if fails or bench.options.window == "all":
        table.row("Redis memory, at most", "", f"{peak:.1f} MiB, {peak * 2**20 / count:.0f} bytes a URL")
    else:
        table.below("Redis memory, at most", 48, peak, "MiB")
    table.row("Redis memory, afterwards", "", f"{redis.memory() / 2**20:.1f} MiB, {redis.memory() / count:.0f} bytes a URL")
    table.below("coordinator, largest size", MEMORY, coordinator, "MiB")
    table.row("time", "", f"{wall:.1f} s, {count / wall:,.0f} URLs/s")
    table.row("CPU of the workers, of the coordinator", "", f"{spent / count * 1e6:.1f} us, {cpu / count * 1e6:.2f} us a URL")
    bench.fsck(server, table)
    return table


def batches(bench):
    """All are submitted before a worker is there, so that the ready list is as long as it can be."""
    count, chance = bench.count, random.Random(1)
    sizes = [chance.randint(1, 64) for _ in range(count)]
    names = [path for path, *_ in rig.generate(bench.binaries, bench.path("images"), 64, 1000)]
    base, cache, lists = bench.serve(bench.path("images")), bench.path("cache"), bench.path("lists")
    os.makedirs(lists)
    server = bench.redis("redis", "--latency-tracking", "yes")
    workers = Workers(bench, server, cache)
    bench.submit(server, bench.write("warm.txt", (f"{base}/{name}" for name in names)), "--cache-key", "without-query", "--name", "warm")
    workers.stop()
    redis = Redis(server)
    for number, size in enumerate(sizes):
        bench.write(f"lists/{number}", (f"{base}/{names[n]}?batch={number}" for n in range(size)))
    rig.say(f"submitting {count:,} batches")
    words = [bench.program("prefetch-coord"), "submit", f"{lists}/{{}}", "--redis", server.url, "--cache-key", "without-query", "--name", "small-{}"]
    words.append("--quiet")
    wall, cpu, _ = bench.run(["sh", "-c", 'seq 0 "$0" | xargs -P 2 -I {} "$@"', str(count - 1), *words])
    waiting, left = redis.memory(), redis.client("SCARD", f"{ROOT}:running")
    table = Table(f"{count:,} batches", f"{sum(sizes):,} URLs, 1 to 64 a batch, all cached: a `submit` for each, and only then {WORKERS} workers.")
    table.exact("batches that wait at once", count, left)
    rig.say("working")
    redis, workers, began, readings = Redis(server), Workers(bench, server, cache), time.monotonic(), []
    while not readings or readings[-1][0]:
        readings.append((redis.client("SCARD", f"{ROOT}:running"), *redis.calls()))
        time.sleep(0.05)
    worked = time.monotonic() - began
    # Each completion takes the batch out of that set, once, and nothing else does.
    table.exact("completions", left, redis.calls("srem")[0])
    redis.rows(table, count, "batch")
    finished, spent = workers.stop()
    table.exact("the workers' own counts", sum(sizes), finished)
    status, _, text = bench.coord("status", "--all", "--redis", server.url, "--json")
    found = [batch for batch in json.loads(text)["batches"] if batch["id"].startswith("small-") and batch["state"] == "done"]
    exact = sum(batch["finished"] == batch["total"] == batch["outcomes"]["hit"] == sizes[int(batch["id"][6:])] for batch in found)
    table.exact("batches that are done with every URL a `hit`", count, exact)
    table.row("submitting", "", f"{wall:.1f} s, {cpu / count * 1e3:.1f} ms CPU each")
    table.row("working", "", f"{worked:.1f} s, {count / worked:,.0f} batches/s, {spent / count * 1e3:.2f} ms CPU each")
    table.row("Redis memory, all waiting", "", f"{waiting / 2**20:.1f} MiB, {waiting / count:,.0f} bytes a batch")
    # Each batch has its turn before the first one has its second, so most of them end late: half of all calls come before.
    many, few = a_script(readings, 0.75, 1), a_script(readings, 0, 0.5)
    table.row("a script while over 75 % of them are open, and under 50 %", "ratio < 1.5", f"{many:.0f} us, {few:.0f} us", many < 1.5 * few)
    table.row("`status` of all", "", f"{status:.2f} s")
    bench.fsck(server, table)
    return table


def a_script(readings, least, most):
    """Microseconds a script takes while such a share of the batches is open."""
    inside = [reading for reading in readings if least * readings[0][0] <= reading[0] <= most * readings[0][0]]
    if len(inside) < 2 or inside[0][1] == inside[-1][1]:
        inside = readings
    return (inside[-1][2] - inside[0][2]) / max(1, inside[-1][1] - inside[0][1])


def key(number):
    return f"https://example.org/images/{number // 1000}/{number}.png"


def cache(bench):
    """Files that a script makes, as docs/CACHE.md describes them; then each command has the cache to itself."""
    count, folder, body = bench.count, bench.path("cache"), png(7, padding=3_000)
    table = Table(f"a cache of {count:,} images", f"Files of {len(body):,} bytes, each a PNG with its record, in 256 folders.")
    rig.say(f"making {count:,} files")
    image = bench.path("image.png")
    with open(image, "wb") as file:
        file.write(body)
    # What an opened cache has besides its images.
    _, _, text = bench.coord("cache", "import", image, "--url", key(0), "--cache", folder)
    os.remove(text.strip().splitlines()[0])
    fill_many(folder, count, key, body, age=count)
    os.sync()
    rig.say("measuring")

    def command(what, each, *words, **options):
        wall, cpu, text = bench.measured("cache", *words, "--cache", folder, **options)
        table.row(what, "", f"{wall:.2f} s, {wall / each * 1e6:.1f} us each; CPU {cpu / each * 1e6:.1f} us")
        table.below("largest size", MEMORY, bench.peak, "MiB")
        return text

    some = random.Random(1).sample(range(count), min(LOOKUPS, count))
    for what, first, codes in (("there", 0, (0,)), ("missing", count, (66,))):
        path = bench.write("keys.txt", (key(first + number) for number in some))
        text = command(f"`cache path --missing`, {len(some):,} URLs that are {what}", len(some), "path", "--missing", "-", codes=codes, input=path)
        table.exact("of them missing", len(some) if first else 0, len(text.splitlines()))
    table.exact("`cache ls --summary` counts", count, json.loads(command("`cache ls --summary`", count, "ls", "--summary", "--json"))["count"])
    verify = json.loads(command("`cache verify`, which reads all bytes", count, "verify", "--json"))
    table.exact("checked and whole", count, verify["checked"] - len(verify["damaged"]))
    limit = str((len(body) + 4095) // 4096 * 4096 * (count - count // 10))
    plan = json.loads(command("`cache gc --dry-run`", count, "gc", "--max-size", limit, "--dry-run", "--json"))
    table.exact("would remove the oldest tenth", count // 10, plan["evicted"]["count"])
    sweep = json.loads(command("`cache gc --max-size`", count, "gc", "--yes", "--max-size", limit, "--json"))
    table.exact("leaves nine tenths", count - count // 10, sweep["remaining"]["count"])
    return table


def main():
    parser = rig.table_parser("scale", __doc__)
    parser.add_argument("what", choices=COUNTS)
    parser.add_argument("--count", type=rig.positive, help=f"how many ({', '.join(f'{name} {count:,}' for name, count in COUNTS.items())})")
    parser.add_argument("--failing", action="store_true", help="urls: none is there")
    parser.add_argument("--window", default="auto", help="urls: of submit; all: every job waits in Redis (auto)")
    options = parser.parse_args()
    with Bench(options) as bench:
        table = {"urls": urls, "batches": batches, "cache": cache}[options.what](bench)
        place = f"Files are on {machine.file_system(options.work)}, the append-only file of Redis too. "
    missed = f"Missed: {'; '.join(table.missed)}." if table.missed else "Every target met."
    name = f"scale {options.what}{' --failing' if options.failing else ''}"
    rig.publish(options, name, [*rig.heading(options.what, table.title), place + table.lines()[0], *table.lines()[1:], "", missed])
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
