"""Short runs of a queue that together make every script run. Which script is in which of them nobody writes down: a run without a fault
tells. A scenario ends with the verdict on its batches, which is not here."""

import copy
import shutil
import zlib

from outcomes import IMAGE

SCENARIOS = {}


def scenario(run):
    SCENARIOS[run.__name__] = run
    return run


@scenario
async def run(cell):
    """Two workers, a batch with planted outcomes, somebody who watches it, and the pages of status."""
    batch = cell.batch("run")
    await cell.worker()
    await cell.worker()
    await cell.submit(batch, "--priority", "high", "--max-per-host", "4")
    await cell.watch(batch)
    await cell.do("status")
    await cell.do("status", batch.name)
    await cell.dash()


@scenario
async def full(cell):
    """A list that a full Redis takes no job of at first: its feeder says that it is there, and goes on when there is room."""
    batch = cell.batch("full")
    cell.proxy.full["PUSH"] = 8
    await cell.worker()
    await cell.submit(batch)


@scenario
async def control(cell):
    """Pauses of a batch, the queue and a worker, another priority, and settings of all workers, while they fetch."""
    batch = cell.batch("control", slow=10)
    worker = await cell.worker()
    await cell.worker()
    await cell.submit(batch, "--priority", "low")
    await cell.finished(batch, 8)
    await cell.do("pause", batch.name)
    await cell.do("set", batch.name, "--priority", "high", "--order", "lifo")
    await cell.do("resume", batch.name)
    await cell.do("set", "--all", "--max-concurrent-downloads", "3")
    await cell.do("pause", "--all")
    await cell.do("resume", "--all")
    await cell.do("set", "--all", "--default")
    if worker.child.returncode is None and cell.redis("ZSCORE", cell.key("workers"), worker.name):
        # One that was told LOST has another name meanwhile.
        await cell.do("pause", "--worker", worker.name, good=(0, 3, 66))
        await cell.do("resume", "--worker", worker.name, good=(0, 3, 66))


@scenario
async def ends(cell):
    """Batches that end early: by their slot, by hand and by a deadline, without a worker; then one is removed."""
    first, second, due, gone = (cell.batch(name, good=8, slow=0) for name in ("first", "second", "due", "gone"))
    for batch in (first, second, due):
        batch.ends = "cancelled"
    await cell.submit(first, "--slot", "s")
    await cell.submit(second, "--slot", "s")
    await cell.do("cancel", second.name, "--yes")
    await cell.submit(gone)
    await cell.do("cancel", gone.name, "--yes")
    await cell.do("rm", gone.name, "--yes", later=(66,))
    cell.batches.remove(gone)
    if cell.redis("EXISTS", cell.key("b", gone.name)):
        cell.fail("a batch that was removed is still there")
    await cell.submit(due, "--deadline", "2s")

    async def is_due():
        await cell.do("status", due.name)
        return cell.redis("HGET", cell.key("b", due.name), "state") == "cancelled"

    if not await cell.until(is_due, 7 + cell.wait_limit):
        cell.fail("a batch whose deadline has passed still runs")


@scenario
async def listed(cell):
    """URLs put onto the blacklist by hand, one of them taken off again."""
    batch = cell.batch("listed", good=20, slow=0, bad=False)
    rows = batch.rows
    named = [rows[0][0], rows[5][0], rows[9][0]]
    await cell.do("blacklist", "add", *named)
    await cell.do("blacklist", "rm", named[2], good=(0, 1, 3))
    # Where the list itself cannot be read, they are asked for as others are.
    may = {"blacklisted"} | (IMAGE if cell.fault.kind in ("type", "lost") else set())
    batch.rows = [(url, may, row[2], True) if url in named[:2] else row for row in rows for url in [row[0]]]
    await cell.worker()
    await cell.submit(batch)


@scenario
async def death(cell):
    """A worker is killed with jobs in its hands; another one has to get them."""
    batch = cell.batch("death", good=20, slow=8)
    worker = await cell.worker()
    await cell.submit(batch)
    await cell.finished(batch, 4)
    await cell.worker()
    await cell.kill(worker)


@scenario
async def leaving(cell):
    """A worker is told to leave with jobs in its hands; another one goes on."""
    batch = cell.batch("leaving", good=20, slow=16)
    worker = await cell.worker("--max-concurrent-downloads", "2")
    await cell.submit(batch)
    await cell.finished(batch, 4)
    await cell.worker()
    await cell.leave(worker)


@scenario
async def unstored(cell):
    """One file cannot get its name on a disk that takes the others: its URL goes back, and is fetched again."""
    batch = cell.batch("unstored", good=16, slow=0, bad=False)
    await cell.submit(batch)
    faults = {"FAULT_ROOT": cell.cache, "FAULT_CALL": "linkat", "FAULT_FROM": "6", "FAULT_COUNT": "1", "FAULT_DO": "5"}
    await cell.worker(variables={"LD_PRELOAD": cell.world.file_faults, **faults})


