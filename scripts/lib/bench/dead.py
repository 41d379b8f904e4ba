"""The benchmark `dead`: what hosts that give no answer cost the URLs of those that do. Called by scripts/bench."""

import json
import random
import socket
import statistics
import sys

import rig
from server import Server


def closed_port():
    """A port that refuses every connection, for as long as the socket lives."""
    taken = socket.socket()
    taken.bind(("0.0.0.0", 0))
    return taken, taken.getsockname()[1]


def silent_port():
    """A port that drops every connection: its queue is full, and nobody takes from it."""
    full = socket.socket()
    full.bind(("0.0.0.0", 0))
    full.listen(0)
    port = full.getsockname()[1]
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
    return [full, *fillers], port


def arguments():
    parser = rig.parser("dead", "Fetches good URLs alone, and with dead hosts among them: half refuse connections, half drop them.")
    parser.add_argument("--good", type=rig.positive, default=5000, help="good URLs (5000)")
    parser.add_argument("--dead", type=int, default=200, help="dead hosts (200)")
    parser.add_argument("--each", type=rig.positive, default=2, help="URLs of each dead host (2)")
    parser.add_argument("--reps", type=rig.positive, default=3, help="repetitions (3)")
    parser.add_argument("--validate", default="decode", help="how far images are checked (decode)")
    return parser.parse_args()


def main():
    options = arguments()
    refusing, refused_port = closed_port()
    dropping, dropped_port = silent_port()
    rates = {"alone": [], "with dead hosts": []}
    walls = {"alone": [], "with dead hosts": []}
    skipped = {}
    with rig.Rig(options) as bench:
        images = bench.path("images")
        bench.run([bench.program("prefetch-origin"), "generate", images, "--count", "200", "--seed", "1"])
        with open(f"{images}/manifest.tsv", encoding="ascii") as manifest:
            names = [line.split()[0] for line in manifest]
        dead = []
        for number in range(options.dead):
            port = refused_port if number % 2 else dropped_port
            host = f"127.{1 + number % 2}.{number // 250}.{1 + number % 250}:{port}"
            dead += [f"http://{host}/{each}.jpg" for each in range(options.each)]
        for repetition in range(options.reps):
            kinds = list(rates)
            for kind in kinds if repetition % 2 == 0 else kinds[::-1]:
                name = f"{repetition}-{len(rates[kind])}-{kind.split()[0]}"
                server = Server(bench.path(f"nginx-{name}"), images, 1, False, keeps_times=True)
                try:
                    urls = [f"{server.base}/{names[number % len(names)]}?{number}" for number in range(options.good)]
                    if kind != "alone":
                        urls += dead
                    random.Random(repetition).shuffle(urls)
                    words = [bench.program("prefetch-coord"), "run", bench.write(f"{name}.txt", urls)]
                    words += ["--cache", bench.path(f"cache-{name}"), "-n", "2", "--max-per-host", "0", "--quiet", "--json"]
                    words += ["--allow-net", "127.0.0.0/8", "--validate", options.validate]
                    wall, _, text = bench.run(words, codes=(0, 3))
                finally:
                    server.stop()
                with open(bench.path(f"nginx-{name}/times.log"), encoding="ascii") as log:
                    times = sorted(float(line.split()[0]) for line in log)
                outcomes = json.loads(text.strip().splitlines()[-1])["outcomes"]
                if outcomes.get("downloaded") != options.good or len(times) < options.good:
                    rig.fail(f"only {outcomes.get('downloaded')} of the good URLs came", "try a smaller --good, and see whether other programs are in its way", 70)
                rates[kind].append(len(times) / (times[-1] - times[0]))
                walls[kind].append(wall)
                if kind != "alone":
                    skipped = {key: value for key, value in outcomes.items() if value and key != "downloaded"}
                rig.say(f"{repetition + 1}/{options.reps} {kind}: {rates[kind][-1]:,.0f} good/s, {wall:.1f} s in all")
    refusing.close()
    for each in dropping:
        each.close()
    ratio = statistics.median(rates["with dead hosts"]) / statistics.median(rates["alone"])
    lines = rig.heading("dead", f"{options.dead} dead hosts with {options.each} URLs each among {options.good:,} good URLs")
    lines += ["| list | good URLs/s, median (min-max) | whole run s |", "|---|---|---|"]
    for kind, values in rates.items():
        middle = statistics.median(values)
        lines.append(f"| {kind} | {middle:,.0f} ({min(values):,.0f}-{max(values):,.0f}) | {statistics.median(walls[kind]):.1f} |")
    ended = ", ".join(f"{name} {count:,}" for name, count in skipped.items())
    lines += ["", f"With dead hosts the good ones have {ratio:.2f} of their rate (at least 0.90); the others ended as {ended}."]
    rig.publish(options, "dead", lines)
    return 0 if ratio >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
