"""Stands in for a decoder that crashes. A good decoder cannot be made to, so whoever gets a planted picture is killed with -9 while it
decodes it: under its mark where it has set one, as the crash would."""

import socket
import threading
import time

from resp import Away

HOST = socket.gethostname()


class Poison:
    def __init__(self, world, lines):
        self.world = world
        threading.Thread(target=self.listen, args=(lines,), daemon=True).start()

    def listen(self, lines):
        for line in lines:
            path, _, agent = line.decode().strip().partition(" ")
            if path in self.world.poisons:
                serial = int(agent.removeprefix("worker-"))
                threading.Thread(target=self.crash, args=(path, serial), daemon=True).start()

    def crash(self, path, serial):
        pid = self.world.workers.pid(serial)
        job = self.world.poisons[path]
        if pid is None:
            return
        client = self.world.redis.client(0.1)
        # A worker that was lost goes on as host:pid.1 and so on.
        names = [f"{HOST}:{pid}"] + [f"{HOST}:{pid}.{n}" for n in range(1, 30)]
        asked = [("HGET", f"prefetch:{{default}}:own:{name}", "#mark") for name in names]
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            try:
                # The mark names a claim, job@nonce.
                if any(mark and mark.split("@")[0] == job for mark in client.many(asked)):
                    if self.world.workers.kill_serial(serial):
                        self.world.count("worker kill -9 under its mark, by a planted picture")
                    client.close()
                    return
            except Away:
                pass
            time.sleep(0.001)
        client.close()
        if self.world.workers.kill_serial(serial):
            self.world.count("worker kill -9 by a planted picture, not marked yet")