@scenario
async def together(cell):
    """Two batches of the same pages that are gone, and two workers that wait for one another: one request for each page."""
    first, second = (cell.batch(name, good=4, slow=0, gone=6, bad=False) for name in ("first", "second"))
    # Whoever comes later may find them on the list.
    first.rows = [(url, may if may == IMAGE else may | {"blacklisted"}, digest, listed) for url, may, digest, listed in first.rows]
    second.rows = first.rows
    shutil.copy(first.list, second.list)
    await cell.submit(first, "--job-size", "32")
    await cell.submit(second, "--job-size", "32")
    # Each gets a batch, and they come to the same pages at the same time.
    await cell.do("pause", "--all")
    for _ in range(2):
        await cell.worker("--max-concurrent-downloads", "2")

    async def are_there():
        return cell.redis("ZCARD", cell.key("workers")) >= 2

    await cell.until(are_there, cell.wait_limit)
    await cell.do("resume", "--all")


@scenario
async def suspects(cell):
    """Jobs that ended three workers, as far as Redis knows, of one URL and of four; and one whose bytes are no job's."""
    jobs, singles = cell.batch("jobs", good=12, slow=0), cell.batch("singles", good=16, first=12, slow=0, bad=False)
    await cell.submit(jobs)
    await cell.submit(singles, "--job-size", "1")
    await cell.plant("HSET", cell.key("b", jobs.name, "tries"), f"{jobs.name}:0:4", 3)
    # One whose URL stands in the list once: the others may make it a hit, which no decoder sees.
    urls = [row[0] for row in singles.rows]
    alone = next(index for index, url in enumerate(urls) if urls.count(url) == 1)
    await cell.plant("HSET", cell.key("b", singles.name, "tries"), f"{singles.name}:{alone}:1", 3)
    body = f"1\t{jobs.rows[0][0]}\n"
    wrong = zlib.crc32(body.encode()) ^ 1
    await cell.plant("RPUSH", cell.key("jobs", jobs.name), f"prefetch-job 1 {jobs.name}:0:1 {wrong:08x}\n{body}")
    await cell.worker()
    await cell.worker()


@scenario
async def hosts(cell):
    """A rate for each host, robots.txt, and a host that says 503 to everything."""
    # A worker asks such a host again after 1, 2, 4 … s, so each more of its URLs may double the time.
    batch = cell.batch("hosts", good=20, slow=0, down=3, bad=False)
    await cell.worker()
    await cell.submit(batch, "--rate-per-host", "100", "--robots", "--tries", "1")


@scenario
async def healing(cell):
    """A queue that has lost almost everything that belongs to no batch, and a batch that has lost one of its jobs."""
    batch, half = cell.batch("healing", good=20, slow=4), cell.batch("half", good=12, slow=0, bad=False)
    await cell.submit(batch)
    await cell.submit(half)
    await cell.plant("LPOP", cell.key("jobs", half.name))
    name = batch.name
    worker = await cell.worker("--max-concurrent-downloads", "1")

    async def has_jobs():
        keys = cell.redis("KEYS", cell.key("own", "*").replace("{", "\\{"))
        for key in keys:
            if any(field[:1] != "#" for field in cell.redis("HKEYS", key)):
                return True
        return False

    # One that dies and is forgotten: its claims are nobody's.
    await cell.until(has_jobs, cell.wait_limit)
    await cell.kill(worker)
    await cell.plant("DEL", cell.key("workers"))
    await cell.plant("LPUSH", cell.key("jobs", name), "no job at all")
    await cell.plant("SET", cell.key("slots"), "no hash")
    await cell.plant("DEL", cell.key("bell"))
    await cell.plant("DEL", cell.key("ready", "normal"))
    await cell.plant("SREM", cell.key("running"), name)
    await cell.plant("ZREM", cell.key("batches"), name)
    await cell.do("fsck", good=(1,))
    await cell.worker()
    await cell.worker()

    async def is_named():
        _, text = await cell.command("status", around=True)
        return f"{half.name} cannot end" in text

    if not await cell.until(is_named, 30 + cell.wait_limit):
        cell.fail(f"status does not name {half.name}, which has lost a job")
        return
    await cell.do("rm", half.name, "--force", "--yes", good=(0,), later=(66,))
    cell.anew.add(half.name)
    await cell.submit(half)
    # Where a key of the queue is wrong, the check ends with that.
    await cell.do("fsck", good=(0, 1))


@scenario
async def retry(cell):
    """What a batch skipped is fetched again, and is skipped again."""
    batch = cell.batch("retry", good=8, slow=0)
    await cell.worker()
    await cell.submit(batch)
    if not await cell.over(batch):
        return
    await cell.do("retry", batch.name, "--quiet", good=(0, 3, 66))
    name = cell.redis("HGET", cell.key("b", batch.name), "retried_by")
    if not name:
        cell.fail("a batch was retried, and does not say by which")
        return
    again = copy.copy(batch)
    again.name, again.rows = name, [row for row in batch.rows if row[1] != IMAGE]
    cell.batches.append(again)
    cell.names.append(again.name)
    if cell.redis("HGET", cell.key("b", again.name), "sealed") != "1":
        # The retry was opened, and its reply lost: it is gone on with.
        await cell.do("retry", batch.name, "--quiet")
