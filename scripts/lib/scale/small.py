"""Many small batches, and workers with nothing to do."""

import concurrent.futures
import json
import os
import random
import re
import shutil
import statistics
import time

import machine
from images import Images, write
from resp import Connection
from rig import WORKERS, Noise, Redis, Workers, say
from server import Server
from slow import SlowServer
from table import Section, mebibytes, microseconds

ROOT = "prefetch:{default}"
SEED = 1


def batches(rig, count):
    """All are submitted before a worker is there: the ready list is as long as it can be."""
    chance = random.Random(SEED)
    sizes = [chance.randint(0, 64) for _ in range(count)]
    images = Images(rig)
    server = Server(f"{rig.work}/nginx-batches", images.folder, 1, False)
    folder, cache = f"{rig.work}/lists", f"{rig.work}/cache-batches"
    os.makedirs(folder)
    try:
        redis = Redis(rig, "redis-batches")
        workers = Workers(rig, redis, cache, "batches-warm")
        names = images.paths[:64]
        write(f"{folder}/warm.txt", (f"{server.base}/{name}\n" for name in names))
        rig.submit(redis, f"{folder}/warm.txt", "batches-warm", "--cache-key", "without-query")
        workers.stop()
    finally:
        server.stop()
    for number, size in enumerate(sizes):
        write(f"{folder}/{number}.txt", (f"{server.base}/{names[n]}?batch={number}\n" for n in range(size)))
    redis.begin()
    say(f"batches: submitting {count:,}")
    noise = Noise(rig)

    def submit(number):
        child = rig.run(
            [rig.program("coord"), "submit", f"{folder}/{number}.txt", "--redis", redis.url, "--cache-key", "without-query",
             "--name", f"small-{number}"], f"submit{number % 8}")  # fmt: skip
        rig.children.remove(child)
        return child.cpu

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as threads:
        submitted_cpu = sum(threads.map(submit, range(count)))
    submitted = time.monotonic() - began
    waiting = redis.cost()
    empty = sizes.count(0)
    open_batches = redis.command("SCARD", f"{ROOT}:running")
    status_waiting = rig.run([rig.program("coord"), "status", "--all", "--redis", redis.url, "--json"], "status-waiting")
    say("batches: working")
    redis.begin()
    looks = []
    workers = Workers(rig, redis, cache, "batches")
    began = time.monotonic()
    while True:
        facts = redis.info()
        left = redis.command("SCARD", f"{ROOT}:running")
        stat = dict(part.split("=") for part in facts.get("cmdstat_evalsha", "calls=0,usec=0").split(","))
        looks.append((left, int(stat["calls"]), int(stat["usec"])))
        if left == 0:
            break
        time.sleep(0.05)
    worked = time.monotonic() - began
    # Each completion takes the batch out of this set, once, and nothing else does.
    ends = int(dict(part.split("=") for part in redis.info()["cmdstat_srem"].split(","))["calls"])
    cost = redis.cost()
    counts = workers.stop()
    noise = noise.cores()
    status = rig.run([rig.program("coord"), "status", "--all", "--redis", redis.url, "--json"], "status")
    found = [batch for batch in json.loads(status.text())["batches"] if batch["id"].startswith("small-")]
    clean, fsck = rig.fsck(redis, "batches-fsck")
    section = Section(
        f"batches: {count:,} of 0 to 64 URLs",
        f"{sum(sizes):,} URLs (seed {SEED}), all of them cached; one `submit` for each, and only then three workers, so that {open_batches:,} "
        "batches are ready at once.",
    )
    section.exact("batches that are done", count, sum(batch["state"] == "done" for batch in found))
    section.exact("of which had no URL and completed when they were submitted", empty, count - open_batches)
    section.exact("completions of the others", open_batches, ends)
    exact = sum(batch["finished"] == batch["total"] == batch["outcomes"]["hit"] == sizes[int(batch["id"][6:])] for batch in found)
    section.exact("batches with every URL a `hit`", count, exact)
    section.exact("the workers' own counts", sum(sizes), counts.get("finished", 0))
    section.row("`fsck` of all", "clean", "clean" if clean else fsck.text().strip()[-300:], clean)
    section.row("`fsck` of all takes", "", f"{fsck.wall:.1f} s, {fsck.cpu:.1f} s CPU")
    section.row("submitting", "", f"{submitted:.1f} s, {submitted_cpu / count * 1e3:.1f} ms CPU each")
    section.row("three workers take", "", f"{worked:.1f} s, {count / worked:,.0f} batches/s, {sum(sizes) / worked:,.0f} URLs/s")
    section.row("CPU of the workers", "", f"{workers.cpu / count * 1e3:.2f} ms a batch")
    section.row("Redis memory, all waiting", "", f"{mebibytes(waiting['left']):.1f} MiB, {waiting['left'] / count:,.0f} bytes a batch")
    section.row("Redis CPU", "", f"{cost['cpu'] / count * 1e6:.0f} us a batch, {microseconds(cost['cpu'], sum(sizes)):.1f} us a URL")
    # Each batch has its turn before the first one has its second, so most of them end late: half of all calls come before.
    many, few = a_script(looks, 0.75, 1), a_script(looks, 0, 0.5)
    section.row(
        "a script while over 75 % of the batches are open, and while under 50 % are", "ratio < 1.5",
        f"{many:.0f} us, {few:.0f} us", many < 1.5 * few)  # fmt: skip
    section.row("scripts, p99.9", "< 5 ms", f"{cost['p999']:.2f} ms ({cost['scripts']:,} calls)", cost["p999"] < 5)
    section.row(f"`status` of {count:,} batches", "", f"{status_waiting.wall:.2f} s, {status_waiting.cpu:.2f} s CPU")
    section.row("other programs meanwhile", "", f"{noise:.2f} cores")
    redis.stop()
    shutil.rmtree(folder)
    shutil.rmtree(cache)
    return section


