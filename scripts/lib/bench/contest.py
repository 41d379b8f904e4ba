"""The benchmarks `latency` and `hostile`: prefetch beside curl and wget2 on a slow and on a misbehaving server. Called by scripts/bench."""

import os
import random
import socket
import statistics
import sys
import time

import left
import rig
from corpus import QUERIES, Corpus

# Of 5,000 URLs: as many of each kind as in the list of the reference.
FAULTS = {"stall": 20, "halt": 21, "drip": 24, "404": 40, "500": 20, "503": 20, "reset": 20, "cut": 40, "empty": 10, "refused": 17}


def arguments(kind):
    text = {
        "latency": "Fetches one list from a server that takes 50 to 100 ms for each answer.",
        "hostile": "Fetches one list with stalls, drips, errors and cut bodies in it; 5 s without a byte are too long.",
    }
    parser = rig.parser(kind, text[kind] + " prefetch, curl --parallel and wget2 in turn.")
    parser.add_argument("--count", type=rig.positive, default=4000, help="requests for good images (4000)")
    parser.add_argument("--in-flight", type=rig.positive, default=128 if kind == "latency" else 32, help="transfers at once")
    parser.add_argument("--reps", type=rig.positive, default=3, help="repetitions (3)")
    return parser.parse_args()


def commands(bench, kind, options, urls, list_path):
    """The words of each tool for a fresh folder, and the exit codes of a list with bad URLs."""
    limit = options.in_flight

    def prefetch(number):
        def command(folder):
            words = [bench.program("prefetch-coord"), "run", list_path, "--cache", f"{folder}/cache", "-n", "2", "--quiet"]
            words += ["--max-concurrent-downloads", str(number), "--max-per-host", "0", "--allow-net", "127.0.0.0/8"]
            words += ["--validate", "structure", "--durability", "none", "--tries", "1"]
            return words + ["--timeout", "5s", "--connect-timeout", "5s"]

        return command

    def curl(folder):
        for shard in range(256):
            os.makedirs(f"{folder}/{shard:02x}")
        lines = []
        for number, url in enumerate(urls):
            lines += [f'url = "{url}"', f'output = "{folder}/{number % 256:02x}/{number}"']
        config = bench.write(f"curl-{os.path.basename(folder)}.txt", lines)
        words = ["curl", "-q", "--silent", "--fail", "--parallel", "--parallel-immediate", "--parallel-max", str(limit)]
        return words + ["--connect-timeout", "5", "--speed-limit", "1000", "--speed-time", "5", "-K", config]

    def wget2(folder):
        words = ["wget2", "--no-config", "--quiet", "--progress=none", "-i", list_path, f"--max-threads={limit}", "--timeout=5"]
        return words + ["--force-directories", "--no-host-directories", "-P", folder, "--tries=1", "--no-robots", "--no-hsts"]

    # curl and wget2 end with the code of one of their failures.
    every = tuple(range(128))
    tools = {"prefetch": (prefetch(max(1, limit // 2)), (0, 3)), "curl --parallel": (curl, every), "wget2": (wget2, every)}
    if kind == "hostile":
        # A number is a maximum, silent transfers included, as the others' are.
        tools["prefetch auto"] = (prefetch("auto"), (0, 3))
    return tools


def main():
    kind = sys.argv.pop(1)
    options = arguments(kind)
    with rig.Rig(options) as bench:
        images = max(1, options.count // QUERIES)
        corpus = Corpus(bench.path("corpus"), bench.program("prefetch-origin"), images, 1, False)
        flags = ["--delay", "50ms-100ms"] if kind == "latency" else ["--faults"]
        base = bench.serve(corpus.folder, *flags)
        urls = corpus.urls(base)
        bad = 0
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        if kind == "hostile":
            for fault, share in FAULTS.items():
                count = max(1, round(share * len(urls) / 5000))
                bad += count
                place = f"http://127.0.0.1:{closed.getsockname()[1]}" if fault == "refused" else base
                urls += [f"{place}/fault/{fault}/{number}.jpg" for number in range(count)]
            random.Random(1).shuffle(urls)
        list_path = bench.write("urls.txt", urls)
        tools = commands(bench, kind, options, urls, list_path)
        flags = {}
        rows = {name: [] for name in tools}
        names = list(tools)
        for repetition in range(options.reps):
            turn = repetition % len(names)
            for name in names[turn:] + names[:turn]:
                command, codes = tools[name]
                folder = bench.path(f"{repetition}-{name.replace(' ', '-')}")
                os.makedirs(folder)
                os.sync()
                words = command(folder)
                # Programs, folders and files by their last names: what was run, not where.
                flags[name] = " ".join(os.path.basename(word) if word.startswith("/") else word for word in words)
                began = time.time()
                wall, cpu, _ = bench.run(words, codes)
                found = left.count(folder, corpus, QUERIES, thoroughly=True)
                rows[name].append((wall, found["last"] - began, cpu, found))
                rig.say(f"{repetition + 1}/{options.reps} {name}: {wall:.2f} s, {found}")
        closed.close()
    what = f"{corpus.images * QUERIES:,} good requests" + (f" and {bad} that misbehave" if bad else ", 50 to 100 ms each")
    lines = rig.heading(kind, f"{what}, {options.in_flight} in flight")
    lines += [
        "| tool | until the last good image s, median (min-max) | good images/s | ratio to prefetch | whole run s | client CPU us/request | "
        "left: good / other / missing |",
        "|---|---|---|---|---|---|---|",
    ]
    # Of those that came: a tool that gives up the rest is not the faster for it.
    rates = {name: statistics.median(row[3]["good"] / row[1] for row in runs) for name, runs in rows.items()}
    for name, runs in rows.items():
        walls, lasts = [row[0] for row in runs], [row[1] for row in runs]
        cpu = statistics.median(row[2] for row in runs) / len(urls) * 1e6
        found = runs[0][3]
        kept = f"{found['good']:,} / {found['other'] + found['broken']:,} / {found['missing']:,}"
        lines.append(
            f"| {name} | {statistics.median(lasts):.2f} ({min(lasts):.2f}-{max(lasts):.2f}) | {rates[name]:,.0f} | "
            f"{rates[name] / rates['prefetch']:.2f} | {statistics.median(walls):.2f} | {cpu:.0f} | {kept} |"
        )
    if bad:
        kinds = ", ".join(f"{name} {max(1, round(share * corpus.images * QUERIES / 5000))}" for name, share in FAULTS.items())
        lines += ["", f"What misbehaves: {kinds}. One try each. All end a transfer after 5 s without a byte; curl then also ends what is "]
        lines[-1] += "slower than 1,000 bytes/s for 5 s, prefetch after 20 s, wget2 has no such limit."
    lines += ["", *(f"- {name}: `{words}`" for name, words in flags.items())]
    lines += ["", f"Repetitions: {options.reps}, the order of the tools rotated, a fresh folder for each."]
    rig.publish(options, kind, lines)
    ours = [row for name, runs in rows.items() if name.startswith("prefetch") for row in runs]
    return 0 if all(row[3]["missing"] == 0 and row[3]["other"] == 0 for row in ours) else 1


if __name__ == "__main__":
    sys.exit(main())
