"""How long the jobs of a killed worker waited for another, from the histories."""

import collections
import glob
import os


def items(text):
    return [] if text in ("-", "over") else [int(item.split("=")[0]) for item in text.split(",")]


def times(folder, deaths, outages):
    """Seconds from each death to the claim by another process of the last job that the dead one had, `(all, without outages)`: the second
    only where Redis was there from a second before the death to that claim. A job counts that had an open URL of which Redis had not
    confirmed the outcome to the dead; not one that nobody claimed again, since its batch was over or others had it already.
    """
    pids = {pid for pid, _ in deaths}
    claims = collections.defaultdict(list)
    held = collections.defaultdict(dict)
    for path in glob.glob(os.path.join(folder, "*.history")):
        with open(path, encoding="utf-8", errors="replace") as lines:
            head = next(lines, "").rstrip("\n").split("\t")
            if len(head) < 6:
                continue
            pid = int(head[4])
            for line in lines:
                fields = line.rstrip("\n").split("\t")
                if len(fields) < 5 or not line.endswith("\n"):
                    continue
                at, kind, _, job = fields[:4]
                if kind == "claimed":
                    batch, base, count = job.rsplit(":", 2)
                    first, last = int(base), int(base) + int(count)
                    claims[batch].append((int(at) / 1000, pid, first, last))
                    if pid in pids:
                        held[pid][job] = set(range(first, last)) - set(items(fields[4]))
                elif kind == "confirmed" and pid in pids and job in held[pid]:
                    if fields[6] == "over":
                        held[pid].pop(job)
                    else:
                        held[pid][job] -= set(items(fields[6]))
    for list_of in claims.values():
        list_of.sort()
    everything, quiet = [], []
    for pid, died in deaths:
        last = None
        for job, open_ones in held.get(pid, {}).items():
            if not open_ones:
                continue
            batch, base, count = job.rsplit(":", 2)
            first, end = int(base), int(base) + int(count)
            for at, other, start, stop in claims[batch]:
                if at >= died and other != pid and start < end and stop > first:
                    last = max(last or 0, at)
                    break
        if last is None:
            continue
        everything.append(last - died)
        if not any(start < last and end > died - 1 for start, end in outages):
            quiet.append(last - died)
    return sorted(everything), sorted(quiet)


def share(values, percent):
    return values[min(len(values) - 1, len(values) * percent // 100)] if values else float("nan")
