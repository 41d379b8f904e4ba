"""What has to be true of a cell when its fault is over: from the bytes in Redis and the files in the cache, not from what a program says."""

import asyncio
import hashlib
import json
import os

import resp
from outcomes import IMAGE, disagreements, misreported, outcome, place


async def judge(cell):
    """Everything that is to be said of a cell after its scenario; adds to its failures."""
    isType = cell.fault.kind in ("type", "lost")
    for batch in list(cell.batches):
        if batch.ends == "cancelled" or await cell.over(batch):
            continue
        state = await state_of(cell, batch)
        code, text = await cell.command("fsck", around=True)
        if code == 0:
            cell.fail(f"{batch.name} hangs ({state}), and fsck says: {text.strip().splitlines()[-1:]}")
        elif not isType:
            cell.fail(f"{batch.name} hangs ({state}); fsck says: {text.strip()[:300]}")
        if not await cell.mend() or not await cell.over(batch):
            cell.fail(f"{batch.name} does not end when it is made again ({await state_of(cell, batch)}), " + await silent(cell))
    code, text = await cell.command("fsck", "--cache", cell.cache, around=True)
    if code != 0 and isType:
        # True is what it said: something was lost half way. The queue heals, and a batch is made again.
        if not await cell.mend():
            cell.fail("what fsck finds stays so")
        for batch in cell.batches:
            if batch.ends == "done" and not await cell.over(batch):
                cell.fail(f"{batch.name} hangs when it is made again ({await state_of(cell, batch)})")
        code, text = await cell.command("fsck", "--cache", cell.cache, around=True)
    if code != 0:
        cell.fail(f"fsck ended with {code}: {text.strip()[:400]}")
    for worker in list(cell.workers):
        await cell.leave(worker)
    if cell.fault.hit_at and not cell.fault.over.is_set():
        # It was the leaving that met it.
        await asyncio.wait_for(cell.fault.over.wait(), 60)
    for batch in cell.batches:
        await outcomes(cell, batch)
    await failed(cell)
    await files(cell)
    await litter(cell)
    for batch, child, log in cell.watches:
        try:
            code = await asyncio.wait_for(child.wait(), 15)
        except asyncio.TimeoutError:
            cell.fail(f"watch of {batch.name} does not end")
            continue
        if code in (0, 3):
            with open(log, encoding="utf-8") as lines:
                events(cell, batch, lines.read(), "the watcher")
        elif code not in (69, 70, 66, *((78,) if isType else ())) or not cell.fault.hit_at:
            cell.fail(f"watch of {batch.name} ended with {code}")
    for batch in cell.batches:
        if cell.redis("HGET", cell.key("b", batch.name), "state") not in ("done", "cancelled"):
            continue
        _, text = await cell.command("watch", batch.name, "--json", "--from-start", around=True)
        events(cell, batch, text, "watch --from-start")


async def state_of(cell, batch):
    try:
        m = cell.redis("HMGET", cell.key("b", batch.name), "state", "finished", "total", "sealed", "ready", "broken")
    except resp.Refused as error:
        return str(error)
    return f"{m[0]}, {m[1]} of {m[2]}" + ("" if m[3] == "1" else ", not sealed") + ("" if m[4] else ", not ready") + (f", {m[5]}" if m[5] else "")


async def silent(cell):
    code, _ = await cell.command("fsck", around=True)
    return f"fsck ends with {code}"


async def outcomes(cell, batch):
    key = cell.key("b", batch.name)
    about = cell.redis("HGETALL", key)
    codes = (cell.redis("GET", key + ":o") or "").ljust(batch.total, "\0").encode("latin-1")
    if about.get("state") != batch.ends:
        cell.fail(f"{batch.name} is {about.get('state')}, not {batch.ends}")
        return
    if int(about["total"]) != batch.total or len(codes) != batch.total:
        cell.fail(f"{batch.name} has {about['total']} URLs and {len(codes)} outcomes, not {batch.total}")
        return
    wrong = []
    for index, (url, may, _, listed) in enumerate(batch.rows):
        if listed and batch.name in cell.anew:
            # It ended so before its batch was lost, and is on the blacklist since.
            may = may | {"blacklisted"}
        found = outcome(codes[index])
        if found not in may and not (found == "open" and batch.ends == "cancelled"):
            wrong.append(f"{index} {found}, not {'|'.join(sorted(may))} ({url[-30:]})")
    if wrong:
        cell.fail(f"{batch.name}: {len(wrong)} outcomes are wrong, the first: {wrong[0]}")
    for text in disagreements(about, codes, cell.redis("HGETALL", key + ":w")):
        cell.fail(f"{batch.name}: {text}")
    skipped = sum(code > 3 for code in codes)
    details = cell.redis("HLEN", key + ":skipped")
    if details != skipped and not cell.mended and cell.fault.kind not in ("type", "lost"):
        cell.fail(f"{batch.name}: {details} details of {skipped} skipped URLs")


async def failed(cell):
    planted = set().union(*(batch.failed for batch in cell.batches if batch.ends == "done"))
    listed = set(cell.redis("SMEMBERS", cell.key("failed")))
    more, less = listed - planted, planted - listed
    if more or (less and cell.fault.kind not in ("type", "lost")):
        cell.fail(f"the blacklist has {sorted(more)[:2]} too many, {sorted(less)[:2]} too few")


async def files(cell, more=()):
    """Every image is there, whole; there is nothing else."""
    wanted = {}
    for batch in cell.batches:
        if batch.ends == "done":
            wanted.update({place(cell.cache, url): digest for url, may, digest, _ in [*batch.rows, *more] if may == IMAGE})
    missing, other = [], []
    for path, digest in wanted.items():
        try:
            with open(path, "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != digest:
                    other.append(path)
        except OSError:
            missing.append(path)
    if missing:
        cell.fail(f"{len(missing)} images are not there, the first: {missing[0]}")
    if other:
        cell.fail(f"{len(other)} images are not what the origin sent, the first: {other[0]}")
    top = os.path.join(cell.cache, "v1")
    may = {place(cell.cache, url) for batch in cell.batches for url, _, _, _ in batch.rows}
    found = {os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names}
    if found - set(wanted) - may:
        cell.fail(f"files nobody named: {sorted(found - set(wanted) - may)[:2]}")


async def litter(cell):
    keys = [key[len(cell.root) + 1 :] for key in cell.redis("KEYS", cell.root.replace("{", "\\{") + ":*")]
    for start in ("own:", "jobs:", "ready:", "bell", "workers", "running", "slots"):
        left = [key for key in keys if key.startswith(start)]
        if start in ("own:", "workers") and (cell.fault.script in ("RELEASE", "JOIN", "HEAL") or any(worker.may_die for worker in cell.workers)):
            # A worker that left without a word lapses when somebody looks; what it has must be nothing.
            left = [key for key in left if start == "own:" and any(f[:1] != "#" for f in cell.redis("HKEYS", cell.key(key)))]
        if left:
            cell.fail(f"left in Redis: {left}")
    left = [key for key in keys if key.endswith(":tries") and not key.startswith("aside:")]
    if left:
        cell.fail(f"left in Redis: {left}")


def events(cell, batch, text, who):
    try:
        told = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        cell.fail(f"{who} of {batch.name} prints something that is no JSON")
        return
    for text in misreported(told, batch.total):
        cell.fail(f"{who} of {batch.name} {text}")
