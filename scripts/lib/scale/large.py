"""Long lists: hits, submitting alone, transfers, failures, listed URLs."""

import os
import shutil

from images import Images, write
from rig import Noise, Redis, Workers, say
from server import Server
from table import Section, mebibytes, microseconds

QUERIES = 100
DETAILS = 100_000


def settled(section, result, workers, count, outcome):
    """Exact counts, in the batch and in what the workers say of themselves."""
    section.exact("state", "done", result["state"])
    section.exact("finished", count, result["finished"])
    section.exact(f"`{outcome}`", count, result["outcomes"][outcome])
    section.exact("the workers' own counts", count, workers.get("finished", 0))


def redis_rows(section, cost, count, cpu_target=None):
    spent = microseconds(cost["cpu"], count)
    section.row(
        "Redis CPU a URL: submit, claim, report, beat", f"<= {cpu_target} us" if cpu_target else "", f"{spent:.2f} us",
        spent <= cpu_target if cpu_target else None)  # fmt: skip
    section.row(
        "scripts, p99.9", "< 5 ms", f"{cost['p999']:.2f} ms (p99 {cost['p99']:.2f} ms, {cost['scripts']:,} calls)", cost["p999"] < 5)
    slow = f"{cost['slow']}, the slowest {cost['slowest']:.1f} ms" if cost["slow"] else "none"
    section.row("scripts over 5 ms (SLOWLOG)", "", slow)


def time_rows(section, child, workers, count, noise):
    section.row("time", "", f"{child.wall:.1f} s, {count / child.wall:,.0f} URLs/s")
    if workers:
        section.row("CPU of the workers", "", f"{microseconds(workers.cpu, count):.1f} us a URL")
        section.row("largest worker", "", f"{mebibytes(workers.peak):.0f} MiB")
    section.row("CPU of the coordinator", "", f"{microseconds(child.cpu, count):.2f} us a URL")
    section.row("other programs meanwhile", "", f"{noise:.2f} cores")


