"""Damaged pictures: what prefetch accepts of them at `--validate decode`, Pillow has to accept. Prints a table; exit 1 where it is not so."""

import collections
import io
import json
import pathlib
import sys
import warnings

import numpy
import PIL
from PIL import Image, ImageFile, features

import rig
import samples

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


def main():
    parser = rig.table_parser("pictures", __doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the pictures and of the damage (1)")
    parser.add_argument("--per-sample", type=rig.positive, default=150, metavar="N", help="mutants of each damage, of each sample (150)")
    options = parser.parse_args()
    # A damaged size that asks for more than a decoder gives is no damage that Pillow has seen.
    Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = 1 << 26, False
    with rig.Rig(options) as bench:
        lines, bad = mutants(options, bench)
    rig.publish(options, "pictures", lines)
    print(*bad[:40], f"{len(bad)} are not as they have to be", sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
