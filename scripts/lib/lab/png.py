"""PNG files, chunk by chunk."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def head(width, height, color, depth):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))


def whole(*chunks):
    return SIGNATURE + b"".join(chunks) + chunk(b"IEND", b"")
