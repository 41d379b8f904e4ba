"""Pictures beside Pillow: `mutants`, damaged ones, of which Pillow has to accept what is accepted at `--validate decode`; `pixels`, real pictures
of Debian's packages and as many generated ones, whose pixels have to be Pillow's. Prints a table; exit 1 where something is not so."""

import collections
import io
import itertools
import json
import pathlib
import subprocess
import sys
import urllib.parse
import warnings

import numpy
import PIL
from PIL import Image, ImageFile, ImageOps, features

import rig
import samples

# The greatest difference of a sample, of 255. JPEG: inverse DCTs may differ in the last bit (ISO/IEC 10918-2). Lossless ones have one result.
# Lossy WebP and AVIF: the same libraries in other versions, which round in other places when they convert YUV and upsample colour.
BOUNDS = {"jpeg": 2, "jpeg CMYK": 2, "png": 0, "gif": 0, "webp lossless": 0, "webp lossy": 2, "avif": 6}
# What no test of the suite holds against the library of its format: those of JPEG and PNG are CodecVerdictTests.
DAMAGED = ("gif", "webp", "avif")


def verdicts(bench, folder, count):
    """Of the files in a folder: why they are refused, by name. One import, at the level `decode`."""
    words = ["cache", "import", folder, "--from", "folder", "--base-url", "http://pictures.test/", "--cache", bench.path("verdicts")]
    _, _, text = bench.coord(*words, "--validate", "decode", "--json", codes=(0, 1))
    start, lines = f"refused: {folder}/", text.splitlines()
    refused = dict(line[len(start) :].split(": ", 1) for line in lines if line.startswith(start))
    stored = next(json.loads(line)["stored"] for line in reversed(lines) if line.startswith("{"))
    if stored + len(refused) != count:
        rig.fail(f"of {count} files {stored} are imported and {len(refused)} refused", "see what the import says", 70)
    return refused


def pillow(data, form):
    """None, or why Pillow rejects it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with Image.open(io.BytesIO(data)) as image:
                if image.format.lower() not in (form, "mpo"):
                    return f"is {image.format}"
                for number in range(getattr(image, "n_frames", 1)):
                    image.seek(number)
                    image.load()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return next((str(warning.message) for warning in said if "runcated" in str(warning.message)), None)


def is_by_brand(data, sample):
    """Whether it is an AVIF by its compatible brands (ISO/IEC 14496-12, 4.3), and Pillow, which looks at the major brand alone, accepts it with that."""
    return data[4:8] == b"ftyp" and b"avif" in data[16:40] and pillow(sample[:12] + data[12:], "avif") is None


def damaged(data, count, random):
    """`count` copies of each damage: cut, a bit flipped, two bytes swapped, a run zeroed, removed, or doubled."""
    for _ in range(count):
        at, other = (int(place) for place in random.choice(len(data), 2, replace=False))
        end = min(len(data), at + int(random.integers(1, max(2, len(data) // 8))))
        swapped = bytearray(data)
        swapped[at], swapped[other] = data[other], data[at]
        yield data[: max(1, at)]
        yield data[:at] + bytes([data[at] ^ 1 << int(random.integers(8))]) + data[at + 1 :]
        yield bytes(swapped)
        yield data[:at] + bytes(end - at) + data[end:]
        yield data[:at] + data[end:]
        yield data[:end] + data[at:]


def mutants(options, bench):
    cases, counts, bad = [], collections.defaultdict(collections.Counter), []
    folder = pathlib.Path(bench.path("files"))
    folder.mkdir()
    for kind in (kind for kind in samples.KINDS if samples.form(kind) in DAMAGED):
        random = numpy.random.default_rng([options.seed, len(cases)])
        sample = samples.KINDS[kind](samples.photograph(random, 48, 36))
        cases += [(kind, data, sample) for data in [sample, *(set(damaged(sample, options.per_sample, random)) - {sample})]]
    for number, (kind, data, _) in enumerate(cases):
        (folder / f"{number}.{samples.form(kind)}").write_bytes(data)
    refused = verdicts(bench, folder, len(cases))
    for number, (kind, data, sample) in enumerate(cases):
        form = samples.form(kind)
        ours, theirs = refused.get(f"{number}.{form}"), pillow(data, form)
        if data is sample:
            what = "samples"
        else:
            counts[form]["mutants"] += 1
            what = ("accepted" if not theirs else "brand" if is_by_brand(data, sample) else "wrong") if not ours else "rejected" if theirs else "alone"
        counts[form][what] += 1
        if what == "wrong" or (data is sample and (ours or theirs)):
            bad.append(f"{kind}, {number}: prefetch {ours or 'accepts it'}, Pillow {theirs or 'accepts it'}")
    versions = ", ".join(f"{name} {features.version(name)}" for name in ("webp", "avif"))
    lines = [f"Seed {options.seed}, {options.per_sample} of each damage; Pillow {PIL.__version__} ({versions}).", ""]
    columns = "format | samples | mutants | accepted by both | rejected by both | rejected by prefetch alone | by Pillow alone, for the major brand | by Pillow alone"
    lines += [f"| {columns} |", "|---" * 8 + "|"]
    for form, count in counts.items():
        cells = (count[name] for name in ("samples", "mutants", "accepted", "rejected", "alone", "brand", "wrong"))
        lines.append(f"| {form} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    return lines, bad


def real(folder, count):
    """The real pictures, each content once, that Pillow accepts: (name, format, bytes)."""
    subprocess.run([pathlib.Path(__file__).with_name("real-pictures"), folder, str(count)], check=True, stdout=subprocess.DEVNULL)
    for data, form in {path.read_bytes(): path.suffix[1:].replace("jpg", "jpeg") for path in sorted(pathlib.Path(folder).iterdir())}.items():
        if pillow(data, form) is None:
            yield "real", form, data


def generated(count, random):
    """Kinds take turns, with their orientations one after the other; sizes are random, one of thirty is larger."""
    kinds = [(kind, turn) for kind in samples.KINDS for turn in range(1, samples.turns(kind) + 1)]
    for number in range(count):
        kind, turn = kinds[number % len(kinds)]
        width, height = (int(random.integers(16, 600 if number % 30 == 0 else 97)) for _ in range(2))
        yield kind, samples.form(kind), samples.KINDS[kind](samples.photograph(random, width, height), turn)


def reference(path):
    """Pillow's RGBA, upright; of 16-bit samples the high bytes; CMYK by Pillow's formula, without a profile."""
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        if image.mode.startswith("I"):
            upright = Image.fromarray((numpy.asarray(upright) >> 8).astype(numpy.uint8))
        return numpy.asarray(upright.convert("RGBA"))


def difference(path, result):
    """Greatest and summed difference, and samples; None for another size. What is fully transparent has no colour."""
    wanted, got = reference(path), numpy.asarray(Image.open(result).convert("RGBA"))
    if wanted.shape != got.shape:
        return None
    apart = numpy.abs(wanted.astype(int) - got)
    apart[(wanted[:, :, 3] == 0) & (got[:, :, 3] == 0)] = 0
    return int(apart.max()), int(apart.sum()), apart.size


def fetched(bench, folder, names):
    """Of the files in a folder, made PNG: the manifest's line and the file with the result, in the order of names. One run over loopback."""
    base, out, manifest = bench.serve(folder), pathlib.Path(bench.path("out")), pathlib.Path(bench.path("manifest.jsonl"))
    urls = bench.write("urls.txt", (f"{base}/{urllib.parse.quote(name)}" for name in names))
    words = ["run", urls, "--cache", bench.path("cache"), "--out", out, "--manifest", manifest, "--allow-net", "127.0.0.0/8", "--blacklist", "none"]
    bench.coord(*words, "-q", "--image-format", "png", "--strip", "--options", "transformAnimatedImage", codes=(0, 3))
    rows = [json.loads(line) for line in manifest.read_text(encoding="utf-8").splitlines()]
    files = {int(path.stem): path for path in out.iterdir() if path.stem.isdigit()}
    return [(row, files.get(row["line"])) for row in sorted(rows, key=lambda row: row["line"])]


