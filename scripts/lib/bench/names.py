"""What an overloaded, a fast and a silent resolver cost: images of many hosts, through resolvers of its own."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

import machine
import rig
from server import Server

# The addresses that resolvers give, and what the image server listens on.
NET = "127.0.0.0/8"


class Resolver:
    """prefetch-origin dns; its counts when it has ended."""

    def __init__(self, bench, *options):
        words = [bench.program("prefetch-origin"), "dns", *options]
        self.child = bench.start(words, output=subprocess.PIPE)
        self.place = self.child.stdout.readline().decode().strip()

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        text = self.child.stdout.read().decode()
        self.child.wait()
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}


def address(host):
    """What prefetch-origin dns answers for it: one of 127.0.0.0/8, by FNV-1a."""
    value = 2166136261
    for byte in host.encode("ascii"):
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return f"127.{1 + (value >> 16) % 255}.{value >> 8 & 255}.{value & 255}"


CASES = ("overloaded", "fast", "silent")


def arguments():
    parser = rig.table_parser("bench names", __doc__)
    parser.add_argument("--hosts", type=rig.positive, default=1500, help="names for the overloaded resolver (1500)")
    parser.add_argument("--capacity", type=rig.positive, default=60, help="queries it answers per second (60)")
    parser.add_argument("--queue", type=rig.positive, default=10, help="queries it queues (10)")
    parser.add_argument("--servfail", type=float, default=0.02, help="share of SERVFAIL (0.02)")
    parser.add_argument("--many", type=rig.positive, default=20000, help="names for the fast resolver (20000)")
    parser.add_argument("--silence", type=rig.positive, default=60, help="seconds of the resolver's silence (60)")
    parser.add_argument("--pairs", type=rig.positive, default=15, help="pairs of runs with the fast resolver and without names (15)")
    parser.add_argument("--only", default="", help="cases, with commas in between (all)")
    options = parser.parse_args()
    options.only = rig.chosen(options.only, CASES, "case")
    return options


class Bench:
    def __init__(self, bench, options, server, names, log):
        self.bench, self.options, self.names, self.log = bench, options, names, log
        self.port = server.port
        self.rows = []
        self.failed = []

    def url(self, host, number):
        return f"http://{host}:{self.port}/{self.names[number % len(self.names)]}?{number}"

    def run(self, name, urls, *options):
        words = ["run", self.bench.write(f"{name}.txt", urls), "--cache", self.bench.path(f"cache-{name}"), "--quiet", "--json", "--allow-net", NET]
        wall, cpu, text = self.bench.coord(*words, "--ip", "4", "--max-per-host", "0", "--validate", "structure", *options, codes=(0, 3))
        return wall, cpu, json.loads(text.strip().splitlines()[-1])["outcomes"]

    def row(self, case, figure, bound, value, kept):
        self.rows.append(f"| {case} | {figure} | {bound} | {value} | {'yes' if kept else '**no**'} |")
        if not kept:
            self.failed.append(f"{case}: {figure}")
        rig.say(f"{case}: {figure} {value} (bound {bound})")

    def overloaded(self):
        options = self.options
        resolver = Resolver(self.bench, "--capacity", str(options.capacity), "--queue", str(options.queue), "--servfail", str(options.servfail))
        urls = [self.url(f"host{number}.overloaded.test", number) for number in range(options.hosts)]
        wall, _, outcomes = self.run("overloaded", urls, "-n", "4", "--max-concurrent-downloads", "128", "--dns-servers", resolver.place)
        counts = resolver.stop()
        case = f"{options.hosts:,} hosts, {options.capacity} queries/s, queue {options.queue}, {options.servfail:.0%} SERVFAIL"
        got = outcomes.get("downloaded", 0)
        self.row(case, "images", f"{options.hosts:,}", f"{got:,}", got == options.hosts)
        least = options.hosts / options.capacity
        self.row(case, "seconds against names / capacity", "1.30", f"{wall / least:.2f} ({wall:.1f} s)", wall <= 1.3 * least)
        each = counts["queries"] / options.hosts
        self.row(case, "queries per name", "1.15", f"{each:.2f} ({counts['dropped']:,} dropped)", each <= 1.15)

    def fast(self):
        options = self.options
        rates = {"names": [], "addresses": []}
        costs = {"names": [], "addresses": []}
        asked = 0
        for repetition in range(options.pairs):
            for kind in list(rates)[:: 1 if repetition % 2 == 0 else -1]:
                resolver = Resolver(self.bench, "--latency", "5ms")
                hosts = [f"host{number}.fast.test" for number in range(options.many)]
                if kind == "addresses":
                    hosts = [address(host) for host in hosts]
                urls = [self.url(host, number) for number, host in enumerate(hosts)]
                name = f"{kind}-{repetition}"
                machine.touch_memory(512 << 20)
                wall, cpu, outcomes = self.run(name, urls, "-n", "2", "--max-concurrent-downloads", "64", "--dns-servers", resolver.place)
                asked += resolver.stop()["queries"]
                if outcomes.get("downloaded") != options.many:
                    rig.fail(f"{kind}: {outcomes}", "see dmesg and prefetch-coord doctor", 70)
                rates[kind].append(options.many / wall)
                costs[kind].append(cpu / options.many * 1e6)
                rig.say(f"{repetition + 1}/{options.pairs} {kind}: {rates[kind][-1]:,.0f}/s, {costs[kind][-1]:.0f} us of CPU")
        case = f"{options.many:,} hosts, resolver of 5 ms, median of {options.pairs} pairs"
        # Of pairs, whose runs are next to each other: what a file or a page of memory costs changes over minutes.
        ratio = statistics.median(each / other for each, other in zip(rates["names"], rates["addresses"]))
        self.row(case, "rate against addresses in place of names", "0.90", f"{ratio:.2f} ({statistics.median(rates['names']):,.0f}/s)", ratio >= 0.9)
        cost = statistics.median(each - other for each, other in zip(costs["names"], costs["addresses"]))
        self.row(case, "CPU of a name, us", "40", f"{cost:.0f}", cost <= 40)
        self.row(case, "queries per name", "1.00", f"{asked / options.many / options.pairs:.2f}", asked <= 1.01 * options.many * options.pairs)

    def silent(self):
        options = self.options
        resolver = Resolver(self.bench, "--capacity", "200", "--queue", "50")
        urls = [self.url(f"host{number}.silent.test", number) for number in range(2000)]
        back = []

        def interrupt():
            time.sleep(3)
            os.kill(resolver.child.pid, signal.SIGSTOP)
            time.sleep(options.silence)
            # Queries that have waited in its socket are answered at once, too late for those who sent them.
            os.kill(resolver.child.pid, signal.SIGCONT)
            back.append(time.time())

        thread = threading.Thread(target=interrupt)
        thread.start()
        _, _, outcomes = self.run("silent", urls, "-n", "2", "--dns-servers", resolver.place)
        thread.join()
        resolver.stop()
        case = f"resolver silent for {options.silence} s in mid run"
        # A hit was downloaded by a worker whose job has moved to another before its report.
        lost = 2000 - outcomes.get("downloaded", 0) - outcomes.get("hit", 0)
        causes = ", ".join(f"{cause} {count:,}" for cause, count in outcomes.items() if count and cause != "downloaded")
        self.row(case, "URLs lost", "0", f"{lost:,}" + (f" ({causes})" if causes else ""), lost == 0)
        with open(self.log, encoding="ascii") as log:
            later = [when - back[0] for line in log if (when := float(line.split()[0])) > back[0]]
        self.row(case, "seconds until it goes on", "3", f"{min(later, default=0):.1f}", bool(later) and min(later) <= 3)


def main():
    options = arguments()
    with rig.Rig(options) as bench:
        images = bench.path("images")
        names = [path for path, *_ in rig.generate(bench.binaries, images, 200, 5000)]
        server = Server(bench.path("nginx"), images, 1, keeps_times=True, address="0.0.0.0")
        each = Bench(bench, options, server, names, bench.path("nginx/times.log"))
        for case in options.only:
            getattr(each, case)()
    lines = rig.heading("names", "many hosts, through resolvers of three kinds")
    lines += ["| case | figure | bound | measured | kept |", "|---|---|---|---|---|", *each.rows]
    rig.publish(options, "bench names", lines)
    return 1 if each.failed else 0


if __name__ == "__main__":
    sys.exit(main())
