"""What Redis and a cache have of a batch, and what has to agree in it (docs/PROTOCOL.md, docs/CACHE.md)."""

import collections
import hashlib

OUTCOMES = "open downloaded hit notModified blacklisted httpError timeout dns connect tls badImage tooLarge refused invalidURL truncated poison"
OUTCOMES = (OUTCOMES + " cancelled notCached mismatch unsupported notStored").split()
IMAGE = {"downloaded", "hit"}


def outcome(code):
    return OUTCOMES[code] if code < len(OUTCOMES) else str(code)


def place(cache, url):
    """The path of a URL's image."""
    digits = hashlib.sha256(url.encode()).hexdigest()
    return f"{cache}/v1/{digits[0]}/{digits[1]}/{digits[2:]}"


def disagreements(about, codes, workers):
    """What is wrong with the counts of a batch, beside its outcomes: its own, and the sums of its workers. Each counts a URL once."""
    counts = dict(collections.Counter(f"o{code}" for code in codes if code))
    said = {name: int(value) for name, value in about.items() if name[0] == "o" and name[1:].isdigit() and value != "0"}
    if said != counts:
        yield f"the batch counts {said}, its outcomes are {counts}"
    sums = collections.Counter()
    for name, value in workers.items():
        sums["o" + name.rsplit(":", 1)[1]] += int(value)
    del sums["obytes"]
    if {name: number for name, number in sums.items() if number} != counts:
        yield f"the sums of its workers are {dict(sums)}, its outcomes {counts}"
    wanted = sum(counts.values()), sum(code > 3 for code in codes)
    found = int(about.get("finished", 0)), int(about.get("skipped", 0))
    if found != wanted:
        yield f"finished and skipped are {found}, its outcomes say {wanted}"


def misreported(events, total):
    """What is wrong with the events of a batch, that may have been followed from its start: 1 to n, then one end."""
    numbers = [event["finishedCount"] for event in events if event["event"] == "didPrefetchURL"]
    ends = [event["finishedCount"] for event in events if event["event"] == "completion"]
    if numbers != list(range(1, total + 1)):
        yield f"tells {len(numbers)} URLs of {total}, not 1 to {total}"
    if ends != [total]:
        yield f"tells the ends {ends}, not one with {total}"
