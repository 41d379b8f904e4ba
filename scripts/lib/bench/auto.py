"""The benchmark `auto`: what --max-concurrent-downloads auto finds beside fixed numbers, on three networks. Called by scripts/bench."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import chart
import rig
from server import Server

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds to the first byte, bytes a second of each transfer, connections that are taken; 0: any. Median bytes of an image.
CASES = {
    "latency": ("origins that take 100 ms", 0.1, 0, 0, 20_000),
    "rate": ("1 MB/s from each transfer", 0, 1_000_000, 0, 500_000),
    "router": ("new connections over 300 are dropped, 300 ms", 0.3, 0, 300, 20_000),
}


def add_options(parser):
    parser.add_argument("--fixed", default="8,32,128,256,512,1024", help="fixed numbers of each worker (8,32,128,256,512,1024)")
    parser.add_argument("--workers", type=rig.positive, default=1, help="worker processes; auto knows nothing of the other ones (1)")
    parser.add_argument("--settle", type=rig.positive, default=30, help="seconds of a run before it is measured (30)")
    parser.add_argument("--seconds", type=rig.positive, default=12, help="seconds that are measured (12)")
    parser.add_argument("--origins", type=rig.positive, default=200, help="loopback addresses of the origin (200)")
    parser.add_argument("--reps", type=rig.positive, default=3, help="repetitions of each number of transfers (3)")
    parser.add_argument("--charts", metavar="DIR", help="write auto-CASE.svg there: transfers and throughput over time")


def arguments():
    parser = rig.parser("auto", "Fetches endless lists with fixed numbers of transfers and with auto, and compares their rates.")
    add_options(parser)
    parser.add_argument("--cases", default=",".join(CASES), help=f"which of {', '.join(CASES)} (all)")
    options = parser.parse_args()
    options.cases = rig.cases(options.cases, CASES)
    return options


class Watcher:
    """Reads the queue of a running run every half second: seconds, images, failures, limit of all workers, reasons."""

    def __init__(self, bench, cache):
        self.words = [bench.program("prefetch-coord"), "status", "--json", "--cache", cache]
        self.environment = bench.environment
        self.readings = []

    def read(self, began):
        result = subprocess.run(self.words, capture_output=True, env=self.environment, check=False)
        try:
            found = json.loads(result.stdout)
        except ValueError:
            return
        batches = [batch for batch in found.get("batches", []) if batch["state"] == "running"]
        workers = found.get("workers", [])
        if not batches or not workers:
            return
        batch = batches[0]
        self.readings.append(
            (
                time.monotonic() - began,
                batch["finished"] - batch["skipped"],
                batch["skipped"],
                sum(worker["max_concurrent_downloads"] for worker in workers),
                ", ".join(sorted({worker.get("concurrency_reason") or "starts" for worker in workers})),
            )
        )

    def rate(self, begin, end):
        """Images a second between two times, by the readings in them."""
        inside = [reading for reading in self.readings if begin <= reading[0] <= end]
        if len(inside) < 2:
            rig.fail("the queue could not be read while it worked", "see whether other programs are in its way", 70)
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


def run_once(bench, options, name, setting, urls):
    """One run; its watcher, its rate after `--settle`, and the share of its URLs that came. Every run is measured in the same of its seconds,
    because the kernel begins to write the files of a run to disk some half a minute after its start, in bursts some six seconds apart: two of
    them are in it."""
    cache = bench.path(f"cache-{name}-{setting}")
    words = [bench.program("prefetch-coord"), "run", urls, "--cache", cache, "-n", str(options.workers), "--quiet", "--max-per-host", "0"]
    words += ["--allow-net", "127.0.0.0/8", "--max-concurrent-downloads", str(setting), "--validate", "header"]
    words += ["--durability", "none"]
    began = time.monotonic()
    child = bench.start(words)
    watcher = Watcher(bench, cache)
    begin, end = options.settle, options.settle + options.seconds
    while time.monotonic() - began < end + 0.5:
        if child.poll() is not None:
            rig.fail(f"the list of {name} was too short for {setting}", "fewer --seconds", 70)
        watcher.read(began)
        time.sleep(0.5)
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGTERM)
        child.wait()
    shutil.rmtree(cache, ignore_errors=True)
    last = watcher.readings[-1]
    return watcher, watcher.rate(begin, end), last[1] / max(1, last[1] + last[2])


class SlowOrigin:
    """slow_origin.py as a process, used as Server is."""

    def __init__(self, bench, images, delay, most):
        words = [sys.executable, "-B", f"{HERE}/slow_origin.py", images, str(delay), str(most)]
        self.process = bench.start(words, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run_case(bench, options, name):
    what, delay, rate, most, size = CASES[name]
    images = bench.path(f"images-{name}")
    bench.run([bench.program("prefetch-origin"), "generate", images, "--count", "60", "--median", str(size), "--seed", "1"])
    with open(f"{images}/manifest.tsv", encoding="ascii") as manifest:
        names = [line.split()[0] for line in manifest]
    settings = list(dict.fromkeys([*options.fixed.split(","), "auto"]))
    runs = {setting: [] for setting in settings}
    for repetition in range(options.reps):
        turn = repetition % len(settings)
        for setting in settings[turn:] + settings[:turn]:
            # A new origin each: no connection of the run before is left.
            if rate:
                origin = Server(bench.path(f"nginx-{name}-{setting}-{repetition}"), images, 1, False, address="0.0.0.0", rate=rate)
            else:
                origin = SlowOrigin(bench, images, delay, most)
            count = int((options.settle + options.seconds + 5) * (8000 if rate == 0 else 2000))
            urls = [f"http://127.1.0.{1 + number % options.origins}:{origin.port}/{names[number % len(names)]}?{number}" for number in range(count)]
            watcher, speed, success = run_once(bench, options, name, setting, bench.write(f"{name}-{setting}.txt", urls))
            origin.stop()
            runs[setting].append((speed, success, watcher))
            said = f"{speed:,.0f} images/s, {100 * success:.2f} % came, ends with {watcher.readings[-1][3]} transfers"
            rig.say(f"{name} {repetition + 1}/{options.reps} {setting}: {said}")
    rows = []
    for setting, each in runs.items():
        # The run in the middle by its rate, and the least that came in any.
        speed, _, watcher = sorted(each, key=lambda run: run[0])[len(each) // 2]
        rows.append((setting, speed, min(success for _, success, _ in each), watcher))
    return what, rows


def draw(options, name, what, watcher):
    readings = watcher.readings
    rates = [(after[0], (after[1] - before[1]) / (after[0] - before[0])) for before, after in zip(readings, readings[2:])]
    limits = [(reading[0], reading[3]) for reading in readings]
    os.makedirs(options.charts, exist_ok=True)
    chart.series(f"{options.charts}/auto-{name}.svg", f"auto: {what}", [("transfers", "at most", limits), ("images/s", "images/s", rates)])


def measure(bench, options, cases):
    """A table of all numbers; rows of what auto has to reach, with their bounds; and the figures that are beyond theirs."""
    table, rows, failed = [], [], []
    for name in cases:
        what, runs = run_case(bench, options, name)
        fixed = [run for run in runs[:-1] if run[2] >= 0.999] or runs[:-1]
        best = max(fixed, key=lambda run: run[1])
        _, speed, success, watcher = runs[-1]
        for setting, each, came, _ in runs[:-1]:
            table.append(f"| {what} | {setting} | {each:,.0f} | {100 * came:.2f} % | {each / best[1]:.2f} |")
        last = watcher.readings[-1]
        table.append(f"| {what} | auto: {last[3]}, {last[4]} | {speed:,.0f} | {100 * success:.2f} % | {speed / best[1]:.2f} |")
        ratio = f"{speed / best[1]:.2f} ({speed:,.0f}/s with {last[3]}, {best[1]:,.0f}/s with {best[0]})"
        for figure, bound, value, kept in (
            ("rate of auto against the best fixed number", "0.90", ratio, speed >= 0.9 * best[1]),
            ("images that came with auto", "99.90 %", f"{100 * success:.2f} %", success >= 0.999),
        ):
            rows.append(f"| {what} | {figure} | {bound} | {value} | {'yes' if kept else '**no**'} |")
            if not kept:
                failed.append(f"{what}: {figure}")
        if options.charts:
            draw(options, name, what, watcher)
    return table, rows, failed


def title(options):
    workers = "one worker" if options.workers == 1 else f"{options.workers} workers"
    runs = "one run each" if options.reps == 1 else f"medians of {options.reps}"
    return f"fixed numbers of transfers and auto, {workers}, in the {options.seconds} s after {options.settle} s, {runs}"


def tabulate(table):
    lines = ["| network | transfers | images/s | came | ratio to the best fixed number |", "|---|---|---|---|---|", *table]
    return lines + ["", "The best is the fastest fixed number with 99.9 % of its images. auto has to reach 0.90 of it, and 99.9 %."]


def main():
    options = arguments()
    with rig.Rig(options) as bench:
        table, _, failed = measure(bench, options, options.cases)
    rig.publish(options, "auto", rig.heading("auto", title(options)) + tabulate(table))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