def hits(rig, count):
    images = Images(rig, -(-count // QUERIES))
    names = images.paths
    origin = rig.start([rig.program("origin"), "serve", images.folder], rig.work, "origin")
    while not origin.text().strip():
        origin.wait(0.05)
    base = origin.text().strip().rstrip("/")
    cache = f"{rig.work}/cache-hits"
    redis = Redis(rig, "redis-warm")
    workers = Workers(rig, redis, cache, "warm")
    say(f"hits: fetching {len(names):,} images")
    write(f"{rig.work}/warm.txt", (f"{base}/{name}\n" for name in names))
    _, warm = rig.submit(redis, f"{rig.work}/warm.txt", "warm", "--cache-key", "without-query")
    workers.stop()
    redis.stop()
    # From here on nobody answers: what is no hit would end as a failed connection.
    origin.stop()
    say(f"hits: writing a list of {count:,} lines")
    path = f"{rig.work}/hits.txt"
    size = write(path, (f"{base}/{names[n % len(names)]}?q={n // len(names)}\n" for n in range(count)))
    redis = Redis(rig, "redis-hits")
    workers = Workers(rig, redis, cache, "hits")
    redis.begin()
    noise = Noise(rig)
    say("hits: running")
    child, result = rig.submit(redis, path, "hits", "--cache-key", "without-query")
    noise = noise.cores()
    cost = redis.cost()
    counts = workers.stop()
    clean, fsck = rig.fsck(redis, "hits-fsck")
    section = Section(
        f"hits: {count:,} URLs of {len(names):,} cached images",
        f"`submit --wait --cache-key without-query` of a list of {size / 1e6:,.0f} MB, {QUERIES} query strings an image, three workers, "
        f"everything else by default (decode, sha256, batch, window auto). The images were fetched once from `prefetch-origin` "
        f"({warm['outcomes']['downloaded']:,} downloads), which was then ended.",
    )
    settled(section, result, counts, count, "hit")
    section.at_most("Redis memory, peak less before", 48, mebibytes(cost["peak"]), "MiB")
    section.row("Redis memory, after less before", "", f"{mebibytes(cost['left']):.1f} MiB")
    section.at_most("coordinator, peak RSS", 64, mebibytes(child.peak), "MiB")
    redis_rows(section, cost, count, 1)
    section.row("`fsck`", "clean", "clean" if clean else fsck.text().strip(), clean)
    section.row("`fsck` takes", "", f"{fsck.wall:.1f} s, {mebibytes(fsck.peak):.0f} MiB")
    time_rows(section, child, workers, count, noise)
    redis.stop()
    os.unlink(path)
    shutil.rmtree(cache)
    return section


def submit(rig, count):
    path = f"{rig.work}/submit.txt"
    size = write(path, (f"https://images.example.org/archive/{n:09}.jpg\n" for n in range(count)))
    redis = Redis(rig, "redis-submit")
    noise = Noise(rig)
    say("submit: running")
    child = rig.run([rig.program("coord"), "submit", path, "--redis", redis.url, "--window", "all", "--json"], "submit")
    noise = noise.cores()
    cost = redis.cost()
    section = Section(
        f"submit: {count:,} URLs with `--window all`",
        f"A list of {size / 1e6:,.0f} MB, no workers; the time is that of the whole command, which reads the list twice.",
    )
    jobs = redis.command("LLEN", "prefetch:{default}:jobs:" + child.text().split('"id":"')[1].split('"')[0])
    section.exact("jobs on the list", -(-count // min(256, max(4, -(-count // 64)))), jobs)
    rate = count / child.wall
    section.row("rate", ">= 500,000 URLs/s", f"{rate:,.0f} URLs/s ({child.wall:.1f} s)", rate >= 500_000)
    section.row(
        "URLs a second of CPU time, the coordinator's and Redis's together", "", f"{count / (child.cpu + cost['cpu']):,.0f}")
    section.at_most("coordinator, peak RSS", 64, mebibytes(child.peak), "MiB")
    section.row("Redis memory", "", f"{mebibytes(cost['left']):,.0f} MiB, {cost['left'] / count:.0f} bytes a URL")
    redis_rows(section, cost, count)
    time_rows(section, child, None, count, noise)
    redis.stop()
    os.unlink(path)
    return section


def transfers(rig, count):
    images = Images(rig)
    server = Server(f"{rig.work}/nginx-transfers", images.folder, 1, False)
    try:
        path = f"{rig.work}/transfers.txt"
        names = images.paths
        write(path, (f"{server.base}/{names[n % len(names)]}?v={n}\n" for n in range(count)))
        cache = f"{rig.work}/cache-transfers"
        redis = Redis(rig, "redis-transfers")
        workers = Workers(rig, redis, cache, "transfers")
        redis.begin()
        noise = Noise(rig, server.seconds)
        say("transfers: running")
        child, result = rig.submit(redis, path, "transfers")
        noise = noise.cores()
        cost = redis.cost()
        counts = workers.stop()
        clean, fsck = rig.fsck(redis, "transfers-fsck")
        files = sum(len(names) for _, _, names in os.walk(f"{cache}/v1"))
        section = Section(
            f"transfers: {count:,} images from nginx",
            f"`submit --wait`, three workers, a fresh cache, everything by default. {len(images.paths):,} generated images of "
            f"{result['bytes'] / count:,.0f} bytes on average, each URL another key.",
        )
        settled(section, result, counts, count, "downloaded")
        section.exact("files in the cache", count, files)
        section.row("Redis memory, peak less before", "", f"{mebibytes(cost['peak']):.1f} MiB")
        section.at_most("coordinator, peak RSS", 64, mebibytes(child.peak), "MiB")
        redis_rows(section, cost, count)
        section.row("`fsck`", "clean", "clean" if clean else fsck.text().strip(), clean)
        time_rows(section, child, workers, count, noise)
        section.notes += [f"nginx: {line}" for line in server.complaints()[:3]]
        redis.stop()
    finally:
        server.stop()
    os.unlink(path)
    say("transfers: removing the cache")
    shutil.rmtree(cache)
    return section


def failing(rig, count, wanted):
    """A list of which nothing is there, and the same list again: one set of failed URLs."""
    images = Images(rig)
    server = Server(f"{rig.work}/nginx-failures", images.folder, 1, False)
    sections = []
    path = f"{rig.work}/missing.txt"
    try:
        write(path, (f"{server.base}/missing/{n:07}.png\n" for n in range(count)))
        redis = Redis(rig, "redis-failures")
        workers = Workers(rig, redis, f"{rig.work}/cache-failures", "failures")
        redis.begin()
        noise = Noise(rig, server.seconds)
        say("failures: running")
        child, result = rig.submit(redis, path, "failures", codes=(3,))
        noise = noise.cores()
        cost = redis.cost()
    finally:
        server.stop()
    counts = workers.stop()
    clean, fsck = rig.fsck(redis, "failures-fsck")
    section = Section(
        f"failures: {count:,} URLs that nginx answers with 404", "`submit --wait`, three workers, everything by default."
    )
    settled(section, result, counts, count, "httpError")
    section.exact("`skipped`", count, result["skipped"])
    section.exact("details kept", min(DETAILS, count), details(redis, result))
    section.exact("failed URLs listed", count, redis.command("SCARD", "prefetch:{default}:failed"))
    section.row("Redis memory, after less before", "", f"{mebibytes(cost['left']):,.0f} MiB, {cost['left'] / count:.0f} bytes a URL")
    section.at_most("coordinator, peak RSS", 64, mebibytes(child.peak), "MiB")
    redis_rows(section, cost, count)
    section.row("`fsck`", "clean", "clean" if clean else fsck.text().strip(), clean)
    time_rows(section, child, workers, count, noise)
    if "failures" in wanted:
        sections.append(section)
    if "blacklist" in wanted:
        exact = all(met for _, target, _, met in section.rows if target.startswith("exactly"))
        sections.append(listed(rig, count, path, redis, exact))
    redis.stop()
    os.unlink(path)
    return sections


def details(redis, result):
    return redis.command("HLEN", f"prefetch:{{default}}:b:{result['id']}:skipped")


def listed(rig, count, path, redis, was_exact):
    workers = Workers(rig, redis, f"{rig.work}/cache-failures", "listed")
    redis.begin()
    noise = Noise(rig)
    say("blacklist: running")
    child, result = rig.submit(redis, path, "listed", codes=(3,))
    noise = noise.cores()
    cost = redis.cost()
    counts = workers.stop()
    clean, fsck = rig.fsck(redis, "listed-fsck")
    section = Section(
        f"blacklist: the same {count:,} URLs again",
        "The server is ended before: a URL that is asked for would end as a failed connection and not as `blacklisted`.",
    )
    section.row("counts of the run before", "exact", "exact" if was_exact else "not exact", was_exact)
    settled(section, result, counts, count, "blacklisted")
    section.exact("details kept", min(DETAILS, count), details(redis, result))
    section.exact("failed URLs listed", count, redis.command("SCARD", "prefetch:{default}:failed"))
    section.row("Redis memory, after less before", "", f"{mebibytes(cost['left']):,.0f} MiB, the details and the outcomes of this run")
    section.row(
        "Redis CPU a job of 256: claim, look in the set, report", "", f"{microseconds(cost['cpu'], count) * 256:.0f} us")
    redis_rows(section, cost, count)
    section.row("`fsck`", "clean", "clean" if clean else fsck.text().strip(), clean)
    time_rows(section, child, workers, count, noise)
    return section
