#!/usr/bin/env python3
"""A contact sheet of what the tool makes of every kind and orientation by `--resize 128x128 --fit pad`, to be looked at: every tile shows the
same picture, upright."""

import argparse
import pathlib
import sys
import tempfile

import numpy
from PIL import Image, ImageDraw, ImageFont

import ours
import samples

TILE, LABEL, COLUMNS = 128, 14, 10
# Turned by each orientation.
TURNED = ["jpeg baseline", "png RGB", "webp lossy", "avif"]


def picture():
    """A sky, a ground, a sun in the upper left corner, a tree on the right, and a word."""
    image = Image.new("RGB", (200, 140))
    draw = ImageDraw.Draw(image)
    for y in range(140):
        draw.line([(0, y), (200, y)], (60 + y, 120 + y // 2, 230) if y < 100 else (70, 190 - y // 2, 60))
    draw.ellipse([12, 10, 48, 46], (255, 220, 40))
    draw.rectangle([150, 70, 160, 115], (110, 70, 30))
    draw.polygon([(155, 25), (130, 80), (180, 80)], (20, 110, 40))
    draw.text((62, 50), "UP", (250, 250, 250), ImageFont.load_default(44))
    return image


def main():
    parser = argparse.ArgumentParser(prog="scripts/pictures sheet", description=__doc__)
    parser.add_argument("out", metavar="OUT.png", help="the sheet")
    parser.add_argument("--binaries", default="", help=argparse.SUPPRESS)
    parser.add_argument("--typed", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = [(kind, 1) for kind in samples.KINDS] + [(kind, turn) for kind in TURNED for turn in range(2, 9)]
    random = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="pictures-") as work:
        folder = pathlib.Path(work) / "files"
        folder.mkdir()
        names = []
        for kind, turn in cases:
            names.append(f"{len(names)}.{samples.KINDS[kind][0]}")
            (folder / names[-1]).write_bytes(samples.make(kind, random, orientation=turn, image=picture())[1])
        words = ["--resize", f"{TILE}x{TILE}", "--fit", "pad", "--image-format", "png", "--options", "transformAnimatedImage"]
        results = ours.Tool(options.binaries, work).fetched(folder, names, words)
        rows = -(-len(cases) // COLUMNS)
        sheet = Image.new("RGB", (COLUMNS * (TILE + 4), rows * (TILE + LABEL + 4)), (90, 90, 90))
        draw = ImageDraw.Draw(sheet)
        missing = 0
        for number, ((kind, turn), (row, file)) in enumerate(zip(cases, results, strict=True)):
            x, y = number % COLUMNS * (TILE + 4) + 2, number // COLUMNS * (TILE + LABEL + 4) + 2
            draw.text((x, y + TILE), kind if turn == 1 else f"{kind}, orient. {turn}", (255, 255, 255), ImageFont.load_default(10))
            if file is None:
                missing += 1
                draw.text((x + 4, y + 56), row["outcome"], (255, 80, 80))
                continue
            with Image.open(file) as image:
                missing += image.size != (TILE, TILE)
                image = image.convert("RGBA")
                # What is transparent shows a chessboard.
                squares = (numpy.indices((TILE, TILE)) // 8).sum(0) % 2 * 60 + 150
                board = Image.fromarray(squares.astype(numpy.uint8)).convert("RGBA")
                sheet.paste(Image.alpha_composite(board, image.crop((0, 0, TILE, TILE))), (x, y))
        sheet.save(options.out)
    print(f"{options.out}: {len(cases)} pictures, {missing} without a result of {TILE} x {TILE} pixels")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
