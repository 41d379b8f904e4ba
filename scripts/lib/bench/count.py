"""Work per URL that does not depend on the machine's load: instructions, allocations, system calls and futex calls of one worker, beside the
bare libcurl program with the same list.

Two runs of each, of which one has a few URLs; their difference is divided by the difference of their URLs, so that start and end do not
count. valgrind counts instructions and allocations (software SHA, threads one after the other), strace system calls in runs of their own,
because under valgrind no thread finds another one waiting."""

import collections
import glob
import os
import re
import shutil
import subprocess

import rig
from corpus import QUERIES, Corpus
from peers import compiled
from server import Server

IN_FLIGHT = 16
# The C library copies with vector instructions: a `rep movsb` counts as one instruction a byte.
TUNABLES = "glibc.cpu.x86_rep_movsb_threshold=2000000000"
# Libraries below this share of a worker's instructions are one row.
LEAST_SHARE = 0.01
FIGURES = ("user instructions", "allocations", "system calls", "futex calls")


def arguments():
    result = rig.table_parser("bench count", __doc__)
    result.add_argument("--count", type=rig.positive, default=4000, help="URLs of the larger run (4,000)")
    result.add_argument("--few", type=rig.positive, default=400, help="URLs of the smaller one (400)")
    options = result.parse_args()
    if options.few >= options.count:
        rig.fail("--few is not below --count", "see scripts/bench count --help", 64)
    return options


def figure(text, pattern):
    """The sum over all processes of a log."""
    found = re.findall(pattern, text)
    if not found:
        rig.fail("a log has no figure", f"looked for {pattern}", 70)
    return sum(int(number.replace(",", "")) for number in found)


