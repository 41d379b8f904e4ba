"""The images of the benchmarks, and the list every tool gets."""

import collections
import hashlib
import os
import random
import subprocess
import sys

import rig

QUERIES = 8
# Of a hundred images, by HTTP Archive's crawl for phones of 2024 (Web Almanac, Media): JPEG 32.4 %, PNG 28.4, GIF 16.8, WebP 12.0, here without SVG (6.4),
# icons (1.3) and AVIF (1.0).
SHARES = {"jpg": 36, "png": 32, "gif": 19, "webp": 13}
MIX = "JPEG 36 %, PNG 32, GIF 19, WebP 13 (HTTP Archive, 2024)"
# Photographs become files of each format by Pillow; those without loss are made of smaller ones, as on the web.
CONVERT = """
import os, sys
from PIL import Image
for line in sys.stdin:
    path, kind = line.split()
    image = Image.open(path).convert("RGB")
    if kind in ("png", "gif"): image = image.resize([max(1, side * 2 // 5) for side in image.size])
    if kind == "gif": image = image.quantize(128)
    image.save(os.path.splitext(path)[0] + "." + kind, **({"quality": 75} if kind == "webp" else {}))
    os.remove(path)
"""


class Corpus:
    """Images on disk, and the digest of each path. `mixed_by`: a folder with Pillow, which makes of them the formats of the web."""

    def __init__(self, bench, name, count, median, seed=1, mixed_by=None):
        self.folder, self.seed = bench.path(name), seed
        rows = self.mixed(bench, count, median, mixed_by) if mixed_by else rig.generate(bench.binaries, self.folder, count, median, seed)
        self.expected = {path: digest for path, _, _, digest in rows}
        # Of one pass over all bodies.
        self.bytes = sum(int(size) for _, _, size, _ in rows)

    def mixed(self, bench, count, median, packages):
        """JPEGs of the generator, progressive ones among them, and the others converted."""
        rows = [row for row in rig.generate(bench.binaries, self.folder, count * 5 // 4 + 20, median, self.seed) if row[0].endswith(".jpg")][:count]
        kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
        random.Random(self.seed).shuffle(kinds)
        chosen = [(path, kinds[number % len(kinds)]) for number, (path, *_) in enumerate(rows)]
        lines = "".join(f"{self.folder}/{path} {kind}\n" for path, kind in chosen if kind != "jpg")
        subprocess.run([sys.executable, "-c", CONVERT], input=lines, text=True, check=True,
                       env=os.environ | {"PYTHONPATH": packages})
        made = []
        for path, kind in chosen:
            path = f"{os.path.splitext(path)[0]}.{kind}"
            with open(f"{self.folder}/{path}", "rb") as file:
                body = file.read()
            made.append((path, kind, len(body), hashlib.sha256(body).hexdigest()))
        return made

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
