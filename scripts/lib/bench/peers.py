"""Every tool that is compared: the words that start it over a list, and the exit codes of a list with bad URLs."""

import os
import shutil

PROCESSES = 2
# curl(1): --parallel-max is at most 300 before 8.11.
CURL_MOST = 300
HERE = os.path.dirname(os.path.abspath(__file__))
LIKE = ("--validate", "structure", "--durability", "none")
ANY = tuple(range(128))


def compiled(bench):
    """The bare program."""
    return bench.compile("bare", f"{HERE}/bare.c", "-std=c17", "-lcurl", "-ljpeg", "-lpng", "-lwebp", "-lcrypto")


class Peers:
    """The tools over one list, `in_flight` transfers at once. `python`: where the libraries are; None leaves them out.
    `authority`: the certificate that signed the servers', or None."""

    def __init__(self, bench, bare, python, urls, path, in_flight, silence=None, authority=None):
        self.bench, self.bare, self.python, self.authority = bench, bare, python, authority
        self.urls, self.path, self.in_flight, self.silence = urls, path, in_flight, silence
        self.words = {
            "prefetch": (lambda folder: self.prefetch(folder, *LIKE), (0, 3)),
            "prefetch, HTTP/2": (lambda folder: self.prefetch(folder, *LIKE, "--http2"), (0, 3)),
            "prefetch, defaults": (self.defaults, (0, 3)),
            **{f"prefetch, {count} of them": (lambda folder, count=count: self.defaults(folder, "-n", str(count)), (0, 3)) for count in (1, 2, 4)},
            "bare": (lambda folder: self.floor(folder, "none"), (0,)),
            "bare, same checks": (lambda folder: self.floor(folder, "decode"), (0,)),
            "curl": (self.curl, ANY),
            "curl, HTTP/1.1": (lambda folder: self.curl(folder, "--http1.1"), ANY),
            "wget2": (self.wget2, ANY),
            "aria2": (self.aria2, ANY),
            "aiohttp": (lambda folder: self.library("aiohttp", folder), (0,)),
            "img2dataset": (lambda folder: self.library("img2dataset", folder), (0,)),
            "scrapy": (lambda folder: self.library("scrapy", folder), (0,)),
        }

    def missing(self, name):
        """Why a tool cannot be started; None if it can."""
        if name in ("aiohttp", "img2dataset", "scrapy"):
            return None if self.python else "its package could not be installed"
        if name.startswith("prefetch") or name.startswith("bare"):
            return None
        program = {"curl": "curl", "wget2": "wget2", "aria2": "aria2c"}.get(name.split(",")[0])
        return None if shutil.which(program) else f"there is no {program} in PATH"

    def typed(self, tool, place):
        """What starts a tool, with short names for what is this run's alone."""
        names = [(self.bench.program(""), ""), (f"{HERE}/", ""), (f"{place}/", "DIR/"), (place, "DIR"), (self.path, "LIST"), (self.bench.folder + "/", "")]
        names += [(self.authority, "CA")] if self.authority else []
        text = " ".join(self.words[tool][0](place))
        for long, short in sorted(names, key=lambda name: -len(name[0])):
            text = text.replace(long, short)
        return text.replace(f" {self.python}", "")

    def defaults(self, folder, *options):
        """As somebody types it who reads no manual; this machine's own network has to be opened for it."""
        words = [self.bench.program("prefetch-coord"), "run", self.path, "--cache", f"{folder}/cache", "--quiet", "--allow-net", "127.0.0.0/8", *options]
        return words + (["--ca-file", self.authority] if self.authority else [])

    def prefetch(self, folder, *options):
        each = max(1, self.in_flight // PROCESSES)
        words = [self.bench.program("prefetch-coord"), "run", self.path, "--cache", f"{folder}/cache", "-n", str(PROCESSES), "--quiet"]
        words += ["--max-concurrent-downloads", str(each), "--max-per-host", "0", "--allow-net", "127.0.0.0/8", *options]
        words += ["--ca-file", self.authority] if self.authority else []
        if self.silence:
            words += ["--timeout", f"{self.silence}s", "--connect-timeout", f"{self.silence}s", "--tries", "1"]
        return words

    def floor(self, folder, mode):
        each = max(1, self.in_flight // PROCESSES)
        return [self.bare, "-p", str(PROCESSES), "-c", str(each), "-m", mode, *(["-a", self.authority] if self.authority else []), "-o", f"{folder}/files", self.path]

    def curl(self, folder, *options):
        lines = []
        for number, url in enumerate(self.urls):
            lines += [f'url = "{url}"', f'output = "{folder}/{number % 256:02x}/{number}"']
        config = self.bench.write("curl.txt", lines)
        for shard in range(256):
            os.makedirs(f"{folder}/{shard:02x}", exist_ok=True)
        most = min(CURL_MOST, self.in_flight)
        words = ["curl", "-q", "--silent", "--fail", "--parallel", "--parallel-immediate", "--parallel-max", str(most), "-K", config, *options]
        words += ["--cacert", self.authority] if self.authority else []
        if self.silence:
            words += ["--connect-timeout", str(self.silence), "--speed-limit", "1000", "--speed-time", str(self.silence)]
        return words

    def wget2(self, folder):
        words = ["wget2", "--no-config", "--quiet", "--progress=none", "-i", self.path, f"--max-threads={self.in_flight}", "-P", folder]
        words += ["--force-directories", "--no-host-directories", "--tries=1", "--no-robots", "--no-hsts"]
        words += [f"--ca-certificate={self.authority}"] if self.authority else []
        return words + ([f"--timeout={self.silence}"] if self.silence else [])

    def aria2(self, folder):
        lines = []
        for number, url in enumerate(self.urls):
            lines += [url, f"  out={number % 256:02x}/{number}"]
        words = ["aria2c", "--no-conf", "--quiet", "-i", self.bench.write("aria2.txt", lines), "-d", folder, "-j", str(self.in_flight)]
        words += ["--max-connection-per-server=16", "--split=1", "--file-allocation=none", "--max-tries=1"]
        return words + ([f"--timeout={self.silence}", f"--connect-timeout={self.silence}"] if self.silence else [])

    def library(self, name, folder):
        return ["python3", "-B", f"{HERE}/peer.py", name, self.path, f"{folder}/files", str(self.in_flight), str(self.silence or 60), self.python]
