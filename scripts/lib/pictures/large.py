#!/usr/bin/env python3
"""What it costs to check images of 100 to 500 million pixels at --validate decode: a table of CPU seconds and memory, exit 1 if one is refused,
takes longer than the limit, or more memory than 256 MB. The pictures are like photographs: smooth, with edges and grain."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy
from PIL import Image

import page

ROOT = pathlib.Path(__file__).resolve().parents[3]
WIDTH = 10_000
MOST_MEMORY = 256_000_000
# Mode, format, options, millions of pixels. PNG of RGB takes three times as long to write.
KINDS = {
    "baseline JPEG, quality 90": ("RGB", "JPEG", {"quality": 90}, (100, 200, 500)),
    "GIF, 256 colors": ("P", "GIF", {"optimize": False}, (100, 200, 500)),
    "PNG, RGB": ("RGB", "PNG", {"compress_level": 1}, (100,)),
    "PNG, grey": ("L", "PNG", {"compress_level": 1}, (100, 200, 500)),
}


def photograph():
    """Ten megapixels."""
    random = numpy.random.default_rng(1)
    height = 1_000
    whole = numpy.zeros((height, WIDTH, 3), numpy.float32)
    for step in (250, 50, 10):
        coarse = random.integers(0, 256, (height // step, WIDTH // step, 3), numpy.uint8)
        whole += numpy.asarray(Image.fromarray(coarse).resize((WIDTH, height), Image.Resampling.BICUBIC), numpy.float32) / 3
    whole += random.normal(0, 6, whole.shape).astype(numpy.float32)
    return Image.fromarray(numpy.clip(whole, 0, 255).astype(numpy.uint8))


def write(path, tile, kind, megapixels):
    """The picture repeated from top to bottom."""
    mode, form, options, _ = KINDS[kind]
    height = megapixels * 1_000_000 // WIDTH
    tile = tile.quantize(256) if mode == "P" else tile.convert(mode)
    picture = Image.new(mode, (WIDTH, height))
    if mode == "P":
        picture.putpalette(tile.getpalette())
    for top in range(0, height, tile.height):
        picture.paste(tile, (0, top))
    picture.save(path, form, **options)


def main():
    parser = argparse.ArgumentParser(prog="scripts/pictures large", description=__doc__)
    parser.add_argument("--page", metavar="FILE", help="put the table into this page, in place of the one before")
    parser.add_argument("--typed", default="scripts/pictures large", help=argparse.SUPPRESS)
    options = parser.parse_args()
    Image.MAX_IMAGE_PIXELS = None
    lines = [
        "| image | pixels | file | CPU time | its limit | memory beside the file |",
        "|---|---|---|---|---|---|",
    ]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        check, codec = f"{folder}/check", ROOT / "Sources/CImageCodec"
        sources = [*codec.glob("*.c"), pathlib.Path(__file__).with_name("large_check.c")]
        libraries = ["-ljpeg", "-lpng", "-ldeflate", "-lz", "-ldl", "-lm", "-lpthread"]
        subprocess.run(["cc", "-O2", "-std=gnu17", f"-I{codec}/include", f"-I{codec}", *sources, "-o", check, *libraries], check=True)
        tile = photograph()
        for kind, (_, _, _, sizes) in KINDS.items():
            for megapixels in sizes:
                path = pathlib.Path(folder) / "picture"
                write(path, tile, kind, megapixels)
                done = subprocess.run([check, path], stdout=subprocess.PIPE, text=True, check=False)
                seconds, memory, limit, _ = map(float, done.stdout.split())
                failed |= done.returncode != 0 or seconds > limit or memory > MOST_MEMORY
                size = path.stat().st_size
                lines.append(f"| {kind} | {megapixels} million | {size / 1e6:,.1f} MB | {seconds:.2f} s | {limit:.1f} s | {memory / 1e6:.1f} MB |")
                print(lines[-1], flush=True)
                path.unlink()
    page.publish(options.page, "scripts/pictures large", [*lines, "", f"`{options.typed}`"])
    return failed


if __name__ == "__main__":
    sys.exit(main())
