"""One cell: a queue of its own, its workers, the commands that are given, and what went wrong. Verdicts are in verdict.py."""

import asyncio
import json
import os
import pty
import random
import select
import signal
import subprocess
import time
import zlib

import keys
import resp
from batch import Batch
from world import HOST, kill

LEASE = 2.0
# What a command may end with: success, skipped URLs or something found, and the documented errors (docs/CHECKS.md, 7).
DOCUMENTED = {0, 1, 3, 4, 64, 65, 66, 69, 70, 73, 74, 75, 77, 78}
WORKER = ["--lease", "2s", "--allow-net", "127.0.0.0/8", "--max-concurrent-downloads", "8"]
WORKER += ["--drain-timeout", "1s", "--quiet"]
# Keys: one that gets a wrong type, and one for its value; argument: a type that is wrong if there is none yet. In one step, since a script of
# another worker may make the key just now. Returns the wrong type.
SPOIL = """
local is = redis.call('TYPE', KEYS[1]).ok
if is ~= 'none' then redis.call('RENAME', KEYS[1], KEYS[2]) end
local wrong = is == 'string' and 'hash' or is == 'none' and ARGV[1] or 'string'
if wrong == 'hash' then redis.call('HSET', KEYS[1], 'wrong', 'type') else redis.call('SET', KEYS[1], 'of a wrong type') end
return wrong
"""
BATCH = ["--timeout", "10s", "--connect-timeout", "10s"]


class Broken(Exception):
    """A promise was broken, and the cell cannot go on."""


async def ended(child, terminal):
    if select.select([terminal], [], [], 0)[0]:
        os.read(terminal, 1 << 16)
    return child.returncode is not None


class Worker:
    def __init__(self, child, log):
        self.child, self.log, self.is_ours, self.may_die, self.words = child, log, False, False, ()
        self.name = f"{HOST}:{child.pid}"