def a_script(looks, least, most):
    """Microseconds a script takes while such a share of the batches is open."""
    inside = [look for look in looks if least * looks[0][0] <= look[0] <= most * looks[0][0]]
    if len(inside) < 2 or inside[0][1] == inside[-1][1]:
        inside = looks
    return (inside[-1][2] - inside[0][2]) / max(1, inside[-1][1] - inside[0][1])


def thread_seconds(pid):
    """CPU of all threads, in nanoseconds: /proc/PID/stat counts ticks of 10 ms."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            continue
    return total / 1e9


def idle(rig, count):
    seconds = 60 if count >= 100 else 10
    redis = Redis(rig, "redis-idle")
    cache = f"{rig.work}/cache-idle"
    workers = Workers(rig, redis, cache, "idle")
    until_idle(redis)
    time.sleep(2)
    redis.begin()
    noise = Noise(rig)
    say(f"idle: {seconds} s")
    pids = [child.pid for child in workers.children]
    before = [(machine.process_seconds(pid), thread_seconds(pid)) for pid in pids]
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    after = [(machine.process_seconds(pid), thread_seconds(pid)) for pid in pids]
    cost = redis.cost()
    noise = noise.cores()
    shares = [(b[1] - a[1]) / took * 100 for a, b in zip(before, after)]
    ticks = [(b[0] - a[0]) / took * 100 for a, b in zip(before, after)]
    section = Section(
        f"idle: three workers with nothing to do for {seconds} s, then {count:,} submits of one URL",
        "CPU by `/proc/PID/task/*/schedstat`, which counts nanoseconds. A wake-up is the time from the job on its list to the claim, both as "
        "MONITOR dates them.",
    )
    section.row(
        "CPU of a worker", "< 0.1 %", f"{max(shares):.3f} % (by /proc/PID/stat {max(ticks):.3f} %, {noise:.2f} cores used by others)",
        max(shares) < 0.1)  # fmt: skip
    section.row("Redis CPU meanwhile", "", f"{cost['cpu'] / took * 100:.3f} %, {cost['scripts'] / took:.1f} scripts/s")
    wakes, ends = wake_ups(rig, redis, count)
    quantile = wakes[min(len(wakes) - 1, -(-len(wakes) * 99 // 100) - 1)]
    section.row(
        f"wake-up, p99 of {len(wakes)}", "< 50 ms",
        f"{quantile:.1f} ms (median {statistics.median(wakes):.1f}, longest {wakes[-1]:.1f})", quantile < 50 and len(wakes) == count)  # fmt: skip
    section.row("from OPEN to done", "", f"median {statistics.median(ends):.0f} ms, longest {max(ends):.0f} ms")
    workers.stop()
    spread(rig, redis, cache, section)
    redis.stop()
    return section


def until_idle(redis):
    """Every worker sleeps at the bell."""
    while int(redis.info()["blocked_clients"]) < WORKERS:
        time.sleep(0.01)


def wake_ups(rig, redis, count):
    wakes, ends = [], []
    say(f"idle: {count} submits")
    for number in range(count):
        until_idle(redis)
        path = f"{rig.work}/one.txt"
        write(path, [f"http://127.0.0.1:9/{number}\n"])
        monitor = Connection(redis.socket)
        monitor.command("MONITOR")
        child = rig.run(
            [rig.program("coord"), "submit", path, "--redis", redis.url, "--options", "fromCacheOnly", "--name", f"one-{number}"], "one")
        rig.children.remove(child)
        pushed = None
        while True:
            line = monitor.stream.readline().decode(errors="replace")
            at = float(line[1:].split(" ", 1)[0])
            if re.search(rf'"LPUSH" "{re.escape(ROOT)}:jobs:one-{number}"', line):
                pushed = at
            elif pushed and re.search(rf'"HSET" "{re.escape(ROOT)}:own:[^"]*" "one-{number}:0:\d+"', line):
                wakes.append((at - pushed) * 1e3)
                break
        monitor.close()
        key = f"{ROOT}:b:one-{number}"
        while redis.command("HGET", key, "state") != b"done":
            time.sleep(0.001)
        created, ended = redis.command("HMGET", key, "created", "ended")
        ends.append(int(ended) - int(created))
    return sorted(wakes), ends


def spread(rig, redis, cache, section):
    """A hundred URLs of a server that thinks for 100 ms, on three workers: each has its share, whoever wakes first."""
    images = Images(rig)
    with open(f"{images.folder}/{images.paths[0]}", "rb") as file:
        server = SlowServer(file.read(), 0.1)
    workers = Workers(rig, redis, cache, "spread")
    least, times = [], []
    for number in range(10):
        until_idle(redis)
        path = f"{rig.work}/hundred.txt"
        write(path, (f"{server.base}/{number}/{n}.jpg\n" for n in range(100)))
        child, result = rig.submit(redis, path, "hundred")
        rig.children.remove(child)
        counts = redis.command("HGETALL", f"{ROOT}:b:{result['id']}:w")
        shares = {}
        for name, value in zip(counts[::2], counts[1::2]):
            worker, what = name.decode().rsplit(":", 1)
            if what != "bytes":
                shares[worker] = shares.get(worker, 0) + int(value)
        least.append(min(shares.values()) if len(shares) == WORKERS else 0)
        times.append(result["elapsed_seconds"])
    workers.stop()
    server.stop()
    section.row(
        "100 URLs of 100 ms on three workers, ten times: the smallest share", ">= 20",
        f"{min(least)} (median {statistics.median(least):.0f}; the batch takes {statistics.median(times):.2f} s)", min(least) >= 20)  # fmt: skip
