"""PNG files, chunk by chunk."""

import random
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def head(width, height, color, depth):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))


def whole(*chunks):
    return SIGNATURE + b"".join(chunks) + chunk(b"IEND", b"")


def noise(seed, side):
    """A picture of 16 bit RGBA that nothing makes smaller, and no other seed has: 8 bytes a pixel."""
    dice = random.Random(seed)
    rows = b"".join(b"\0" + dice.randbytes(8 * side) for _ in range(side))
    return whole(head(side, side, 6, 16), chunk(b"IDAT", zlib.compress(rows, 1)))


def slow(width, height):
    """Black, 16 bit RGBA, every row with the filter that costs most: a few MB that take a decoder more than a second."""
    pack, row, data = zlib.compressobj(1), b"\4" + bytes(8 * width), b""
    for _ in range(height):
        data += pack.compress(row)
    return whole(head(width, height, 6, 16), chunk(b"IDAT", data + pack.flush()))
