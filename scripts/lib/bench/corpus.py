"""The images of the benchmark, the broken ones among them, and the list every tool gets."""

import hashlib
import os
import random
import subprocess

QUERIES = 8
HTML = b"<!DOCTYPE html><html><title>Sorry</title><p>Image %d was removed.</html>\n"


class Corpus:
    """Images on disk, and what has to come of each path: a digest, or None where nothing may be kept."""

    def __init__(self, folder, origin, count, seed, bad, median=None):
        self.folder = folder
        self.seed = seed
        words = [origin, "generate", folder, "--count", str(count), "--seed", str(seed)]
        words += ["--median", str(median)] if median else []
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        self.expected = {}
        self.sizes = {}
        self.kinds = {}
        with open(f"{folder}/manifest.tsv", encoding="ascii") as manifest:
            for line in manifest:
                path, kind, size, digest = line.split()
                self.expected[path] = digest
                self.sizes[path] = int(size)
                self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.broken = {}
        self.missing = 0
        if bad:
            self._spoil()

    def _spoil(self):
        """1 % broken bodies, half of them cut and half HTML under an image's name, and 0.5 % that are not there."""
        paths = sorted(self.expected)
        chosen = random.Random(self.seed).sample(paths, round(len(paths) * 0.015))
        missing = len(chosen) // 3
        for number, path in enumerate(chosen):
            full = f"{self.folder}/{path}"
            self.expected[path] = None
            self.sizes[path] = 0
            if number < missing:
                os.unlink(full)
                self.missing += 1
                continue
            with open(full, "rb") as file:
                body = file.read()
            body = body[: len(body) * 2 // 3] if number % 2 else HTML % number
            with open(full, "wb") as file:
                file.write(body)
            self.broken[hashlib.sha256(body).hexdigest()] = path
            self.sizes[path] = len(body)

    @property
    def images(self):
        return len(self.expected)

    @property
    def bytes(self):
        """Bytes of one pass over all bodies that are served."""
        return sum(self.sizes.values())

    @property
    def good(self):
        """How often each good body has to be there after a run, by digest."""
        wanted = {}
        for digest in self.expected.values():
            if digest is not None:
                wanted[digest] = wanted.get(digest, 0) + QUERIES
        return wanted

    def urls(self, *bases):
        """Every image under every query, in an order that only depends on the seed; of several hosts the n-th has n to the -0.9th as many."""
        generator = random.Random(self.seed)
        paths = [f"{path}?v={query}" for path in sorted(self.expected) for query in range(QUERIES)]
        generator.shuffle(paths)
        chosen = generator.choices(bases, [(number + 1) ** -0.9 for number in range(len(bases))], k=len(paths)) if len(bases) > 1 else bases * len(paths)
        return [f"{base}/{path}" for base, path in zip(chosen, paths)]

    def warm(self):
        """Reads every file, so that the server finds them in the page cache."""
        for path, size in self.sizes.items():
            if size:
                with open(f"{self.folder}/{path}", "rb") as file:
                    while file.read(1 << 20):
                        pass
