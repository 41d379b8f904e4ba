"""Batches with a planted outcome for every line, and the coordinators that feed them."""

import os
import signal
import time

import processes
from resp import Away

ROOT = "prefetch:{default}"


class Batch:
    """A list, what each of its lines has to end as, and who feeds it."""

    def __init__(self, world, number):
        self.world, self.name = world, f"chaos-{number}"
        random = world.random
        self.slot = f"slot{random.randrange(2)}" if number % 6 == 5 else None
        self.list = os.path.join(world.folder, "lists", self.name + ".txt")
        # Small windows: the coordinator has to live for most of its batch, and can be killed.
        self.words = ["--job-size", str(random.choice([2, 4, 8, 20])), "--window", str(random.choice([1, 1, 2, 4]))]
        self.words += ["--priority", random.choice(["high", "normal", "normal", "low"])]
        self.words += ["--order", random.choice(["fifo", "fifo", "lifo"]), "--keep", "0"]
        self.coordinator, self.again_at, self.feeds, self.resumes = None, 0, 0, 0
        self.state, self.finished, self.overflow = None, 0, 0
        self.poisons, self.is_sealed, self.over_at = 0, False, None
        # URL and outcome of each entry.
        self.rows = []
        self.write(number, random)

    def write(self, number, random):
        world = self.world
        good, bad = world.good_url, world.bad_url
        lines = [(f"{good}/{random.choice(world.pictures)}?{self.name}-{n}", "downloaded") for n in range(random.randrange(150, 500))]
        # The same for all batches, so mostly hits, and each twice.
        lines += [(f"{good}/{name}", "downloaded") for name in random.sample(world.pictures, 20)] * 2
        kinds = {"404": "httpError", "cut": "truncated", "html": "badImage", "reset": "truncated", "flap": "downloaded", "503": "httpError"}
        for kind, outcome in kinds.items():
            host = world.down_url if kind == "503" else bad
            lines += [(f"{host}/fault/{kind}/{self.name}-{n}.jpg", outcome) for n in range(random.randrange(1, 6))]
        # What keeps the workers busy without keeping the processors busy.
        lines += [(f"{bad}/fault/slow/{self.name}-{n}.jpg", "downloaded") for n in range(random.randrange(20, 80))]
        lines += [(f"{bad}/fault/404/{self.name}-0.jpg", "httpError")]
        lines += [("no URL at all", "invalidURL"), (f"http://127.0.0.1:{world.closed_port}/{self.name}.png", "connect")]
        lines += [("http://10.1.2.3/a.png", "refused")]
        if number % 3 == 1:
            lines += [(f"{bad}/fault/stall/{self.name}.jpg", "timeout")]
        planted = number % 4 == 2 and not self.slot
        if planted:
            lines += [(f"{world.poison_url}?{self.name}", "poison")]
        random.shuffle(lines)
        self.rows = lines
        with open(self.list, "w") as urls:
            for index, (url, outcome) in enumerate(lines):
                # Lines that are no entries: line numbers are not indices.
                if random.random() < 0.02:
                    urls.write(random.choice(["\n", "# a comment\n"]))
                urls.write(url + "\n")
                if outcome == "poison":
                    world.poisons[f"/poison.png?{self.name}"] = f"{self.name}:{index}:1"
                    self.poisons += 1

    @property
    def total(self):
        return len(self.rows)

    @property
    def is_over(self):
        return self.state in ("done", "cancelled")

    def look(self, reply, now):
        """What Redis has now; starts the coordinator that is needed."""
        state, sealed, finished, total = reply
        if finished is not None and total is not None and int(finished) > int(total):
            self.overflow += 1
        self.state, self.finished, self.is_sealed = state, int(finished or 0), sealed == "1"
        if self.coordinator is not None:
            code = self.coordinator.poll()
            if code is None:
                return
            self.coordinator, self.again_at = None, now + 0.2
            # 69 Redis is away, 66 and 78: what is there is not what this coordinator thought; the next reading decides anew.
            if code not in (0, 66, 69, 78, -signal.SIGKILL):
                self.world.failures.append(f"a coordinator of {self.name} ended with {code}, see coordinators.log")
        if now < self.again_at or self.is_over or sealed == "1":
            return
        words = ["submit", self.list, *self.words, "--redis", self.world.redis.url, "--quiet"]
        if state is None:
            words += ["--name", self.name, "--timeout", "3s", "--connect-timeout", "3s"]
            words += ["--slot", self.slot] if self.slot else []
        else:
            words += ["--resume"]
            self.resumes += 1
        self.feeds += 1
        log = os.path.join(self.world.folder, "coordinators.log")
        self.coordinator = processes.start([self.world.program("prefetch-coord"), *words], log)


class Batches:
    def __init__(self, world, at_once):
        self.world, self.at_once, self.all, self.active = world, at_once, [], []
        self.client = world.redis.client()
        self.next_at = 0
        self.isOpen = True

    def step(self):
        """Looks at every batch that Redis may still change its mind about, and submits the next one."""
        now = time.monotonic()
        try:
            replies = self.client.many(
                [("HMGET", f"{ROOT}:b:{batch.name}", "state", "sealed", "finished", "total") for batch in self.active]
            )
        except Away:
            return
        for batch, reply in zip(self.active, replies):
            batch.look(reply, now)
            if batch.is_over and batch.over_at is None:
                batch.over_at = now
            elif not batch.is_over:
                batch.over_at = None
        # A batch that has been over for 5 s is beyond what a crash of Redis can undo.
        self.active = [b for b in self.active if not (b.over_at and now - b.over_at > 5 and b.coordinator is None)]
        unsealed = sum(not batch.is_over and not batch.is_sealed for batch in self.active)
        running = sum(not batch.is_over for batch in self.active)
        if self.isOpen and running < 3 * self.at_once and unsealed < self.at_once and now >= self.next_at:
            batch = Batch(self.world, len(self.all) + 1)
            self.all.append(batch)
            self.active.append(batch)
            self.next_at = now + self.world.random.uniform(0.3, 1.5)

    @property
    def finished(self):
        return sum(batch.finished for batch in self.all)

    def feeding(self):
        return [batch for batch in self.active if batch.coordinator is not None and batch.coordinator.poll() is None]

    def are_over(self):
        return all(batch.is_over and batch.coordinator is None for batch in self.active)
