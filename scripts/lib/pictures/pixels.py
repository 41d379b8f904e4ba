"""Pixels of the tool, from `run --image-format png`, against Pillow's: a table of the greatest difference of each format, exit 1 above the
bounds. 3,000 are real pictures of Debian's packages; as many are generated, of every kind, size and orientation."""

import collections
import hashlib
import itertools
import pathlib
import subprocess
import sys

import numpy
import PIL
from PIL import Image, ImageOps

import judges
import ours
import rig
import samples

# The greatest difference of a sample, of 255. JPEG: inverse DCTs may differ in the last bit (ISO/IEC 10918-2). Lossless ones have one result.
# Lossy WebP and AVIF: the same libraries in other versions, which round in other places when they convert YUV and upsample colour.
BOUNDS = {"jpeg": 2, "jpeg CMYK": 2, "png": 0, "gif": 0, "webp lossless": 0, "webp lossy": 2, "avif": 6}
FORMATS = {".png": "png", ".gif": "gif", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".avif": "avif"}


def group(name, form):
    if "CMYK" in name or "YCCK" in name:
        return "jpeg CMYK"
    if form == "webp":
        return "webp lossless" if "lossless" in name or "animated alpha" in name else "webp lossy"
    return form


def real(folder, count):
    """The real pictures, each content once: (name, format, bytes)."""
    script = pathlib.Path(__file__).resolve().parent.parent / "real-pictures"
    subprocess.run([script, folder, str(count)], check=True, stdout=subprocess.DEVNULL)
    seen = set()
    for path in sorted(folder.iterdir()):
        data, form = path.read_bytes(), FORMATS[path.suffix]
        digest = hashlib.sha256(data).digest()
        # What Pillow rejects is nothing to compare with.
        if digest in seen or judges.pillow(data, form):
            continue
        seen.add(digest)
        yield "real", form, data


def generated(count, random):
    """Kinds take turns, with their orientations one after the other; sizes are random."""
    kinds = [(kind, turn) for kind, (_, _, turns) in samples.KINDS.items() for turn in (range(1, 9) if turns else [1] * 3)]
    for number in range(count):
        kind, turn = kinds[number % len(kinds)]
        # One of thirty is larger; PNG takes long to write.
        most = 600 if number % 30 == 0 and samples.KINDS[kind][0] != "png" else 97
        size = (int(random.integers(1, most)), int(random.integers(1, most)))
        if samples.KINDS[kind][0] in ("gif", "avif") or "apng" in kind or "animated" in kind:
            size = (size[0] + 15, size[1] + 15)
        yield kind, samples.KINDS[kind][0], samples.make(kind, random, size, turn)


def reference(path):
    """Pillow's RGBA, upright; of 16-bit samples the high bytes; CMYK by Pillow's formula, without a profile."""
    with Image.open(path) as image:
        if image.mode.startswith("I"):
            high = numpy.asarray(ImageOps.exif_transpose(image)) >> 8
            return numpy.asarray(Image.fromarray(high.astype(numpy.uint8)).convert("RGBA"))
        return numpy.asarray(ImageOps.exif_transpose(image).convert("RGBA"))


def difference(path, result):
    """Greatest and summed difference, and samples; None for another size. What is fully transparent has no colour."""
    wanted, got = reference(path), numpy.asarray(Image.open(result).convert("RGBA"))
    if wanted.shape != got.shape:
        return None
    apart = numpy.abs(wanted.astype(int) - got)
    apart[(wanted[:, :, 3] == 0) & (got[:, :, 3] == 0)] = 0
    return int(apart.max()), int(apart.sum()), apart.size


def main():
    parser = rig.table_parser("pictures pixels", __doc__)
    parser.add_argument("--count", type=int, default=3000, metavar="N", help="real pictures, and as many generated ones (default: 3000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the generated pictures (default: 1)")
    parser.add_argument("--real", metavar="FOLDER", help="where the real pictures are, or are put (default: a temporary folder)")
    options = parser.parse_args()
    random = numpy.random.default_rng(options.seed)
    print(f"seed {options.seed}", flush=True)

    sums = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
    bad = []
    with rig.Rig(options) as bench:
        folder = pathlib.Path(bench.path("files"))
        folder.mkdir()
        pictures = []
        corpus = pathlib.Path(options.real or bench.path("real"))
        for kind, form, data in itertools.chain(real(corpus, options.count), generated(options.count, random)):
            path = folder / f"{len(pictures)}.{form}"
            path.write_bytes(data)
            pictures.append((path, kind, form))
        results = ours.fetched(bench, folder, [path.name for path, _, _ in pictures])
        for (path, kind, form), (row, result) in zip(pictures, results, strict=True):
            name = group(kind, form)
            if kind == "real" and form == "jpeg" and Image.open(path).mode == "CMYK":
                name = "jpeg CMYK"
            apart = difference(path, result) if result else None
            if apart is None:
                bad.append(f"{kind}, {path.name}: {'another size' if result else row['outcome']}")
                continue
            total = sums[name]
            for at, value in enumerate((1, kind == "real", max(0, apart[0] - total[2]), apart[1], apart[2])):
                total[at] += value
            if apart[0] > BOUNDS[name]:
                bad.append(f"{kind}, {path.name}: differs by {apart[0]}")
    lines = [f"Seed {options.seed}; Pillow {PIL.__version__}.", ""]
    lines += ["| format | images | of them real | greatest difference | mean | bound |", "|---|---|---|---|---|---|"]
    for name in BOUNDS:
        count, taken, greatest, total, size = sums[name]
        lines.append(f"| {name} | {count:,} | {taken:,} | {greatest} | {total / max(size, 1):.4f} | {BOUNDS[name]} |")
    rig.publish(options, "pictures pixels", lines)
    for line in bad[:50]:
        print(line)
    print(f"{sum(row[0] for row in sums.values()):,} pictures compared, {len(bad)} above the bounds or without a result")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
