"""The queue at full size: ten million URLs of cached images, or with --failing as many that are not there. Prints target, measured and verdict;
exit 1 where a target is missed."""

import json
import sys
import time

import machine
import rig

ROOT = "prefetch:{default}"
WORKERS, QUERIES = 3, 100
# Mebibytes of Redis and of the coordinator, however long the list is.
REDIS, COORDINATOR = 48, 64


def info(client):
    """What Redis says of itself."""
    return dict(line.split(":", 1) for line in client("INFO", "everything").splitlines() if ":" in line)


def fields(text):
    return {name: float(value) for name, value in (part.split("=") for part in text.split(","))}


def measure(bench, options):
    """The title, and the rows: what, target, measured, and whether it is met, None where there is no target."""
    count, fails, net = options.count, options.failing, ["--cache", bench.path("cache"), "--allow-net", "127.0.0.0/8", "--quiet"]
    files = rig.generate(bench.binaries, bench.path("images"), 1 if fails else -(-count // QUERIES), 1000)
    base, names = bench.serve(bench.path("images")), [path for path, *_ in files]
    key, outcome = ([], "httpError") if fails else (["--cache-key", "without-query"], "hit")
    if fails:
        path = bench.write("urls.txt", (f"{base}/missing/{n:07}.png" for n in range(count)))
    else:
        bench.coord("run", bench.write("warm.txt", (f"{base}/{name}" for name in names)), *key, *net)
        path = bench.write("urls.txt", (f"{base}/{names[n % len(names)]}?q={n // len(names)}" for n in range(count)))
    redis = bench.redis("redis", "--latency-tracking", "yes")
    client = redis.client(60)
    workers = [bench.start([bench.program("prefetch-worker"), "--redis", redis.url, *net], f"worker{number}") for number in range(WORKERS)]
    while client("ZCARD", f"{ROOT}:workers") < WORKERS:
        time.sleep(0.01)
    before = info(client)
    rig.say(f"{count:,} URLs")
    words = ["/usr/bin/time", "-q", "-f", "%M", "-o", bench.path("size"), bench.program("prefetch-coord"), "submit", path, "--redis", redis.url]
    wall, cpu, text = bench.run([*words, "--wait", "--json", "--window", options.window, *key], codes=(0, 3))
    now, spent = info(client), sum(machine.process_seconds(child.pid) for child in workers)
    with open(bench.path("size"), encoding="ascii") as file:
        size = int(file.read()) / 1024
    rows, found = [], json.loads(text.splitlines()[-1])["outcomes"][outcome]
    rows.append((f"`{outcome}`", f"exactly {count:,}", f"{found:,}", found == count))
    used = sum(float(now[name]) - float(before[name]) for name in ("used_cpu_user", "used_cpu_sys"))
    rows.append(("Redis CPU a URL", "", f"{used / count * 1e6:.2f} us", None))
    slow, calls = fields(now["latency_percentiles_usec_evalsha"])["p99.9"] / 1000, fields(now["cmdstat_evalsha"])["calls"]
    rows.append(("scripts, p99.9", "< 5 ms", f"{slow:.2f} ms ({calls:,.0f} calls)", slow < 5))
    peak, left = ((int(now[name]) - int(before["used_memory"])) / 2**20 for name in ("used_memory_peak", "used_memory"))
    is_bounded = not fails and options.window != "all"
    limit = f"< {REDIS} MiB" if is_bounded else ""
    rows.append(("Redis memory, at most", limit, f"{peak:.1f} MiB, {peak * 2**20 / count:.0f} bytes a URL", peak < REDIS if is_bounded else None))
    rows.append(("Redis memory, afterwards", "", f"{left:.1f} MiB, {left * 2**20 / count:.0f} bytes a URL", None))
    rows.append(("coordinator, largest size", f"< {COORDINATOR} MiB", f"{size:.1f} MiB", size < COORDINATOR))
    rows.append(("time", "", f"{wall:.1f} s, {count / wall:,.0f} URLs/s", None))
    rows.append(("CPU of the workers, of the coordinator", "", f"{spent / count * 1e6:.1f} us, {cpu / count * 1e6:.2f} us a URL", None))
    wall, cpu, text = bench.coord("fsck", "--redis", redis.url, codes=(0, 1))
    rows.append(("`fsck`", "clean", f"clean, in {wall:.1f} s, {cpu:.1f} s CPU" if bench.code == 0 else text.strip()[-300:], bench.code == 0))
    return f"{count:,} " + ("URLs that are not there" if fails else f"URLs of {len(names):,} cached images"), rows


def main():
    parser = rig.table_parser("bench scale", __doc__)
    parser.add_argument("--count", type=rig.positive, default=10_000_000, help="URLs (10,000,000)")
    parser.add_argument("--failing", action="store_true", help="none is there")
    parser.add_argument("--window", default="auto", help="of submit; all: every job waits in Redis (auto)")
    options = parser.parse_args()
    with rig.Rig(options) as bench:
        title, rows = measure(bench, options)
    lines = rig.heading("scale", title)
    lines.append(
        f"Files are on {machine.file_system(options.work)}, the append-only file of Redis too. `submit --wait --window {options.window}`, {WORKERS} workers, "
        "everything else by default.")
    lines += ["", "| what | target | measured | verdict |", "|---|---|---|---|"]
    verdicts = {None: "", True: "met", False: "**missed**"}
    lines += [f"| {what} | {target} | {measured} | {verdicts[met]} |" for what, target, measured, met in rows]
    missed = [what for what, _, _, met in rows if met is False]
    lines += ["", f"Missed: {'; '.join(missed)}." if missed else "Every target met."]
    rig.publish(options, "bench scale --failing" if options.failing else "bench scale", lines)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
