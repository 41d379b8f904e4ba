"""Every set of URLs with every tool that is installed, in one run; tables, and a chart."""

import os
import random
import statistics
import subprocess
import sys
import time

import chart
import left
import machine
import rig
from corpus import MIX, QUERIES, Corpus
from peers import ANY, HERE, Peers, compiled
from server import Server

PEERS = ["curl", "wget2", "aria2", "aiohttp", "img2dataset", "scrapy"]
EVERY = ["prefetch", "bare", *PEERS]
# What a pass over the files of curl does.
PASSES = {"curl, then a full pass": "decode", "curl, then the cheapest pass": "cheapest"}
TRUSTED = ["prefetch, defaults", "bare, same checks", *PASSES]
QUIET_CORES = 0.25
# Median bytes of the generator, requests, transfers at once, tools; what is said of it.
SETS = {
    "web": (27_000, 10_000, 64, EVERY, "images of the web"),
    "small": (9_500, 10_000, 64, EVERY, "small images"),
    "large": (1_000_000, 1_000, 32, EVERY, "large images"),
    "latency": (27_000, 10_000, 512, EVERY, "the server takes 50 to 100 ms for each answer"),
    "short": (27_000, 5_000, 64, ["prefetch", "bare", "curl"], "a short list, from start to exit"),
    "hostile": (27_000, 4_000, 32, ["prefetch", "prefetch, defaults", "curl", "wget2", "aria2", "aiohttp"], "stalls, drips, errors and cut bodies in the list"),
    "trusted": (27_000, 4_000, 64, TRUSTED, "the time to a cache of which every file was decoded and hashed"),
    "mix": (27_000, 4_000, 64, TRUSTED, f"the same, of the formats of the web: {MIX}"),
    "workers": (27_000, 4_000, 64, [f"prefetch, {count} of them" for count in (1, 2, 4)], "worker processes, every file decoded and hashed"),
    "hits": (27_000, 40_000, 64, ["prefetch"], "the same list again over a full cache"),
    "https": (27_000, 5_000, 64, ["prefetch", "prefetch, HTTP/2", "bare", "curl", "curl, HTTP/1.1", "wget2"], "HTTPS, verified certificates"),
    "hosts": (27_000, 5_000, 64, ["prefetch", "bare", "curl", "wget2"], "many hosts"),
}
# The numbers of hosts of a set; each is an address of its own, and the n-th has n to the -0.9th as many URLs.
HOSTS = {"small": (8,), "latency": (8,), "hostile": (8,), "https": (40, 1), "hosts": (1, 8, 250)}
USUAL = (40,)
# Of 5,000 URLs of the hostile set: what misbehaves, and how often.
FAULTS = {"stall": 20, "halt": 21, "drip": 24, "404": 40, "500": 20, "503": 20, "reset": 20, "cut": 40, "empty": 10, "refused": 17}
SILENCE = 5
# Seconds above which a tool is run once: the spread of so slow a tool changes no comparison.
ONCE = 20


def arguments():
    result = rig.table_parser("bench sets", __doc__)
    result.add_argument("--only", default="", help="names of sets, with commas in between (all)")
    result.add_argument("--tools", default="", help="names of tools, with commas in between (all)")
    result.add_argument("--without", default="", help="names of tools to leave out, with commas in between (none)")
    result.add_argument("--reps", type=rig.positive, default=5, help="repetitions (5)")
    result.add_argument("--scale", type=float, default=1.0, help="times as many requests (1)")
    result.add_argument("--charts", metavar="FOLDER", help="where performance.svg goes")
    return result.parse_args()