class Cell:
    def __init__(self, world, name, proxy, fault, seed):
        self.world, self.name, self.proxy, self.fault, self.began = world, name, proxy, fault, time.monotonic()
        self.random = random.Random(seed)
        self.queue = f"q{zlib.crc32(f'{name} {seed}'.encode()):08x}"
        self.root = f"prefetch:{{{self.queue}}}"
        self.folder = os.path.join(world.folder, self.queue)
        self.cache = os.path.join(self.folder, "cache")
        os.makedirs(self.folder, exist_ok=True)
        self.redis = resp.Client(world.socket)
        self.workers, self.watches, self.batches, self.names, self.failures, self.notes = [], [], [], [], [], []
        # Of a key that is lost: whether a batch was made again, and what may differ afterwards.
        self.mended, self.wait_limit, self.spoilt, self.tasks = False, 12.0, None, []
        # Batches that were made again from their lists.
        self.anew = set()

    def fail(self, text):
        self.failures.append(text)

    @property
    def url(self):
        return "unix://" + self.proxy.path

    def log(self, name):
        return os.path.join(self.folder, name + ".log")

    def key(self, *parts):
        return ":".join((self.root, *parts))

    # Batches

    def batch(self, name, **more):
        batch = Batch(self.world, self.queue, "x-" + name, self.folder, **more)
        self.batches.append(batch)
        self.names.append(batch.name)
        return batch

    async def plant(self, *words):
        """A command of the harness' own; waits where its key has a wrong type just now."""
        for _ in range(2):
            try:
                return self.redis(*words)
            except resp.Refused:
                if not self.fault.hit_at:
                    raise
                await asyncio.wait_for(self.fault.over.wait(), 60)
        return self.redis(*words)

    # Programs

    async def command(self, *words, around=False, timeout=60):
        """Exit code, output and errors of a command; `around`: past the proxy."""
        where = "unix://" + self.world.socket if around else self.url
        words = [self.world.program("prefetch-coord"), *words, "--redis", where, "--queue", self.queue]
        child = await self.world.start(*words, output=subprocess.PIPE, log=self.log("commands"))
        try:
            output, _ = await asyncio.wait_for(child.communicate(), timeout)
        except asyncio.TimeoutError:
            kill(child)
            await child.wait()
            self.fail(f"{' '.join(words[1:3])} did not end within {timeout:.0f} s")
            raise Broken from None
        with open(self.log("commands"), "a", encoding="utf-8") as log:
            log.write(f"^ {' '.join(words[1:-4])}  -> {child.returncode}\n")
        if child.returncode not in DOCUMENTED:
            self.fail(f"{' '.join(words[1:3])} ended with {child.returncode}")
        return child.returncode, output.decode(errors="replace")

    async def do(self, *words, again=None, good=(0, 3), later=()):
        """A command that has to succeed, at the latest when the fault is over: one that failed is given again, as `again` where that differs."""
        end, hits = time.monotonic() + 75, self.fault.hits
        for turn in range(90):
            code, output = await self.command(*(words if turn == 0 or not again else again))
            if code in good or (turn and code in later):
                return output
            if turn:
                await asyncio.sleep(0.3)
            if self.fault.hits > hits:
                end, hits = time.monotonic() + 75, self.fault.hits
            elif time.monotonic() > end or turn >= 3:
                break
            self.notes.append(f"{words[0]} ended with {code}, and was given again")
            if self.fault.hit_at and not self.fault.over.is_set():
                await asyncio.wait_for(self.fault.over.wait(), 60)
        self.fail(f"{' '.join(words[:2])} still ends with {code} when the fault is over, see commands.log")
        raise Broken

    async def submit(self, batch, *more):
        words, code = ["submit", batch.list, "--job-size", "4", "--quiet"], None
        for turn in range(6):
            # What it says is to be done: gone on with, or submitted anew.
            known = turn and code != 66 and self.redis("EXISTS", self.key("b", batch.name))
            code, _ = await self.command(*words, *(["--resume"] if known else ["--name", batch.name, *BATCH, *more]))
            if code in (0, 3):
                return
            self.notes.append(f"submit ended with {code}, and was given again")
            if self.fault.hit_at and not self.fault.over.is_set():
                await asyncio.wait_for(self.fault.over.wait(), 60)
            try:
                state, sealed = self.redis("HMGET", self.key("b", batch.name), "state", "sealed")
                if sealed == "1" or state == "cancelled":
                    return
            except resp.Refused:
                pass
            if turn and self.fault.kind in ("type", "lost"):
                # What a batch has lost stays lost.
                await self.mend()
            await asyncio.sleep(0.2)
        self.fail("submit never succeeded, see commands.log")
        raise Broken

    async def worker(self, *more, around=(), variables=None):
        log = self.log(f"worker-{len(self.workers) + 1}")
        words = [*around, self.world.program("prefetch-worker"), "--redis", self.url, "--queue", self.queue, "--cache", self.cache]
        worker = Worker(await self.world.start(*words, *WORKER, *more, log=log, variables=variables or {}), log)
        worker.words = more
        self.workers.append(worker)
        return worker

    async def look_after(self):
        """Of the workers: a new one for each that refused to start; one that ended otherwise was not to."""
        for worker in list(self.workers):
            code = worker.child.returncode
            if code is None or worker.is_ours:
                continue
            worker.is_ours = True
            with open(worker.log, encoding="utf-8", errors="replace") as log:
                text = log.read()
            had_joined = self.redis("EXISTS", self.key("w", worker.name))
            # 70 is what nobody foresaw: of a worker that is to wait it out.
            if code in DOCUMENTED - {0, 70} and "error:" in text and (not had_joined or self.fault.script == "JOIN"):
                self.notes.append(f"a worker refused to start with {code}, and was started again")
                await asyncio.sleep(0.5)
                await self.worker(*worker.words)
            else:
                self.fail(f"a worker ended by itself with {code}, see {os.path.basename(worker.log)}")

    async def watch(self, batch):
        words = [self.world.program("prefetch-coord"), "watch", batch.name, "--json", "--from-start", "--redis", self.url, "--queue", self.queue]
        log = self.log("watch")
        self.watches.append((batch, await self.world.start(*words, log=log + ".err", output=open(log, "ab")), log))

    async def dash(self, calls=3):
        """The dashboard on a terminal of its own, until it has looked at the queue some times and is told to quit."""
        ours, its = pty.openpty()
        words = [self.world.program("prefetch-coord"), "dash", "--redis", self.url, "--queue", self.queue]
        try:
            child = await self.world.start(*words, log=self.log("dash"), output=its, input=its, variables={"TERM": "xterm"})
            before = self.proxy.calls["BROWSE"]

            async def has_polled():
                # What nobody reads would stop it.
                if select.select([ours], [], [], 0)[0]:
                    os.read(ours, 1 << 16)
                return child.returncode is not None or self.proxy.calls["BROWSE"] >= before + calls

            if not await self.until(has_polled, 10 + self.wait_limit):
                self.fail("the dashboard looks at nothing any more")
            if child.returncode is None:
                os.write(ours, b"q")
            if not await self.until(lambda: ended(child, ours), 10):
                self.fail("the dashboard does not quit")
                kill(child)
            elif child.returncode not in DOCUMENTED:
                self.fail(f"the dashboard ended with {child.returncode}")
        finally:
            os.close(ours)
            os.close(its)

    async def kill(self, worker):
        worker.is_ours = True
        kill(worker.child)
        await worker.child.wait()

    async def leave(self, worker):
        """SIGTERM: it has to end with 0."""
        if worker.is_ours:
            return
        worker.is_ours = True
        if worker.child.returncode is None:
            worker.child.send_signal(signal.SIGTERM)
        try:
            code = await asyncio.wait_for(worker.child.wait(), 25)
        except asyncio.TimeoutError:
            self.fail("a worker did not leave within 25 s of SIGTERM")
            kill(worker.child)
            return
        # One that was told before it had even joined has no one to say goodbye to.
        if code != 0 and not (code == -signal.SIGTERM and not self.redis("EXISTS", self.key("w", worker.name))):
            self.fail(f"a worker that was told to leave ended with {code}")

    # A key of a wrong type

    async def spoil(self, wanted, verbs, words):
        """Gives a key a wrong type, and for a lease nothing else happens. Then it gets its true value back (`type`), or that is lost (`lost`)."""
        name = self.spoilt = await keys.chosen(self, wanted, words)
        key, saved = self.key(name), f"matrix:{self.queue}"
        try:
            wrong = self.redis("EVAL", SPOIL, 2, key, saved, "hash" if verbs & keys.STRINGS else "string")
        except resp.Refused as error:
            self.fail(f"the harness: {name}: {error}")
            return self.fault.end()
        self.tasks.append(asyncio.ensure_future(self.heal(key, saved, wrong)))

    async def heal(self, key, saved, wrong):
        try:
            await asyncio.sleep(LEASE)
            is_there = self.redis("TYPE", key) == wrong
            if self.fault.kind == "lost":
                self.redis("DEL", saved)
                if is_there:
                    code, text = await self.command("fsck", around=True)
                    # A script may have made it anew, or a worker put it aside, while fsck looked.
                    if code == 0 and self.redis("TYPE", key) == wrong:
                        self.fail(f"{self.spoilt} has a wrong type, and fsck says: {text.strip()}")
                    if not await self.mend():
                        self.fail(f"{self.spoilt} neither heals nor goes with its batch")
            elif is_there:
                # One that is gone meanwhile, or made anew, is so by right.
                # In one step: a worker that finds none registers anew, and would be overwritten.
                if self.redis("EXISTS", saved):
                    self.redis("RENAME", saved, key)
                else:
                    self.redis("DEL", key)
        except Exception as error:
            self.fail(f"the harness: {error!r}")
        finally:
            self.fault.end()

    async def mend(self):
        """What a person does: sees to it that there is a worker, which heals the queue; a batch that is broken or gone is removed, and made again."""
        self.mended, unsent = True, set()
        for _ in range(12):
            code, text = await self.command("fsck", "--json", around=True)
            said = json.loads(text) if code in (0, 1) else {"finding_count": 1, "commands": []}
            lost = [batch for batch in self.batches if not self.redis("EXISTS", self.key("b", batch.name))]
            for batch in self.batches:
                if batch not in lost and any(f" rm --force {batch.name} " in command for command in said["commands"]):
                    lost.append(batch)
                elif batch in unsent and (await self.command("submit", batch.list, "--resume", "--quiet", around=True))[0] in (0, 3, 66):
                    # 66: it was queued to its end, and only the reply was lost.
                    unsent.discard(batch)
            for batch in lost:
                self.anew.add(batch.name)
                await self.command("rm", batch.name, "--force", "--yes", around=True)
                if (await self.command("submit", batch.list, "--name", batch.name, "--quiet", around=True))[0] not in (0, 3):
                    unsent.add(batch)
                if batch.ends == "cancelled":
                    await self.command("cancel", batch.name, "--yes", around=True)
            if said["finding_count"] == 0 and not lost and not unsent:
                return True
            if all(worker.child.returncode is not None for worker in self.workers):
                await self.worker()
            await asyncio.sleep(LEASE)
        return False

    # Waiting

    async def until(self, what, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await self.look_after()
            try:
                if await what():
                    return True
            except resp.Refused:
                pass
            await asyncio.sleep(0.05)
        return False

    async def finished(self, batch, number):
        """Until so many URLs of it have ended, or it is over."""
        async def look():
            n, state = self.redis("HMGET", self.key("b", batch.name), "finished", "state")
            return int(n or 0) >= number or state in ("done", "cancelled")
        await self.until(look, self.wait_limit)

    async def over(self, batch, unless=None):
        """Whether a batch ends: there has to be progress within three leases after the end of the fault, and what a run takes without one.
        None where a child (`unless`) ends before."""
        last, since = None, time.monotonic()
        while True:
            await self.look_after()
            try:
                state, finished = self.redis("HMGET", self.key("b", batch.name), "state", "finished")
            except resp.Refused:
                state = finished = None
            if state in ("done", "cancelled"):
                return True
            if unless and unless.returncode is not None:
                return None
            now = time.monotonic()
            if finished != last or (self.fault.hit_at and not self.fault.over.is_set()):
                last, since = finished, now
            if now - since > 3 * LEASE + self.wait_limit:
                return False
            await asyncio.sleep(0.05)

    async def close(self):
        for task in self.tasks:
            task.cancel()
        for worker in self.workers:
            kill(worker.child)
        for _, child, _ in self.watches:
            kill(child)
        await asyncio.gather(*(worker.child.wait() for worker in self.workers))
        await self.proxy.stop()
        self.redis.close()
