"""What has to be true when everything is healed: by the bytes in Redis and the files in the cache, and by what the commands say."""

import collections
import concurrent.futures
import json
import os
import subprocess

import processes
from outcomes import IMAGE, disagreements, misreported, outcome, place

ROOT = "prefetch:{default}"


class Verdict:
    def __init__(self, world):
        self.world, self.failures = world, world.failures + world.witness.failures
        self.counts = collections.Counter()

    def check(self, what, found, wanted):
        if found != wanted:
            self.failures.append(f"{what}: {found}, expected {wanted}")

    def coord(self, *words):
        """Exit code and output of a command on this Redis."""
        command = [self.world.program("prefetch-coord"), *words]
        if words[0] != "cache":
            command += ["--redis", self.world.redis.url]
        # Not with a death signal, which follows the thread: these are started from a pool.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=processes.CLEAN, timeout=300, check=False)
        with open(os.path.join(self.world.folder, "checks.log"), "ab") as log:
            log.write(f"$ {' '.join(words)}  -> {done.returncode}\n".encode() + done.stderr)
        return done.returncode, done.stdout.decode()

    def run(self):
        world = self.world
        self.failures += world.workers.surprises
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(self.batch, world.batches.all))
        code, text = self.coord("fsck", "--cache", world.cache)
        self.check("exit code of fsck" + ("" if code == 0 else ": " + text.strip()[-600:]), code, 0)
        code, text = self.coord("cache", "verify", "--cache", world.cache, "--json")
        damaged = json.loads(text)["damaged"] if text else "no answer"
        self.check("damaged files", damaged, [])
        self.litter()
        return self

    def batch(self, batch):
        client, key = self.world.redis.client(5), f"{ROOT}:b:{batch.name}"
        about, codes, workers = client.many([("HGETALL", key), ("GET", key + ":o"), ("HGETALL", key + ":w")])
        client.close()
        codes = [ord(letter) for letter in (codes or "").ljust(batch.total, "\0")]
        found = [outcome(code) for code in codes]
        state = about.get("state")
        self.check(f"{batch.name}: seen with more finished than there are", batch.overflow, 0)
        if not (batch.slot and state == "cancelled"):
            self.check(f"{batch.name}: state", (state, about.get("sealed")), ("done", "1"))
            self.check(f"{batch.name}: open", found.count("open"), 0)
        self.check(f"{batch.name}: total and outcomes", (about.get("total"), len(found)), (str(batch.total), batch.total))
        self.failures += [f"{batch.name}: {text}" for text in disagreements(about, codes, workers)]
        wrong = []
        for index, ((url, planted), name) in enumerate(zip(batch.rows, found)):
            if name in IMAGE:
                self.picture(batch, url)
            if name not in (IMAGE if planted in IMAGE else {planted}) and not (name == "open" and state == "cancelled"):
                wrong.append(f"index {index} ({url}): {name}, expected {planted}")
        self.check(f"{batch.name}: not as planted", wrong[:5], [])
        self.counts.update("cancelled" if name == "open" and state == "cancelled" else name for name in found)
        # Of one that is not over, watch would wait for the end.
        if state in ("done", "cancelled"):
            self.events(batch, found)

    def picture(self, batch, url):
        try:
            with open(place(self.world.cache, url), "rb") as file:
                isWhole = file.read() == self.world.sent(url)
        except OSError:
            isWhole = False
        self.check(f"{batch.name}: {url} is in the cache as it was sent", isWhole, True)

    def events(self, batch, found):
        _, text = self.coord("watch", batch.name, "--json", "--from-start")
        events = [json.loads(line) for line in text.splitlines()]
        self.failures += [f"{batch.name}: watch --from-start {text}" for text in misreported(events, batch.total)]
        told = [event for event in events if event["event"] == "didPrefetchURL"]
        ended = ((url, "cancelled" if name == "open" else name) for (url, _), name in zip(batch.rows, found))
        other = collections.Counter((event["url"], event["outcome"]) for event in told) - collections.Counter(ended)
        self.check(f"{batch.name}: told, and not so in Redis", list(other)[:5], [])

    def litter(self):
        world = self.world
        client = world.redis.client(5)
        keys = client("KEYS", f"{ROOT}:*")
        for kind in ("own:", "jobs:", "ready:", "bell", "workers", "running", "dead", "slots"):
            self.check(f"keys {kind} left", [k for k in keys if k.startswith(f"{ROOT}:{kind}")], [])
        self.check("tries left", [k for k in keys if k.endswith(":tries")], [])
        registered = {k for k in keys if k.startswith(f"{ROOT}:w:") and client("HGET", k, "state") == "running"}
        if world.redis.cut == 0:
            # One that Redis forgot before it left says `running` for its day; it is not registered.
            self.check("workers that are said to run", sorted(registered), [])
        client.close()
        temporary = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(world.cache)
            for name in names
            if name.startswith((".t-", ".tmp"))
        ]
        self.check("temporary files left", temporary, [])