def libraries(path):
    """Instructions by library, from what callgrind wrote of each process of a run."""
    found = collections.Counter()
    for file in glob.glob(f"{path}.*"):
        names, library, is_call = {}, "", False
        with open(file, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                word, _, rest = line.rstrip("\n").partition("=")
                if word in ("ob", "cob"):
                    # A name comes with its number the first time.
                    number, _, name = rest.partition(" ")
                    names[number] = name or names[number]
                    library = names[number] if word == "ob" else library
                elif word == "calls":
                    is_call = True
                elif line[:1].isdigit() or line[:1] in "+-*":
                    # Behind a call the line has what was called, too.
                    found[os.path.basename(library).split(".")[0]] += 0 if is_call else int(line.split()[1])
                    is_call = False
    return found


class Program:
    def __init__(self, bench, name, urls):
        self.bench, self.name, self.urls = bench, name, urls
        self.list = bench.write(f"{name}-{len(urls)}.txt", urls)
        self.runs = 0
        self.parts = None

    def once(self, *tool):
        """Runs it under a tool, over an empty cache; the words of a worker after its list is queued."""
        self.runs += 1
        folder = self.bench.path(f"{self.name}-{len(self.urls)}-{self.runs}")
        os.makedirs(folder)
        words = self.words(folder)
        _, _, text = self.bench.run(["env", f"GLIBC_TUNABLES={TUNABLES}", *tool, *words])
        shutil.rmtree(folder)
        return text

    def counts(self):
        """Totals of one run each, by figure."""
        log = self.bench.path("tool.log")
        valgrind = ["valgrind", "--fair-sched=yes", "--child-silent-after-fork=no"]
        profile = self.bench.path(f"callgrind-{self.name}-{len(self.urls)}")
        self.once(*valgrind, "--tool=callgrind", f"--callgrind-out-file={profile}.%p")
        self.parts = libraries(profile)
        text = self.once(*valgrind, "--tool=memcheck", "--leak-check=no", "--undef-value-errors=no")
        allocations = figure(text, r"total heap usage: ([\d,]+) allocs")
        self.once("strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", log)
        with open(log, encoding="utf-8") as file:
            text = file.read()
        calls = figure(text, r"(?m)^\s*(\d+)\s+total$")
        futex = sum(int(number) for number in re.findall(r"(?m)^\s*(\d+)\s+futex$", text))
        return dict(zip(FIGURES, (sum(self.parts.values()), allocations, calls, futex)))


class Bare(Program):
    def __init__(self, bench, urls, path):
        super().__init__(bench, "bare", urls)
        self.path = path

    def words(self, folder):
        return [self.path, "-p", "1", "-c", str(IN_FLIGHT), "-m", "none", "-o", folder, self.list]


class Worker(Program):
    def __init__(self, bench, urls, redis):
        super().__init__(bench, "worker", urls)
        self.redis = redis
        # valgrind cannot read all of a Swift program's debug information.
        self.program = bench.path("prefetch-worker")
        subprocess.run(["strip", "-g", "-o", self.program, bench.program("prefetch-worker")], check=True)

    def words(self, folder):
        where = ["--redis", self.redis, "--queue", f"q{len(self.urls)}-{self.runs}"]
        like = ["--validate", "structure", "--durability", "none", "--max-per-host", "0", "--timeout", "600s"]
        self.bench.run([self.bench.program("prefetch-coord"), "submit", self.list, *where, *like])
        words = [self.program, *where, "--cache", f"{folder}/cache", "--burst"]
        # Under valgrind it is forty times slower, and nobody is to take its jobs for that.
        words += ["--lease", "600s", "--max-concurrent-downloads", str(IN_FLIGHT)]
        return words + ["--allow-net", "127.0.0.0/8", "--quiet"]


def per_url(larger, smaller):
    """The figures of a URL, and its instructions by library."""
    many, few = larger.counts(), smaller.counts()
    urls = len(larger.urls) - len(smaller.urls)
    figures = {name: (many[name] - few[name]) / urls for name in FIGURES}
    return figures, collections.Counter({name: (count - smaller.parts[name]) / urls for name, count in larger.parts.items()})


def profile(ours, bare):
    """A table of the libraries, the largest first."""
    least = LEAST_SHARE * sum(ours.values())
    rows = [(name, count, bare[name]) for name, count in ours.most_common() if max(count, bare[name]) >= least]
    rows.append(("all others", *(sum(counts.values()) - sum(row[at] for row in rows) for at, counts in ((1, ours), (2, bare)))))
    return ["", "| instructions per URL | worker | bare program |", "|---|---:|---:|"] + [f"| {name} | {count:,.0f} | {other:,.0f} |" for name, count, other in rows]


def main():
    options = arguments()
    with rig.Rig(options) as bench:
        images = -(-options.count // QUERIES)
        rig.say(f"corpus: {images:,} images")
        corpus = Corpus(bench, "corpus", images, 27_000, 7)
        server = Server(bench.path("nginx"), corpus.folder, 1)
        try:
            urls = corpus.urls(server.base)[: options.count]
            redis = bench.redis().url
            program = compiled(bench)
            rig.say("the worker")
            ours, our_parts = per_url(Worker(bench, urls, redis), Worker(bench, urls[: options.few], redis))
            rig.say("the bare program")
            bare, bare_parts = per_url(Bare(bench, urls, program), Bare(bench, urls[: options.few], program))
        finally:
            server.stop()
    lines = rig.heading("count", f"work per URL, {options.count:,} less {options.few:,} URLs, {IN_FLIGHT} in flight, structure level")
    lines += ["| per URL | worker | bare program | ratio |", "|---|---:|---:|---:|"]
    for name in FIGURES:
        digits = 0 if name == FIGURES[0] else 2
        ratio = f"{ours[name] / bare[name]:.2f}" if bare[name] >= 0.01 else "-"
        lines.append(f"| {name} | {ours[name]:,.{digits}f} | {bare[name]:,.{digits}f} | {ratio} |")
    rig.publish(options, "bench count", lines + profile(our_parts, bare_parts))


if __name__ == "__main__":
    main()
