"""Sees every report that Redis runs, and whether Redis keeps its promise: the first outcome of a URL wins, stays, and counts once."""

import codecs
import collections
import os
import re
import threading
import time

from names import Digests
from outcomes import outcome
from resp import Away

ROOT = "prefetch:{default}"
# Seconds between two readings.
STEP = 0.2
WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')


def said(words):
    """Batch and nonce of a call of REPORT, and its outcomes as (index, code). The head of REPORT.lua has the arguments."""
    at, items = 10, []
    while at < len(words):
        base = int(words[at].rsplit(b":", 2)[1])
        items += [(base + position, code) for position, code in enumerate(words[at + 2]) if code]
        at += 5
        # Details, URLs to list, URLs to take off the list: a number, then so many groups.
        for width in (2, 4, 2):
            at += 1 + width * int(words[at])
    return (words[5].decode(), words[6].decode()), items


class Witness(threading.Thread):
    """Reads MONITOR of each start of Redis from before anybody else can reach it. `told` has the first outcome of each URL that a report
    named. A reading is one transaction, which MONITOR shows in its place among the reports: what it finds has to be what was told until then.
    """

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.digests = server, Digests()
        # By batch and nonce: one byte per URL.
        self.told = collections.defaultdict(bytearray)
        self.changed, self.failures, self.counts = set(), [], collections.Counter()
        self.miscounted, self.readings, self.isEnding, self.isLast = set(), 0, False, False

    def run(self):
        while not self.isLast:
            try:
                self.watch()
            except (Away, OSError):
                time.sleep(0.005)

    def end(self):
        """A last reading of every batch."""
        self.isEnding = True
        try:
            self.server.client()("PING")
        except Away:
            pass
        self.join(30)
        if self.is_alive():
            self.failures.append("the witness does not end")

    def enter(self, wait_limit):
        """A client that `CLIENT KILL USER default` does not mean."""
        client = self.server.client(wait_limit, self.server.door)
        client("ACL", "SETUSER", "witness", "on", "nopass", "~*", "&*", "+@all")
        client("AUTH", "witness", "-")
        return client

    def watch(self):
        monitor, client = self.enter(None), self.enter(30)
        monitor("MONITOR")
        self.begin(client)
        os.rename(self.server.door, self.server.socket)
        call, awaited, found, read_at = None, None, None, 0
        for line in monitor.file:
            if b" lua] " in line[:60]:
                # It runs: one that Redis does not know, NOSCRIPT, gives no command.
                if call:
                    self.report(*call)
                call = None
                continue
            call = None
            verb = line[line.find(b'"') :][:12].upper()
            if verb.startswith((b'"EVAL', b'"SCRIPT"', b'"ECHO"')):
                words = [codecs.escape_decode(word)[0] for word in WORD.findall(line)]
                if words[0] == b"ECHO":
                    if words[1] == awaited:
                        self.compare(found)
                        if self.isLast:
                            return
                        awaited, read_at = None, time.monotonic()
                elif self.digests.of(words) == "REPORT":
                    call = said(words)
            if awaited is None and (self.isEnding or time.monotonic() > read_at + STEP):
                awaited, found = self.read(client)

    def begin(self, client):
        """What Redis has as it starts: of the reports before, all or the first ones."""
        names = [key[len(ROOT) + 3 : -2] for key in client("KEYS", f"{ROOT}:b:*:o")]
        before, self.told = self.told, collections.defaultdict(bytearray)
        for batch in names:
            nonce, text = client.many([("HGET", f"{ROOT}:b:{batch}", "nonce"), ("GET", f"{ROOT}:b:{batch}:o")])
            codes = self.told[batch, nonce] = bytearray(text.encode("latin-1"))
            for index, (was, code) in enumerate(zip(before[batch, nonce], codes)):
                if was and code not in (0, was):
                    self.broken(batch, index, was, code)

    def report(self, batch, items):
        told = self.told[batch]
        self.changed.add(batch[0])
        self.counts["reports that Redis ran"] += 1
        told += bytes(max(0, max((index + 1 for index, _ in items), default=0) - len(told)))
        for index, code in items:
            if not told[index]:
                told[index] = code
            else:
                self.counts["URLs reported again"] += 1
                self.counts["URLs reported again, with another outcome"] += code != told[index]

    def read(self, client):
        """One transaction: the mark in it, and what each batch that was reported has."""
        self.isLast, self.readings = self.isEnding, self.readings + 1
        names = sorted({batch for batch, _ in self.told} if self.isLast else self.changed)
        self.changed = set()
        commands = [("MULTI",), ("ECHO", f"witness {self.readings}")]
        for batch in names:
            commands += [("HMGET", f"{ROOT}:b:{batch}", "state", "nonce", "finished"), ("GET", f"{ROOT}:b:{batch}:o")]
        reply = client.many([*commands, ("EXEC",)])[-1]
        return reply[0].encode(), list(zip(names, reply[1::2], reply[2::2]))

    def compare(self, found):
        for batch, (state, nonce, finished), text in found:
            told, codes = self.told[batch, nonce], bytearray((text or "").encode("latin-1"))
            length = max(len(told), len(codes))
            told += bytes(length - len(told))
            codes += bytes(length - len(codes))
            for index, (was, code) in enumerate(zip(told, codes)):
                # What comes for a cancelled batch is not taken.
                if was != code and (code or state != "cancelled"):
                    self.broken(batch, index, was, code)
                    told[index] = code
            ended = length - codes.count(0)
            if state and int(finished) != ended and batch not in self.miscounted:
                self.miscounted.add(batch)
                self.failures.append(f"{batch}: counts {finished} as finished, and has {ended} outcomes")

    def broken(self, batch, index, told, code):
        self.failures.append(f"{batch}: index {index}: first reported as {outcome(told)}, and Redis has {outcome(code)}")
