"""The images of the benchmarks, and the list every tool gets."""

import collections
import random

import rig

QUERIES = 8


class Corpus:
    """Images on disk, and the digest of each path."""

    def __init__(self, bench, name, count, median, seed=1):
        self.folder, self.seed = bench.path(name), seed
        rows = rig.generate(bench.binaries, self.folder, count, median, seed)
        self.expected = {path: digest for path, _, _, digest in rows}
        # Of one pass over all bodies.
        self.bytes = sum(int(size) for _, _, size, _ in rows)

    @property
    def images(self):
        return len(self.expected)

    @property
    def good(self):
        """How often each body has to be there after a run, by digest."""
        wanted = collections.Counter(self.expected.values())
        return {digest: QUERIES * count for digest, count in wanted.items()}

    def urls(self, *bases):
        """Every image under every query, in an order that only depends on the seed; of several hosts the n-th has n to the -0.9th as many."""
        generator = random.Random(self.seed)
        paths = [f"{path}?v={query}" for path in sorted(self.expected) for query in range(QUERIES)]
        generator.shuffle(paths)
        chosen = generator.choices(bases, [(number + 1) ** -0.9 for number in range(len(bases))], k=len(paths)) if len(bases) > 1 else bases * len(paths)
        return [f"{base}/{path}" for base, path in zip(chosen, paths)]

    def warm(self):
        """Reads every file, so that the server finds them in the page cache."""
        for path in self.expected:
            with open(f"{self.folder}/{path}", "rb") as file:
                while file.read(1 << 20):
                    pass
