"""PNG files, written here: of every kind, since Pillow and OpenCV write no interlaced ones and few depths, and without either of them."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# Adam7: first column and row, and the steps, of each pass.
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def head(width, height, color, depth, interlaced=False):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced)))


def whole(*chunks):
    return SIGNATURE + b"".join(chunks) + chunk(b"IEND", b"")


def packed(row, depth):
    """A row of samples as bytes."""
    if depth == 16:
        return struct.pack(">%dH" % len(row), *row)
    if depth == 8:
        return bytes(row)
    bits = "".join(format(value, "0%db" % depth) for value in row)
    bits += "0" * (-len(bits) % 8)
    return int("0" + bits, 2).to_bytes(len(bits) // 8, "big")


def paeth(left, up, corner):
    near = left + up - corner
    return min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]


def filtered(row, above, step, kind):
    """A row under one of the five filters."""
    result = bytearray([kind])
    for at, value in enumerate(row):
        left, corner = (row[at - step], above[at - step]) if at >= step else (0, 0)
        guess = (0, left, above[at], (left + above[at]) // 2, paeth(left, above[at], corner))[kind]
        result.append((value - guess) & 255)
    return bytes(result)


def write(samples, color, depth, interlaced=False, palette=b"", transparent=b"", extra=b"", parts=1):
    """`samples`: an array of rows of pixels of samples. Filters take turns; `parts`: chunks of image data."""
    height, width = len(samples), len(samples[0])
    step = max(1, CHANNELS[color] * depth // 8)
    raw = b""
    for left, top, across, down in PASSES if interlaced else [(0, 0, 1, 1)]:
        above = None
        for number, line in enumerate(samples[top::down]):
            row = packed([int(sample) for pixel in line[left::across] for sample in pixel], depth)
            if row:
                raw += filtered(row, above or bytes(len(row)), step, number % 5)
                above = row
    data = zlib.compress(raw, 6)
    size = -(-len(data) // parts)
    body = head(width, height, color, depth, interlaced) + extra
    if palette:
        body += chunk(b"PLTE", palette)
    if transparent:
        body += chunk(b"tRNS", transparent)
    return whole(body, *(chunk(b"IDAT", data[at : at + size]) for at in range(0, len(data), size)))


def repaired(data):
    """The same bytes with the CRC of each chunk made right, as far as the lengths lead."""
    data, at = bytearray(data), len(SIGNATURE)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if at + 12 + length > len(data):
            break
        data[at + 8 + length : at + 12 + length] = zlib.crc32(data[at + 4 : at + 8 + length]).to_bytes(4, "big")
        at += 12 + length
    return bytes(data)
