"""Which keys each script touches, as MONITOR tells of a run without a fault; and how a key gets a wrong type."""

import asyncio
import collections
import re

import resp
from proxy import LIMIT
from world import HOST

STRINGS = {"GET", "MGET", "SET", "SETNX", "GETRANGE", "SETRANGE", "INCR", "INCRBY", "STRLEN", "SETEX", "PSETEX"}
# These take keys of every type.
ANY = {"DEL", "UNLINK", "EXISTS", "EXPIRE", "PEXPIRE", "PERSIST", "TYPE", "RENAME", "TTL", "PTTL"}
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
ADDRESS = re.compile(r"127\.0\.0\.\d+:\d+")
QUESTION = re.compile(r"[0-9a-f]{32}")
WORKER = re.compile(re.escape(HOST) + r":\d+(\.\d+)?|nobody:1")


def pattern(name, batches):
    """A key without the root, with everything that differs between two runs in brackets."""
    for batch in sorted(batches, key=len, reverse=True):
        name = re.sub(rf"(^|:){re.escape(batch)}(?=:|$)", r"\1<batch>", name)
    if name.startswith("failure:"):
        name = QUESTION.sub("<question>", name)
    return ADDRESS.sub("<host>", WORKER.sub("<worker>", name))


class Monitor:
    """Reads MONITOR of one server; `touched[queue][script][key without root]` are the commands scripts gave."""

    def __init__(self, path, digests):
        self.path, self.digests, self.touched = path, digests, {}
        self.task = None

    async def start(self):
        reader, writer = await asyncio.open_unix_connection(self.path, limit=LIMIT)
        writer.write(resp.encoded(["MONITOR"]))
        await reader.readline()
        self.task = asyncio.ensure_future(self.read(reader, writer))

    async def read(self, reader, writer):
        script = None
        while True:
            line = (await reader.readline()).decode(errors="replace")
            if not line:
                writer.close()
                return
            # Texts of scripts are long, and nothing here is behind the first few words of a command.
            words = WORD.findall(line[:2000])
            if not words:
                continue
            verb = words[0].upper()
            if " lua]" not in line[:60]:
                script = None
                if verb == "EVALSHA":
                    script = self.digests.known.get(words[1].lower().encode())
                continue
            if not script:
                continue
            for word in words[1:]:
                match = re.match(r"prefetch:\{([^}]*)\}:(.*)", word)
                if match:
                    queue = self.touched.setdefault(match[1], collections.defaultdict(lambda: collections.defaultdict(set)))
                    queue[script][match[2]].add(verb)

    def stop(self):
        self.task.cancel()


async def chosen(cell, wanted, words):
    """The key of this cell that a pattern means, the one that a call names first; made up where there is none yet."""
    names = cell.names
    keys = cell.redis("KEYS", cell.root.replace("{", "\\{") + ":*")
    there = [key[len(cell.root) + 1 :] for key in keys]
    there = [key for key in there if pattern(key, names) == wanted]
    said = [word.decode(errors="replace") for word in words[3:]]
    there.sort(key=lambda key: (not any(word and word in key for word in said), key))
    if there:
        return there[0]
    worker = next((word for word in said if WORKER.fullmatch(word)), f"{HOST}:1")
    batch = next((word for word in said if word in names), names[0])
    question = next((word for word in said if QUESTION.fullmatch(word)), "")
    wanted = wanted.replace("<question>", question)
    return wanted.replace("<batch>", batch).replace("<worker>", worker).replace("<host>", cell.world.good.split("//")[1])
