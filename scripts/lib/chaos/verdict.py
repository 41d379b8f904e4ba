"""What has to be true when everything is healed."""

import concurrent.futures
import json
import os
import subprocess

import children
import reclaim

ROOT = "prefetch:{default}"


class Verdict:
    def __init__(self, world):
        self.world, self.failures = world, list(world.failures)
        self.counts = dict.fromkeys(("ok", "recovered", "lost", "duplicated", "unexpected", "cancelled"), 0)
        self.lines = []

    def check(self, what, found, wanted):
        if found != wanted:
            self.failures.append(f"{what}: {found}, expected {wanted}")

    def coord(self, *words):
        """Exit code and output of a command on this Redis."""
        command = [self.world.program("prefetch-coord"), *words]
        if words[0] != "cache":
            command += ["--redis", self.world.redis.url]
        # Not with a death signal, which follows the thread: these are started from a pool.
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=children.CLEAN
        )
        children.started.append(child)
        output, errors = child.communicate(timeout=300)
        with open(os.path.join(self.world.folder, "checks.log"), "ab") as log:
            log.write(f"$ {' '.join(words)}  -> {child.returncode}\n".encode() + errors)
        return child.returncode, output.decode()

    def run(self):
        world = self.world
        self.failures += world.workers.surprises
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            try:
                list(pool.map(self.batch, world.batches.all))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                children.end_all()
                raise
        code, text = self.coord("fsck", "--cache", world.cache)
        self.check("exit code of fsck" + ("" if code == 0 else ": " + text.strip()[-600:]), code, 0)
        code, text = self.coord("cache", "verify", "--cache", world.cache, "--json")
        damaged = json.loads(text)["damaged"] if text else "no answer"
        self.check("damaged files", damaged, [])
        self.litter()
        self.reclaims()
        return self

    def batch(self, batch):
        client = self.world.redis.client(5)
        state, finished, total, sealed = client("HMGET", f"{ROOT}:b:{batch.name}", "state", "finished", "total", "sealed")
        client.close()
        self.check(f"{batch.name}: seen with more finished than there are", batch.overflow, 0)
        if batch.slot and state == "cancelled":
            pass
        else:
            self.check(f"{batch.name}: state", (state, sealed), ("done", "1"))
            self.check(f"{batch.name}: finished", finished, total)
        self.check(f"{batch.name}: total", total, str(batch.total))
        words = ["fsck", batch.name, "--history", self.world.history, "--expect", batch.expect, "--json"]
        code, text = self.coord(*words)
        if not text:
            self.failures.append(f"{batch.name}: fsck --history ended with {code}, see checks.log")
            return
        past = json.loads(text)["history"][0]
        for name in self.counts:
            self.counts[name] += past[name]
        if code != 0:
            self.failures.append(f"{batch.name}: fsck --history: {text.strip()[:1500]}")
        # Of one that is not over, watch would wait for the end.
        if state != "running":
            self.events(batch)

    def events(self, batch):
        _, text = self.coord("watch", batch.name, "--json", "--from-start")
        events = [json.loads(line) for line in text.splitlines()]
        told = [event for event in events if event["event"] == "didPrefetchURL"]
        ends = [event for event in events if event["event"] == "completion"]
        self.check(f"{batch.name}: completion events", len(ends), 1)
        self.check(f"{batch.name}: counts told", [e["finishedCount"] for e in told], list(range(1, batch.total + 1)))
        if ends:
            self.check(f"{batch.name}: finished in the completion", ends[0]["finishedCount"], batch.total)
        poison = sum(event["outcome"] == "poison" for event in told)
        self.check(f"{batch.name}: poison", poison, batch.poisons)

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

    def reclaims(self):
        every, quiet = reclaim.times(self.world.history, self.world.workers.deaths, self.world.outages)
        for name, values in (("all", every), ("Redis was there all the time", quiet)):
            if values:
                p50, p99 = reclaim.share(values, 50), reclaim.share(values, 99)
                self.lines.append(f"{name}: {len(values)} deaths, p50 {p50:.1f} s, p99 {p99:.1f} s, longest {values[-1]:.1f} s")
