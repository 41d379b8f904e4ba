"""The benchmark `start`: commands with one URL, hundreds of times. A run in hundreds that hangs at its end is not in the median. Called by scripts/bench."""

import shutil
import statistics
import sys

import rig
from server import Server

# More than a busy machine adds to the median: the run has hung.
MOST_SECONDS = 1


def arguments():
    parser = rig.parser("start", "Runs each command many times with one URL, and shows the slowest run beside the median.")
    parser.add_argument("--runs", type=rig.positive, default=300, help="runs of each (300)")
    return parser.parse_args()


def measure(bench, options, commands):
    """Wall and CPU seconds of each run, by command; the commands take turns."""
    found = {name: [] for name in commands}
    for number in range(options.runs):
        for name in list(commands)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(bench.run(commands[name])[:2])
            shutil.rmtree(bench.path("cache"), ignore_errors=True)
        if (number + 1) % 50 == 0:
            rig.say(f"{number + 1} of {options.runs}")
    return found


def main():
    options = arguments()
    with rig.Rig(options) as bench:
        images = bench.path("images")
        bench.run([bench.program("prefetch-origin"), "generate", images, "--count", "1", "--seed", "1"])
        with open(f"{images}/manifest.tsv", encoding="ascii") as manifest:
            name = manifest.readline().split()[0]
        server = Server(bench.path("nginx"), images, 1, False)
        redis, _ = bench.redis()
        try:
            url = f"{server.base}/{name}"
            path = bench.write("one.txt", [url])
            coordinator = bench.program("prefetch-coord")
            bench.run([coordinator, "submit", path, "--redis", redis, "--quiet"])
            words = [coordinator, "run", path, "--cache", bench.path("cache"), "--quiet", "--allow-net", "127.0.0.0/8"]
            commands = {
                "run -n 2, one URL": [*words, "-n", "2"],
                "run -n 1, one URL": [*words, "-n", "1"],
                "status of one batch": [coordinator, "status", "--redis", redis],
                "curl, one URL": ["curl", "-q", "--silent", "--fail", "--output", bench.path("one"), url],
            }
            found = measure(bench, options, commands)
        finally:
            server.stop()
    lines = rig.heading("start", f"{options.runs} runs of each command, in turn")
    lines += ["| command | wall ms, median (min-max) | 99 of 100 within | CPU ms, median |", "|---|---:|---:|---:|"]
    hung = []
    for name, runs in found.items():
        walls = sorted(wall * 1000 for wall, _ in runs)
        middle = statistics.median(walls)
        late = walls[min(len(walls) - 1, len(walls) * 99 // 100)]
        cpu = statistics.median(cpu for _, cpu in runs) * 1000
        lines.append(f"| {name} | {middle:.0f} ({walls[0]:.0f}-{walls[-1]:.0f}) | {late:.0f} | {cpu:.0f} |")
        if walls[-1] > middle + 1000 * MOST_SECONDS:
            hung.append(name)
    if hung:
        lines += ["", f"FAILED: more than {MOST_SECONDS} s beyond the median: {', '.join(hung)}."]
    rig.publish(options, "start", lines)
    return 1 if hung else 0


if __name__ == "__main__":
    sys.exit(main())