class Set:
    """One set: its corpus, its server, its list, and the runs of its tools."""

    def __init__(self, bench, options, bare, python, name, hosts):
        self.bench, self.options, self.bare, self.name, self.hosts = bench, options, bare, name, hosts
        median, requests, self.in_flight, self.tools, self.about = SETS[name]
        requests = max(QUERIES, round(requests * options.scale))
        self.corpus = Corpus(bench, f"{name}-{hosts}-corpus", max(1, requests // QUERIES), median, mixed_by=python if name == "mix" else None)
        self.server = None
        if name in ("latency", "hostile"):
            words = ["--delay", "50ms-100ms"] if name == "latency" else ["--faults"]
            bases = [bench.serve(self.corpus.folder, "--address", f"127.1.0.{number + 1}", *words) for number in range(hosts)]
        else:
            folder = bench.path(f"{name}-{hosts}-nginx")
            self.server = Server(folder, self.corpus.folder, min(2, os.cpu_count()), hosts=hosts, tls=name == "https")
            bases = self.server.bases
        self.urls = self.corpus.urls(*bases)
        self.bad = self.add_faults(bases) if name == "hostile" else 0
        path = bench.write(f"{name}.txt", self.urls)
        self.peers = Peers(bench, bare, python, self.urls, path, self.in_flight, SILENCE if self.bad else None, self.server and self.server.authority)
        without = options.without.split(",")
        self.rows = {tool: [] for tool in self.tools if tool not in without and (not options.tools or tool in options.tools.split(","))}
        self.absent = {tool: why for tool in self.rows if (why := self.peers.missing(tool))}
        for tool in self.absent:
            del self.rows[tool]

    def add_faults(self, bases):
        self.closed, port = rig.refusing()
        good = len(self.urls)
        for fault, share in FAULTS.items():
            places = [f"http://127.0.0.1:{port}"] if fault == "refused" else bases
            self.urls += [f"{places[number % len(places)]}/fault/{fault}/{number}.jpg" for number in range(max(1, round(share * good / 5000)))]
        random.Random(1).shuffle(self.urls)
        return len(self.urls) - good

    def stop(self):
        if self.server:
            self.server.stop()
        if self.bad:
            self.closed.close()

    def run(self):
        if self.name == "hits":
            self.once("prefetch", "full", None)
        for repetition in range(self.options.reps):
            names = list(self.rows)
            turn = repetition % max(1, len(names))
            for tool in names[turn:] + names[:turn]:
                if self.rows[tool] and self.rows[tool][0]["wall"] > ONCE:
                    continue
                row = self.once(tool, f"{repetition}", repetition)
                self.rows[tool].append(row)
                rig.say(f"{self.name} {repetition + 1}/{self.options.reps} {tool}: {row['wall']:.2f} s, {row['left']}")

    def once(self, tool, run, repetition):
        """One measured run in a fresh folder."""
        run = "full" if self.name == "hits" else run
        place = self.bench.path(f"runs/{self.name}-{self.hosts}-{tool.replace(' ', '').replace(',', '-')}-{run}")
        os.makedirs(place, exist_ok=True)
        words, codes = self.peers.words["curl" if tool in PASSES else tool]
        words = words(place)
        os.sync()
        self.corpus.warm()
        machine.touch_memory(QUERIES * self.corpus.bytes + (512 << 20))
        served = self.server.seconds() if self.server else 0
        busy, began, accepted = machine.busy_seconds(), time.time(), machine.accepted_connections()
        wall, cpu, text = self.bench.run(words, ANY)
        code, accepted = self.bench.code, machine.accepted_connections() - accepted
        if tool in PASSES:
            fetched = self.bench.write("pass.txt", (f"file://{path}" for path in left.files(place)))
            more, its, _ = self.bench.run([self.bare, "-p", str(os.cpu_count()), "-m", PASSES[tool], fetched])
            wall, cpu = wall + more, cpu + its
        noise = machine.busy_seconds() - busy - cpu - (self.server.seconds() - served if self.server else 0)
        thorough = repetition == 0 and self.name != "hits" or bool(self.bad)
        found, times = left.count(place, self.corpus, thorough)
        row = {"wall": wall, "cpu": cpu, "left": found, "code": code, "noise": max(0, noise / wall) if self.server else None, "connections": accepted}
        if self.bad:
            row["times"] = [when - began for when in times]
        if code not in codes:
            row["failed"] = f"ended with {code}"
            rig.say(text[-800:])
        elif found.get("missing"):
            row["failed"] = f"{found['missing']:,} images are missing"
        elif tool.startswith("prefetch") and found.get("other"):
            row["failed"] = "it kept files that are no images of the list"
        if self.name != "hits":
            left.empty(place)
        return row

    # The table

    def rate(self, tool):
        return len(self.urls) / statistics.median(row["wall"] for row in self.rows[tool])

    def table(self):
        rates = {tool: self.rate(tool) for tool, runs in self.rows.items() if not any(row.get("failed") for row in runs)}
        bases = [base for base in ("curl", "bare", *PASSES, "bare, same checks") if base in rates]
        mean = self.corpus.bytes / self.corpus.images / 1000
        title = f"### {self.name}: {self.about}; {self.hosts} host{'s' if self.hosts > 1 else ''}; {len(self.urls):,} URLs, {mean:,.0f} KB on average, {self.in_flight} in flight"
        cells = ["tool", "wall s, median (min-max)"] + (["last good image s"] if self.bad else []) + ["URLs/s", *(f"to {base}" for base in bases)]
        cells += ["CPU us a URL", "connections", "left: good / other / missing"]
        lines = [title, "", f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"]
        for tool, runs in self.rows.items():
            walls = [row["wall"] for row in runs]
            row = [tool, f"{statistics.median(walls):.2f} ({min(walls):.2f}-{max(walls):.2f})"]
            if self.bad:
                row.append(f"{statistics.median(max(one['times'], default=0) for one in runs):.2f}")
            failed = next((one["failed"] for one in runs if one.get("failed")), None)
            if failed:
                row += [f"FAILED: {failed}"] + ["-"] * len(bases)
            else:
                row += [f"{rates[tool]:,.0f}"] + [f"{rates[tool] / rates[base]:.2f}" for base in bases]
            row.append(f"{statistics.median(one['cpu'] for one in runs) / len(self.urls) * 1e6:,.0f}")
            row.append(f"{statistics.median(one['connections'] for one in runs):,.0f}")
            found = next((one["left"] for one in runs if "good" in one["left"]), None)
            row.append("-" if found is None else f"{found['good']:,} / {found['other']:,} / {found['missing']:,}")
            lines.append(f"| {' | '.join(row)} |")
        lines.append("")
        for tool in self.rows:
            place = self.bench.path(f"typed/{self.name}")
            text = self.peers.typed("curl" if tool in PASSES else tool, place)
            lines.append(f"- {tool}: `{text}`" + (f", then `bare -p {os.cpu_count()} -m {PASSES[tool]} FILES`" if tool in PASSES else ""))
        lines += [f"- without {tool}: {why}" for tool, why in self.absent.items()]
        return lines + [""]


def noise(sets):
    """Whether the machine was quiet."""
    most = max((row["noise"] for each in sets for runs in each.rows.values() for row in runs if row["noise"] is not None), default=0)
    verdict = "The machine was quiet" if most < QUIET_CORES else "The machine was not quiet"
    return f"{verdict}: other programs used at most {most:.2f} cores during a run."


def versions():
    programs = {"curl": ["curl", "--version"], "wget2": ["wget2", "--version"], "aria2": ["aria2c", "--version"]}
    programs |= {"nginx": ["nginx", "-v"], "redis": ["redis-server", "--version"]}
    return ", ".join(f"{name} {machine.version(words)}" for name, words in programs.items())


def main():
    options = arguments()
    names = rig.chosen(options.only, SETS, "set")
    done, lines = [], []
    peers = subprocess.run([f"{HERE}/../python-tools", "peers"], stdout=subprocess.PIPE, text=True, check=False)
    python = peers.stdout.strip() if peers.returncode == 0 else None
    with rig.Rig(options) as bench:
        bare = compiled(bench)
        for name, hosts in ((name, hosts) for name in names for hosts in HOSTS.get(name, USUAL)):
            if name == "mix" and not python:
                rig.say("without mix: Pillow makes it, and could not be installed")
                continue
            rig.say(f"{name}: {SETS[name][4]}, hosts: {hosts}")
            each = Set(bench, options, bare, python, name, hosts)
            try:
                each.run()
                lines += each.table()
            finally:
                each.stop()
            done.append(each)
    head = rig.heading("sets", f"{len(names)} sets, medians of {options.reps}")
    head += [
        f"Kernel {os.uname().release}, {machine.file_system(options.work)}; {versions()}; aiohttp, img2dataset and scrapy are those of "
        f"scripts/lib/python-tools. LIST and DIR stand for the list and a fresh folder, what curl's configuration names is the URL and the file of each line. A fresh folder for each run, the order of the "
        f"tools rotated; a tool that takes more than {ONCE} s is run once. What each left is compared with the images of the server by content (other: bodies of errors and parts of "
        "files; of img2dataset its metadata). CPU is user and system time of all processes of a tool, the private Redis of prefetch included. " + noise(done),
        "",
    ]
    if options.charts:
        chart.bars(f"{options.charts}/performance.svg", done)
    # Chosen sets have a place of their own on a page: the tables of the others stay.
    rig.publish(options, f"bench sets --only {options.only}" if options.only else "bench sets", head + lines)
    return int(any(row.get("failed") for each in done for tool in each.rows if tool.startswith("prefetch") for row in each.rows[tool]))


if __name__ == "__main__":
    sys.exit(main())
