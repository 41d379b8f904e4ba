"""The second matrix: every call that a worker makes on files of its cache, and what can become of it; and what can stand in a file's place.

The calls are those of a run without faults, as a library before the C library sees them; strace(1) tells whether it sees them all. A cell is a
worker with a cache that has some images already, one call, and one fault from some call on, until the harness ends it."""

import asyncio
import errno
import os
import re
import shutil
import stat

import verdict
from cell import Broken
from outcomes import IMAGE, place
from world import kill

ERRORS = {name: getattr(errno, name) for name in ("EIO", "ENOSPC", "EMFILE", "EACCES")}
KILLS = {"killed-before": "before", "killed-after": "after"}
FOLDERS = {"v1", "v1/x", "v1/x/x", "bad", ".prefetch", ".prefetch/locks", ".prefetch/busy"}
PLANTS = ("symlink", "directory", "fifo")
# What a worker may say as it starts, or as it gives up a folder that is none.
REFUSALS = {73, 74, 75, 78}
# Calls that touch no file, or only let go of it.
HARMLESS = {"close", "lseek", "munmap", "dup", "dup3", "epoll_ctl", "execve", "madvise", "getcwd", "chdir"}
SAME = {"pread": "pread64", "pwrite": "pwrite64", "mkdir": "mkdirat", "readlink": "readlinkat"}
OPTIONS = ["--burst", "--cache-max-size", "200MB", "--min-free", "1MB"]


def calls_of(path):
    """(call, kind of file) -> how often, in the order of their first."""
    found = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            call, _, kind = line.rstrip("\n").partition(" ")
            found[(call, kind)] = found.get((call, kind), 0) + 1
    return found


def seen_by_strace(path, cache):
    """The names of calls that name something below a folder, by path or descriptor, and succeeded in that."""
    names = set()
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = re.match(r"(?:\[pid +\d+\] |\d+ +)?([a-z0-9_]+)\(", line)
            if match and re.search(re.escape(cache) + r'[/>" ]', line):
                names.add(match[1])
    return names


