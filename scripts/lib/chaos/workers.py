"""Four workers under a supervisor that starts a new one for each that dies."""

import os
import signal
import threading
import time

import processes


class Worker:
    def __init__(self, serial, child):
        self.serial, self.child, self.frozen_until = serial, child, None
        self.killed_by_us = False


class Workers:
    """`step` starts and thaws; signals may come from any thread."""

    def __init__(self, world, count):
        self.world, self.count, self.serial = world, count, 0
        self.running, self.lock = [], threading.RLock()
        self.surprises = []
        self.stopping = False

    def start(self):
        self.serial += 1
        world = self.world
        words = [world.program("prefetch-worker"), "--redis", world.redis.url, "--cache", world.cache, "--quiet"]
        words += ["--lease", "2s", "--allow-net", "127.0.0.0/8", "--max-concurrent-downloads", "8"]
        words += ["--drain-timeout", "5s"]
        # By this the origin tells who asked for a picture.
        words += ["-H", f"User-Agent: worker-{self.serial}"]
        log = os.path.join(world.folder, "workers.log")
        with self.lock:
            self.running.append(Worker(self.serial, processes.start(words, log)))

    def step(self):
        with self.lock:
            now = time.monotonic()
            for worker in list(self.running):
                if worker.frozen_until and now >= worker.frozen_until:
                    self.thaw(worker)
                code = worker.child.poll()
                if code is None:
                    continue
                self.running.remove(worker)
                if not worker.killed_by_us and not (self.stopping and code == 0):
                    self.surprises.append(f"worker {worker.child.pid} ended by itself with {code}")
            missing = 0 if self.stopping else self.count - len(self.running)
        for _ in range(missing):
            self.start()

    def choose(self, random, frozen):
        """One of those that run, or None."""
        with self.lock:
            able = [w for w in self.running if w.child.poll() is None and (frozen or not w.frozen_until)]
            return random.choice(able) if able else None

    def kill(self, worker):
        with self.lock:
            if worker.child.poll() is not None:
                return False
            worker.killed_by_us = True
            worker.child.kill()
            return True

    def kill_serial(self, serial):
        with self.lock:
            for worker in self.running:
                if worker.serial == serial:
                    return self.kill(worker)
        return False

    def pid(self, serial):
        with self.lock:
            return next((w.child.pid for w in self.running if w.serial == serial), None)

    def freeze(self, worker, seconds):
        with self.lock:
            worker.child.send_signal(signal.SIGSTOP)
            worker.frozen_until = time.monotonic() + seconds

    def thaw(self, worker):
        if worker.child.poll() is None:
            worker.child.send_signal(signal.SIGCONT)
            self.world.count("worker frozen past its lease, then thawed")
        worker.frozen_until = None

    def stop(self):
        """All leave in order."""
        self.stopping = True
        with self.lock:
            for worker in self.running:
                if worker.frozen_until:
                    self.thaw(worker)
                worker.child.terminate()
        end = time.monotonic() + 30
        while self.running and time.monotonic() < end:
            self.step()
            time.sleep(0.02)
        for worker in self.running:
            self.surprises.append(f"worker {worker.child.pid} did not leave within 30 s of SIGTERM")
