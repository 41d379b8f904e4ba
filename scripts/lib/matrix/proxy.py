"""Stands between the programs of one cell and Redis, knows which script a call runs, and lets chosen calls of one script go wrong."""

import asyncio
import collections
import time

LIMIT = 1 << 26
ERROR = b"-ERR upstream failure\r\n"
FULL = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
KINDS = {
    "error": "an error reply, and the script did not run",
    "error-ran": "the script ran, and an error came in place of its reply",
    "cut-before": "the connection ended before the call reached Redis",
    "cut-after": "the script ran, and the connection ended before the reply",
    "late": "the reply came two leases late",
}


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


class Cut(Exception):
    """The connection ends here."""


class Fault:
    """What happens to calls of one script: from the `call`th on, `times` of them."""

    def __init__(self, script=None, kind=None, call=1, times=1, seconds=4.0):
        self.script, self.kind, self.call, self.times, self.seconds = script, kind, call, times, seconds
        self.seen, self.hits, self.hit_at, self.over_at = 0, 0, None, None
        self.over, self.spoil = asyncio.Event(), None
        if kind is None:
            self.over.set()

    async def meet(self, script, words):
        """What happens to this call; None where nothing does."""
        if self.kind is None or script != self.script:
            return None
        self.seen += 1
        if not self.call <= self.seen < self.call + self.times:
            return None
        self.hits += 1
        self.hit_at = self.hit_at or time.monotonic()
        if self.kind in ("type", "lost"):
            # It says itself when it is over.
            await self.spoil(words)
        elif self.kind == "late":
            asyncio.get_running_loop().call_later(self.seconds, self.end)
        else:
            self.end()
        return self.kind

    def end(self):
        self.over_at = time.monotonic()
        self.over.set()


class Proxy:
    def __init__(self, path, target, digests, fault):
        self.path, self.target, self.digests, self.fault = path, target, digests, fault
        self.calls, self.server, self.tasks = collections.Counter(), None, set()
        # How many of its next calls a script finds no memory for. The server is that of all cells, so it has no limit of its own.
        self.full = collections.Counter()

    async def start(self):
        self.server = await asyncio.start_unix_server(self.accept, self.path, limit=LIMIT)

    async def accept(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            await self.serve(reader, writer)
        except (OSError, EOFError, ValueError, Cut, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            writer.transport.abort()

    async def serve(self, reader, writer):
        above, below = await asyncio.open_unix_connection(self.target, limit=LIMIT)
        replies = asyncio.Queue()
        halves = [asyncio.ensure_future(self.requests(reader, below, replies)), asyncio.ensure_future(self.answers(above, writer, replies))]
        try:
            done, _ = await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            for half in done:
                half.result()
        finally:
            for half in halves:
                half.cancel()
            below.transport.abort()
            await asyncio.gather(*halves, return_exceptions=True)

    async def requests(self, reader, below, replies):
        while True:
            words, data = await request(reader)
            script = self.digests.of(words)
            kind = None
            if script:
                self.calls[script] += 1
                kind = await self.fault.meet(script, words)
                if kind is None and self.full[script] > 0:
                    self.full[script] -= 1
                    kind = "full"
            if kind == "cut-before":
                raise Cut
            replies.put_nowait(kind)
            if kind not in ("error", "full"):
                below.write(data)
                await below.drain()

    async def answers(self, above, writer, replies):
        while True:
            kind = await replies.get()
            if kind == "error":
                writer.write(ERROR)
                continue
            if kind == "full":
                writer.write(FULL)
                continue
            data = await raw(above)
            if kind == "cut-after":
                raise Cut
            if kind == "late":
                await asyncio.sleep(self.fault.seconds)
            writer.write(ERROR if kind == "error-ran" else data)
            await writer.drain()

    async def stop(self):
        if self.server:
            self.server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