class Files:
    """The parts of the second matrix that all its cells share."""

    def __init__(self, harness):
        self.harness, self.world = harness, harness.world
        self.calls, self.problems = {}, []

    async def prepare(self):
        """A cache that has some images, then the run without faults that tells the calls. Returns what was wrong with that."""
        cell = await self.harness.bare("files-base")
        self.base = cell.cache
        batch = cell.batch("base", good=6, slow=0, bad=False)
        self.old = batch
        await cell.submit(batch)
        await self.end(cell, await self.worker(cell))
        await cell.close()
        cell = await self.cell("files-clean")
        log = os.path.join(cell.folder, "calls")
        await self.end(cell, await self.worker(cell, FAULT_LOG=log))
        await self.judge(cell)
        self.calls = calls_of(log)
        self.problems += [f"without a fault, files: {text}" for text in cell.failures]
        await cell.close()
        if not self.harness.options.cut and not self.harness.options.only:
            await self.compare()
        return self.problems

    async def compare(self):
        """Whether strace sees a call that the library does not."""
        cell = await self.cell("files-strace")
        log = os.path.join(cell.folder, "strace")
        await self.end(cell, await self.worker(cell, around=["strace", "-f", "-y", "-qq", "-s", "300", "-o", log]), 60)
        known = {call for call, _ in self.calls}
        for name in sorted(seen_by_strace(log, cell.cache) - HARMLESS):
            if SAME.get(name, name) not in known and name not in known:
                self.problems.append(f"a call on the cache without cells, {name}: scripts/lib/matrix/file_faults.c")
        await cell.close()

    async def cell(self, name):
        cell = await self.harness.bare(name)
        shutil.copytree(self.base, cell.cache, symlinks=True, copy_function=copy)
        batch = cell.batch("new", good=10, slow=0, first=20)
        tag = f"{cell.queue}-big"
        batch.rows = self.old.rows[:6] + batch.rows + [(f"{self.world.bad}/big.png?{tag}", IMAGE, self.world.big_digest, False)]
        with open(batch.list, "w", encoding="utf-8") as file:
            file.writelines(row[0] + "\n" for row in batch.rows)
        await cell.submit(batch)
        return cell

    async def worker(self, cell, *more, around=(), **variables):
        if variables:
            variables = {"LD_PRELOAD": self.world.file_faults, "FAULT_ROOT": cell.cache, **variables}
        return await cell.worker(*OPTIONS, *more, around=around, variables=variables)

    async def end(self, cell, worker, seconds=60):
        """A burst ends by itself when the batch is done."""
        worker.is_ours = True
        try:
            return await asyncio.wait_for(worker.child.wait(), seconds)
        except asyncio.TimeoutError:
            kill(worker.child)
            return None

    async def judge(self, cell):
        for batch in cell.batches:
            await verdict.outcomes(cell, batch)
        await verdict.failed(cell)
        await verdict.files(cell, self.old.rows)
        await verdict.litter(cell)
        code, text = await cell.command("fsck", "--cache", cell.cache, around=True)
        if code != 0:
            cell.fail(f"fsck ended with {code}: {text.strip()[:300]}")

    def cells(self):
        out = []
        for call, kind in self.calls:
            out += [(f"{call}({kind})/{fault}", call, kind, fault) for fault in (*ERRORS, *KILLS)]
        names = {kind for _, kind in self.calls if kind != "." and "unnamed" not in kind and "temporary" not in kind}
        for kind in sorted(names):
            out += [(f"plant({kind})/{plant}", "plant", kind, plant) for plant in PLANTS if plant != "directory" or kind not in FOLDERS]
        return out

    async def one(self, name, call, kind, fault, turn):
        """Runs a cell; returns it. Each turn has a queue and a folder of its own."""
        dice = self.harness.plan.dice(name)
        async with self.harness.turns:
            cell = await self.cell(f"{name} {turn}" if turn else name)
            try:
                if call == "plant":
                    await self.plant(cell, kind, fault, dice)
                else:
                    await self.fault(cell, call, kind, fault, dice)
                if not cell.failures:
                    await self.judge(cell)
            except Broken:
                pass
            except Exception as error:  # One cell does not end the others.
                cell.fail(f"the harness: {error!r}")
            finally:
                await cell.close()
        return cell

    async def fault(self, cell, call, kind, fault, dice):
        flag, hit = os.path.join(cell.folder, "while"), os.path.join(cell.folder, "hit")
        with open(flag, "w", encoding="utf-8"):
            pass
        number = dice.randint(1, max(1, self.calls[(call, kind)] // 2))
        how = {"FAULT_CALL": call, "FAULT_KIND": kind, "FAULT_FROM": str(number), "FAULT_WHILE": flag, "FAULT_HIT": hit}
        how["FAULT_DO"] = KILLS.get(fault) or str(ERRORS[fault])
        if fault in KILLS:
            how["FAULT_COUNT"] = "1"
        worker = await self.worker(cell, **how)
        worker.is_ours, worker.may_die = True, fault in KILLS
        if not await cell.until(lambda: there(hit, worker), 30):
            cell.fail("the worker neither meets the call nor ends")
        if not os.path.exists(hit):
            cell.fail(f"not reached: call {number} of {call} on {kind}, the worker ended with {worker.child.returncode}")
            return
        if fault in KILLS:
            await asyncio.wait_for(worker.child.wait(), 10)
        else:
            # It lasts: other URLs go on, or wait, and nothing ends for it but with a sentence.
            await asyncio.sleep(1.5)
        os.unlink(flag)
        await self.recover(cell, worker, "the fault")

    async def recover(self, cell, worker, what):
        """After the end of a fault: the worker goes on, or it has ended as is documented and another one does."""
        batch = cell.batches[0]
        for _ in range(3):
            if worker.child.returncode is None:
                # One that has just started may still refuse what was there.
                over = await cell.over(batch, unless=worker.child)
                if over is False:
                    cell.fail(f"{batch.name} hangs after the end of {what}: {await verdict.state_of(cell, batch)}; {last_words(worker)}")
                    return
                if over:
                    code = await self.end(cell, worker, 25)
                    if code != 0:
                        cell.fail(f"the worker ended with {code} when all was done: {last_words(worker)}")
                    return
            code = worker.child.returncode
            if code == 0:
                return
            if code not in REFUSALS and not (code == -9 and worker.may_die):
                cell.fail(f"the worker ended with {code} by itself: {last_words(worker)}")
            cell.notes.append(f"a worker ended with {code}")
            worker = await self.worker(cell)
            worker.is_ours = True
        cell.fail("three workers ended")

    async def plant(self, cell, kind, plant, dice):
        """Something else stands in the place of a name. Where it is one image or its folder, all other URLs end nevertheless."""
        batch = cell.batches[0]
        rows = [row for row in batch.rows if row[2]]
        url = dice.choice(rows)[0]
        digits = place(cell.cache, url).split("/v1/")[1].split("/")
        name = kind.replace("v1/x/x", f"v1/{digits[0]}/{digits[1]}").replace("v1/x", f"v1/{digits[0]}")
        name = name.replace("/image", "/" + digits[2]).replace("record", digits[2] + ".m").replace("locks/x", f"locks/{dice.choice('0123456789abcdef')}")
        name = name.replace("busy/file", "busy/1-aaaaaaaa")
        path, aside, victim = os.path.join(cell.cache, name), os.path.join(cell.folder, "aside"), os.path.join(cell.folder, "victim")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.rename(path, aside)
        is_folder = kind in FOLDERS
        if plant == "symlink":
            if is_folder:
                os.mkdir(victim)
            else:
                with open(victim, "w", encoding="utf-8") as file:
                    file.write("not to be touched")
            os.symlink(victim, path)
        elif plant == "directory":
            os.mkdir(path)
        else:
            os.mkfifo(path)
        worker = await self.burst(cell)
        below = [row for row in batch.rows if place(cell.cache, row[0]).startswith(path)] if name.startswith("v1/") else batch.rows
        if len(below) < len(batch.rows) // 2:
            # The others go on, whatever becomes of these.
            async def go_on():
                codes = (cell.redis("GET", cell.key("b", batch.name, "o")) or "").ljust(batch.total, "\0").encode("latin-1")
                return all(code or row in below for row, code in zip(batch.rows, codes))

            if not await cell.until(go_on, 10 + cell.wait_limit):
                cell.fail(f"URLs wait that have nothing to do with it: {await verdict.state_of(cell, batch)}; {last_words(worker)}")
        if kind.endswith("image"):
            # Another one is fetched, and nobody has to come.
            if not await cell.over(batch):
                cell.fail(f"{batch.name} waits for somebody to take it away: {last_words(worker)}")
        else:
            await asyncio.sleep(1.5)
        if plant == "symlink":
            unharmed = not os.listdir(victim) if is_folder else open(victim, encoding="utf-8").read() == "not to be touched"
            if not unharmed:
                cell.fail("what the link leads to was written to")
        if os.path.lexists(path) and planted(path, plant):
            (os.rmdir if plant == "directory" and not os.listdir(path) else shutil.rmtree if plant == "directory" else os.unlink)(path)
        put_back(aside, path)
        await self.recover(cell, worker, "what stood in the place of " + name)

    async def burst(self, cell):
        worker = await self.worker(cell)
        worker.is_ours = True
        return worker


def planted(path, plant):
    """Whether it is still there: a worker may have made what must be there in its place."""
    kinds = {"symlink": stat.S_ISLNK, "directory": stat.S_ISDIR, "fifo": stat.S_ISFIFO}
    return kinds[plant](os.lstat(path).st_mode)


def put_back(aside, path):
    """What stood there before the harness came; of a folder that was made anew, what it does not have."""
    if not os.path.lexists(aside):
        return
    if not os.path.lexists(path):
        os.rename(aside, path)
    elif os.path.isdir(aside) and os.path.isdir(path):
        for name in os.listdir(aside):
            put_back(os.path.join(aside, name), os.path.join(path, name))


async def there(hit, worker):
    return os.path.exists(hit) or worker.child.returncode is not None


def last_words(worker):
    with open(worker.log, encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log if line.strip() and not line.startswith("warning: Redis keeps no")]
    return " / ".join(lines[-2:])[:300]


def copy(source, target):
    """With its attributes and as it is: a cache is copied as cp -a does."""
    return shutil.copy2(source, target, follow_symlinks=False)
