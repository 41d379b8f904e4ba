"""The protocol of Redis, as far as it takes to sit between a program and a server, and to ask a server something."""

import asyncio

LIMIT = 1 << 26


class Refused(Exception):
    """An error reply."""


async def raw(reader):
    """One reply, byte for byte."""
    line = await reader.readuntil(b"\r\n")
    kind = line[:1]
    if kind in b"+-:":
        return line
    size = int(line[1:-2])
    if kind == b"$":
        return line if size < 0 else line + await reader.readexactly(size + 2)
    if kind == b"*":
        parts = [line]
        for _ in range(size):
            parts.append(await raw(reader))
        return b"".join(parts)
    raise ValueError(f"no reply of Redis: {line[:40]!r}")


async def request(reader):
    """One command: its words, and the bytes they came in."""
    line = await reader.readuntil(b"\r\n")
    if line[:1] != b"*":
        raise ValueError(f"no command of Redis: {line[:40]!r}")
    parts, words = [line], []
    for _ in range(int(line[1:-2])):
        head = await reader.readuntil(b"\r\n")
        body = await reader.readexactly(int(head[1:-2]) + 2)
        words.append(body[:-2])
        parts += (head, body)
    return words, b"".join(parts)


def encoded(words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


async def value(reader):
    """One reply as a value; bytes stay bytes."""
    line = await reader.readuntil(b"\r\n")
    kind, text = line[:1], line[1:-2]
    if kind == b"-":
        return Refused(text.decode(errors="replace"))
    if kind == b":":
        return int(text)
    if kind == b"$":
        return None if int(text) < 0 else (await reader.readexactly(int(text) + 2))[:-2]
    if kind == b"*":
        return [await value(reader) for _ in range(int(text))]
    return text


class Client:
    """A connection of the harness' own, around every proxy."""

    def __init__(self, path):
        self.path, self.lock, self.streams = path, asyncio.Lock(), None

    async def __call__(self, *words):
        return (await self.many([words]))[0]

    async def many(self, commands):
        async with self.lock:
            if self.streams is None:
                self.streams = await asyncio.open_unix_connection(self.path, limit=LIMIT)
            reader, writer = self.streams
            writer.write(b"".join(encoded(words) for words in commands))
            replies = [await value(reader) for _ in commands]
        for reply in replies:
            if isinstance(reply, Refused):
                raise reply
        return replies

    async def text(self, *words):
        """The reply with its bytes as text, fields of a hash as a dictionary."""
        reply = await self(*words)
        if isinstance(reply, list):
            reply = [item.decode(errors="replace") if isinstance(item, bytes) else item for item in reply]
            if str(words[0]).upper() == "HGETALL":
                return dict(zip(reply[::2], reply[1::2]))
            return reply
        return reply.decode(errors="replace") if isinstance(reply, bytes) else reply

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None