def pixels(options, bench):
    random = numpy.random.default_rng(options.seed)
    sums, bad, pictures = collections.defaultdict(lambda: [0, 0, 0, 0, 0]), [], []
    folder = pathlib.Path(bench.path("files"))
    folder.mkdir()
    for kind, form, data in itertools.chain(real(bench.path("real"), options.count), generated(options.count, random)):
        pictures.append((folder / f"{len(pictures)}.{form}", kind, form))
        pictures[-1][0].write_bytes(data)
    results = fetched(bench, folder, [path.name for path, _, _ in pictures])
    for (path, kind, form), (row, result) in zip(pictures, results, strict=True):
        name = form
        if form == "webp":
            name = "webp lossless" if "lossless" in kind else "webp lossy"
        elif form == "jpeg" and Image.open(path).mode == "CMYK":
            name = "jpeg CMYK"
        apart = difference(path, result) if result else None
        if apart is None:
            bad.append(f"{kind}, {path.name}: {'another size' if result else row['outcome']}")
            continue
        sums[name] = [sums[name][0] + 1, sums[name][1] + (kind == "real"), max(sums[name][2], apart[0]), sums[name][3] + apart[1], sums[name][4] + apart[2]]
        if apart[0] > BOUNDS[name]:
            bad.append(f"{kind}, {path.name}: differs by {apart[0]}")
    lines = [f"Seed {options.seed}; Pillow {PIL.__version__}.", ""]
    lines += ["| format | images | of them real | greatest difference | mean | bound |", "|---|---|---|---|---|---|"]
    for name, bound in BOUNDS.items():
        count, taken, greatest, total, size = sums[name]
        lines.append(f"| {name} | {count:,} | {taken:,} | {greatest} | {total / max(size, 1):.4f} | {bound} |")
    return lines, bad


def main():
    parser = rig.table_parser("pictures", __doc__)
    parser.add_argument("what", choices=("mutants", "pixels"))
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the generated pictures and of the damage (1)")
    parser.add_argument("--per-sample", type=rig.positive, default=150, metavar="N", help="mutants of each damage, of each sample (150)")
    parser.add_argument("--count", type=rig.positive, default=3000, metavar="N", help="real pictures, and as many generated ones (3000)")
    options = parser.parse_args()
    # A damaged size that asks for more than a decoder gives is no damage that Pillow has seen.
    Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = 1 << 26, False
    with rig.Rig(options) as bench:
        lines, bad = {"mutants": mutants, "pixels": pixels}[options.what](options, bench)
    rig.publish(options, f"pictures {options.what}", lines)
    print(*bad[:40], f"{len(bad)} are not as they have to be", sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
