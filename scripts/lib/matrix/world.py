"""What all cells share: a Redis of their own, origins with known answers, and processes that end with the harness."""

import asyncio
import contextlib
import functools
import hashlib
import os
import random
import socket
import subprocess

import png
import rig
from processes import BOUND, CLEAN, end_all
from redis_server import Server

HOST = socket.gethostname()


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
        return rig.file_faults(self.folder)

    async def start(self, *words, log=None, output=None, input=None, **more):
        """A process that ends with this one: the thread that forks it is the main one."""
        file = open(log, "ab") if log else subprocess.DEVNULL
        try:
            child = await asyncio.create_subprocess_exec(
                *BOUND, *words, stdin=subprocess.DEVNULL if input is None else input,
                stdout=file if output is None else output,
                stderr=file, env={**CLEAN, **more.pop("variables", {})}, start_new_session=True, limit=1 << 22, **more)
        finally:
            if log:
                file.close()
        self.children = [other for other in self.children if other.returncode is None] + [child]
        return child

    async def open(self):
        server = Server(self.folder, options=("--appendonly", "no"))
        server.start()
        server.wait()
        corpus = os.path.join(self.folder, "corpus")
        rows = rig.pictures(self.binaries, corpus, 80, 2000)
        self.digests = {path: digest for path, _, _, digest in sorted(rows, key=lambda row: int(row[2]))[:60]}
        self.pictures = list(self.digests)
        random.Random(self.seed).shuffle(self.pictures)
        # Too large for the memory a transfer may have: it is spooled.
        large = png.noise(self.seed, 450)
        self.big_digest = hashlib.sha256(large).hexdigest()
        with open(os.path.join(corpus, "big.png"), "wb") as file:
            file.write(large)
        _, url = rig.serve(self.binaries, corpus, "--faults", "--address", "0.0.0.0", log=os.path.join(self.folder, "origins.log"))
        # Three hosts: what one of them does to its URLs is no matter of the others.
        self.good, self.bad, self.down = (url.replace("0.0.0.0", f"127.0.0.{number}") for number in (1, 2, 3))
        sample = await asyncio.to_thread(rig.body, f"{self.bad}/fault/slow/sample.jpg")
        self.slow_digest = hashlib.sha256(sample).hexdigest()
        self.closed, self.closed_port = rig.refusing()

    async def close(self):
        for child in self.children:
            kill(child)
        await asyncio.gather(*(child.wait() for child in self.children))
        end_all()
