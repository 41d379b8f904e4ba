"""Pictures, and caches that are full of them from the start: files as docs/CACHE.md describes them, made without prefetch."""

import ctypes
import hashlib
import os
import struct
import time
import zlib

from png import chunk, head, whole

FORMAT_PNG, LEVEL_DECODE, HAS_DIGEST, UPRIGHT = 2, 3, 1, 1 << 2


def png(seed, padding=20_000):
    """A small picture that no other seed has, with a comment that makes it some blocks long."""
    rows = b"".join(b"\0" + struct.pack(">IIII", seed & 0xFFFFFFFF, x, (seed ^ x) & 0xFFFFFFFF, x)[:12] for x in range(4))
    comment = (b"%08d" % seed) * (padding // 8)
    return whole(head(4, 4, 2, 8), chunk(b"IDAT", zlib.compress(rows)), chunk(b"tEXt", b"c\0" + comment))


def place(cache, key):
    """The folder of a key's file, and its name."""
    digits = hashlib.sha256(key.encode()).hexdigest()
    return f"{cache}/v1/{digits[0]}/{digits[1]}", digits[2:]


def record(key, body, stored):
    """The 64 bytes of `user.prefetch`, but for those of the file."""
    return struct.pack(
        "<BBBBHxHxHH2sIxHBI4x32s", 4, LEVEL_DECODE, HAS_DIGEST | UPRIGHT, FORMAT_PNG, 4, 4, 0, 0,
        hashlib.sha256(key.encode()).digest()[30:], len(body), 1, 0, stored, hashlib.sha256(body).digest())  # fmt: skip


def identity(file):
    """What no copy of an open file has: of its inode and time of birth."""
    facts, at_empty_path, wanted = ctypes.create_string_buffer(256), 0x1000, 0xFFF
    if ctypes.CDLL(None).statx(file, b"", at_empty_path, wanted, facts) != 0:
        raise OSError("statx")
    inode, (seconds, part) = struct.unpack_from("<Q", facts, 32)[0], struct.unpack_from("<qI", facts, 80)
    number = 0
    for word in (inode, seconds, part):
        number = (number ^ word) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        number ^= number >> 32
    return struct.pack("<I", number >> 32 or 1)


def fill(cache, keys, body, age=0):
    """Makes a file for each key, all of the same bytes; `age`: seconds by which the first is older than now, the last one is of now."""
    stored, sample = int(time.time()), record("", body, 0)
    for number, key in enumerate(keys):
        folder, name = place(cache, key)
        then = stored - age + age * number // max(1, len(keys))
        path = f"{folder}/{name}"
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        os.write(file, body)
        own = hashlib.sha256(key.encode()).digest()[30:]
        head = sample[:14] + own + sample[16:24] + struct.pack("<I", then) + identity(file) + sample[32:]
        os.setxattr(file, "user.prefetch", head)
        if age:
            os.utime(file, (then, then))
        os.close(file)
