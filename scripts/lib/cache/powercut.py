"""Copies of a cache's disk in mid run, each mounted and compared with what Redis had counted before the copy was begun.

The order is what makes it a proof: first the outcomes are read, then the image file is copied, without a sync of the file system in
it. What was counted then must be in the copy. What a real disk may do beyond that, losing writes it has confirmed, is not tried.
"""

import os
import signal
import subprocess
import sys
import time

import rig

# URLs that another worker has fetched when it is killed.
KILLED = 100
# Of each answer: with eight transfers at once a run takes some seconds for each thousand URLs.
DELAY = "10ms-30ms"
# Of outcomes that have an image: downloaded, hit, notModified.
IMAGES = (1, 2, 3)


def written(pid):
    """Bytes that a process has had written to disks (proc(5))."""
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("write_bytes"))


class Cuts:
    """A file system in a file, and who writes to it."""

    def __init__(self, bench, options):
        self.bench, self.options = bench, options
        self.image, self.disk, self.copied = (bench.path(name) for name in ("image", "disk", "copied"))
        names = [path for path, *_ in rig.generate(bench.binaries, bench.path("images"), 100, 20_000)]
        base = bench.serve(bench.path("images"), "--delay", DELAY)
        self.urls = {
            name: [f"{base}/{names[n % len(names)]}?{name}{n}" for n in range(count)] for name, count in (("cut", options.count), ("killed", KILLED))
        }
        for folder in (self.disk, self.copied):
            os.mkdir(folder)
        bench.run(["truncate", "-s", "1G", self.image])
        bench.run([f"mkfs.{options.fs}", *(["-F", "-q"] if options.fs == "ext4" else ["-q", "-f"]), self.image])
        bench.run(["mount", "-o", "loop", self.image, self.disk])
        self.server = bench.redis()
        self.client = self.server.client(30)

    def submit(self, name, urls, *options):
        self.bench.coord("submit", self.bench.write(f"{name}.txt", urls), "--name", name, "--redis", self.server.url, *options)

    def worker(self, *options):
        words = [self.bench.program("prefetch-worker"), "--quiet", "--cache", f"{self.disk}/cache", "--allow-net", "127.0.0.0/8"]
        return self.bench.start([*words, "--max-concurrent-downloads", "8", "--redis", self.server.url, *options], "worker")

    def counted(self, name, codes=IMAGES):
        """The indices of its URLs that Redis has counted by now."""
        found = self.client("GET", f"prefetch:{{default}}:b:{name}:o") or ""
        return [index for index, code in enumerate(found) if ord(code) in codes]

    def until(self, name, count, worker):
        while len(found := self.counted(name)) < count:
            if worker.poll() is not None:
                rig.fail("the worker has ended", "its words are in worker.log", 70)
            time.sleep(0.005)
        return found

    def copy(self):
        self.bench.run(["cp", "--sparse=always", self.image, self.bench.path("cut")])

    def compare(self, urls):
        """How many of these URLs' files a copy of the disk lacks, and has damaged; and how many others are damaged."""
        # Two file systems of one id are mounted at the same time, which XFS refuses unless it is told.
        self.bench.run(["mount", "-o", "loop,nouuid" if self.options.fs == "xfs" else "loop", self.bench.path("cut"), self.copied])
        path = self.bench.write("counted.txt", urls)

        def cache(*words):
            words = [self.bench.program("prefetch-coord"), "cache", *words, "--cache", f"{self.copied}/cache"]
            with open(path, "rb") as given:
                done = subprocess.run(words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.bench.environment, check=False)
            return done.stdout.splitlines()

        damaged = {line.split(": ")[1] for line in cache("verify") if line.startswith("damaged: ")}
        missing, paths = cache("path", "--missing", "-"), set(cache("path", "-"))
        self.bench.run(["umount", self.copied])
        # A file that is damaged is in the copy too: only those that were counted matter.
        return len(missing), len(damaged & paths), len(damaged - paths)

    def cut(self, number, worker):
        """One cut in mid run: how many counted URLs were lost, and whether anything was written meanwhile."""
        # The cuts are as far apart as they are from begin and end, in URLs that are counted.
        urls = self.urls["cut"]
        counted = self.until("cut", (number + 1) * len(urls) // (self.options.cuts + 1), worker)
        # From here on nothing that is written matters.
        before = written(worker.pid)
        self.copy()
        # Not before: the copy has to be of a disk that is written to. The next cut is to find it at work again.
        during = written(worker.pid) - before
        worker.send_signal(signal.SIGSTOP)
        missing, damaged, others = self.compare([urls[index] for index in counted])
        print(
            f"cut {number + 1}: {len(counted)} of {len(urls)} URLs counted, {during / 1000:,.0f} kB written during the copy; "
            f"{missing} missing, {damaged} damaged; {others} files not counted yet were not whole", flush=True)
        worker.send_signal(signal.SIGCONT)
        return missing + damaged, during == 0

    def cut_after_kill(self):
        """A worker that never writes out is killed, and another counts its files as hits: those have to survive a cut too."""
        urls = self.urls["killed"]
        self.submit("killed", urls, "--durability", "none")
        worker = self.worker("--lease", "1s")
        self.until("killed", KILLED, worker)
        worker.kill()
        worker.wait()
        self.submit("hits", urls)
        self.worker("--lease", "1s", "--burst").wait()
        hits = self.counted("hits", (2,))
        self.copy()
        missing, damaged, _ = self.compare([urls[index] for index in hits])
        print(f"cut after a kill: {len(hits)} of {KILLED} URLs counted as hits of another worker's files; {missing} missing, {damaged} damaged")
        return missing + damaged + (KILLED - len(hits))

    def run(self):
        self.submit("cut", self.urls["cut"])
        worker = self.worker("--burst")
        found = [self.cut(number, worker) for number in range(self.options.cuts)]
        worker.wait()
        finished, idle = len(self.counted("cut")), sum(was_idle for _, was_idle in found)
        print(f"the run then ended with {finished} of {self.options.count} images")
        bad = sum(lost for lost, _ in found) + self.cut_after_kill()
        if finished != self.options.count or idle:
            print(f"error: {idle} cuts fell where nothing was written" if idle else "error: the run did not finish", file=sys.stderr)
            return 1
        print("every counted URL survived every cut" if bad == 0 else f"{bad} counted URLs were lost")
        return 1 if bad else 0


def main():
    parser = rig.parser("powercut", __doc__)
    parser.add_argument("--cuts", type=rig.positive, default=5, help="copies (5)")
    parser.add_argument("--count", type=rig.positive, default=4000, help="URLs (4000)")
    parser.add_argument("--fs", default="ext4", choices=["ext4", "xfs"], help="file system (ext4)")
    parser.add_argument("--work", default="/tmp", help="a folder with room for two images of 1 GB (/tmp)")
    options = parser.parse_args()
    if options.count < 400 * (options.cuts + 1):
        parser.error("--count wants 400 URLs or more for each part of the run that the cuts make")
    with rig.Rig(options) as bench:
        try:
            return Cuts(bench, options).run()
        finally:
            rig.end_all()
            for folder in ("copied", "disk"):
                subprocess.run(["umount", bench.path(folder)], stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    sys.exit(main())
