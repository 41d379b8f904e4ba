"""The faults, in an order that a seed decides."""

import time

from resp import Away

LEASE = 2.0


class Storm:
    def __init__(self, world):
        self.world, self.random = world, world.random
        # Seconds between two of a kind, on average.
        self.faults = [
            (1.0, self.kill_worker), (6.0, self.freeze_worker), (6.0, self.kill_redis), (20.0, self.freeze_redis),
            (4.0, self.kill_coordinator), (3.0, self.flush_scripts), (2.0, self.kill_clients),
        ]
        now = time.monotonic()
        self.due = [now + self.pause(mean) for mean, _ in self.faults]
        self.redis_back_at = self.redis_thaws_at = None
        self.client = world.redis.client(0.2)

    def pause(self, mean):
        return self.random.uniform(0.4, 1.6) * mean

    def step(self):
        now = time.monotonic()
        self.mend(now)
        for number, (mean, fault) in enumerate(self.faults):
            if now >= self.due[number]:
                fault()
                self.due[number] = now + self.pause(mean)

    def mend(self, now):
        if self.redis_back_at and now >= self.redis_back_at:
            self.world.redis.start()
            self.redis_back_at = None
        if self.redis_thaws_at and now >= self.redis_thaws_at:
            self.world.redis.thaw()
            self.redis_thaws_at = None

    def end(self):
        """Everything that is down comes back."""
        self.mend(float("inf"))

    @property
    def redis_is_there(self):
        return not self.redis_back_at and not self.redis_thaws_at

    def kill_worker(self):
        # Now and then one that is frozen: it never learns that it was lost.
        worker = self.world.workers.choose(self.random, frozen=self.random.random() < 0.1)
        if worker and self.world.workers.kill(worker):
            self.world.count("worker kill -9")

    def freeze_worker(self):
        worker = self.world.workers.choose(self.random, frozen=False)
        if worker:
            self.world.workers.freeze(worker, LEASE + self.random.uniform(1.0, 3.0))

    def kill_redis(self):
        if not self.redis_is_there:
            return
        loses = self.random.uniform(0, 1) if self.random.random() < 0.5 else 0
        lost = self.world.redis.kill(loses)
        self.world.count("Redis kill -9" + (", the end of its file lost" if lost else ""))
        away = self.random.uniform(0, 0.3) if self.random.random() < 0.75 else self.random.uniform(0.3, 2)
        self.redis_back_at = time.monotonic() + away

    def freeze_redis(self):
        if self.redis_is_there:
            self.world.redis.freeze()
            self.world.count("Redis frozen, then thawed")
            self.redis_thaws_at = time.monotonic() + self.random.uniform(0.3, 3)

    def kill_coordinator(self):
        feeding = self.world.batches.feeding()
        if feeding:
            self.random.choice(feeding).coordinator.kill()
            self.world.count("coordinator kill -9 while it feeds, then submit --resume")

    def flush_scripts(self):
        self.command("SCRIPT FLUSH", "SCRIPT", "FLUSH", "SYNC")

    def kill_clients(self):
        self.command("CLIENT KILL of every connection", "CLIENT", "KILL", "USER", "default", "SKIPME", "yes")

    def command(self, name, *words):
        if not self.redis_is_there:
            return
        try:
            self.client(*words)
            self.world.count(name)
        except Away:
            pass
