"""What all cells share: a Redis of their own, origins with known answers, and processes that end with the harness."""

import asyncio
import contextlib
import functools
import hashlib
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import zlib

import resp

HERE = pathlib.Path(__file__).resolve().parent
CHAOS = HERE.parent / "chaos"
sys.path.append(str(CHAOS))

from children import CLEAN  # noqa: E402

HOST = socket.gethostname()


def large_png(seed, side=450):
    """1.6 MB of 16 bit RGBA that nothing makes smaller."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    dice = random.Random(seed)
    rows = b"".join(b"\0" + dice.randbytes(8 * side) for _ in range(side))
    head = struct.pack(">IIBBBBB", side, side, 16, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def kill(child):
    """For a process too that has ended, of which asyncio has not heard yet."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            child.kill()


class World:
    def __init__(self, binaries, folder, seed):
        self.binaries, self.folder, self.seed = binaries, str(folder), seed
        self.socket = os.path.join(self.folder, "redis.sock")
        self.children = []

    def program(self, name):
        return os.path.join(self.binaries, name)

    @functools.cached_property
    def file_faults(self):
        """The path of file_faults.so, made where the harness is."""
        path = os.path.join(self.folder, "file_faults.so")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path, str(HERE / "file_faults.c"), "-ldl"], check=True)
        return path

    async def start(self, *words, log=None, output=None, input=None, **more):
        """A process that ends with this one: the thread that forks it is the main one."""
        file = open(log, "ab") if log else subprocess.DEVNULL
        try:
            child = await asyncio.create_subprocess_exec(
                "setpriv", "--pdeathsig", "KILL", *words, stdin=subprocess.DEVNULL if input is None else input,
                stdout=file if output is None else output,
                stderr=file, env={**CLEAN, **more.pop("variables", {})}, start_new_session=True, limit=1 << 22, **more)
        finally:
            if log:
                file.close()
        self.children = [other for other in self.children if other.returncode is None] + [child]
        return child

    async def open(self, needs_redis=True):
        if needs_redis:
            words = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no"]
            await self.start(*words, "--dir", self.folder, log=os.path.join(self.folder, "redis.log"))
            for _ in range(1000):
                try:
                    await resp.Client(self.socket)("PING")
                    break
                except (OSError, resp.Refused, EOFError):
                    await asyncio.sleep(0.01)
        corpus = os.path.join(self.folder, "corpus")
        words = [self.program("prefetch-origin"), "generate", corpus, "--count", "80", "--median", "2000", "--seed", "1"]
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(corpus, "manifest.tsv"), encoding="utf-8") as manifest:
            rows = [line.split("\t")[0] for line in manifest]
        rows = [name for name in rows if name.rsplit(".", 1)[-1] in ("jpg", "png", "gif", "webp")]
        self.pictures = sorted(rows, key=lambda name: os.path.getsize(os.path.join(corpus, name)))[:60]
        random.Random(self.seed).shuffle(self.pictures)
        self.digests = {}
        for name in self.pictures:
            with open(os.path.join(corpus, name), "rb") as file:
                self.digests[name] = hashlib.sha256(file.read()).hexdigest()
        log = os.path.join(self.folder, "origins.log")
        self.good = await self.first_line(self.program("prefetch-origin"), "serve", corpus, log=log)
        slow = next(os.path.join(corpus, name) for name in self.pictures if name.endswith(".png"))
        with open(slow, "rb") as file:
            self.slow_digest = hashlib.sha256(file.read()).hexdigest()
        # Too large for the memory a transfer may have: it is spooled.
        large = large_png(self.seed)
        self.big_digest = hashlib.sha256(large).hexdigest()
        big = os.path.join(self.folder, "big.png")
        with open(big, "wb") as file:
            file.write(large)
        bad = [sys.executable, "-B", str(CHAOS / "bad_origin.py"), slow, big]
        self.bad, self.down = ["http://127.0.0.1:" + await self.first_line(*bad, log=log) for _ in range(2)]
        # Bound and not listening: connections are refused, and nobody else gets the port.
        self.closed = socket.socket()
        self.closed.bind(("127.0.0.1", 0))
        self.closed_port = self.closed.getsockname()[1]

    async def first_line(self, *words, log):
        child = await self.start(*words, log=log, output=subprocess.PIPE)
        return (await child.stdout.readline()).decode().strip()

    async def close(self):
        for child in self.children:
            kill(child)
        await asyncio.gather(*(child.wait() for child in self.children))
