"""A redis-server with an append-only file, which can be killed with the loss of its last second."""

import glob
import os
import signal
import time

import processes
from resp import Away, Client


class Server:
    def __init__(self, folder, isWitnessed=False, options=()):
        self.options = options
        self.folder = os.path.join(folder, "redis")
        os.makedirs(self.folder, exist_ok=True)
        self.socket = os.path.join(folder, "redis.sock")
        # Where it listens first. Whoever has a witness has that move it to `socket`.
        self.door = self.socket + ".new" if isWitnessed else self.socket
        self.log = os.path.join(folder, "redis.log")
        self.url = "unix://" + self.socket
        self.child = None
        self.sizes = []
        self.cut = 0

    def client(self, wait_limit=1.0, path=None):
        return Client(path or self.socket, wait_limit)

    def start(self):
        words = ["redis-server", "--port", "0", "--unixsocket", self.door, "--unixsocketperm", "700", "--save", ""]
        words += ["--appendonly", "yes", "--appendfsync", "everysec", "--daemonize", "no", "--dir", self.folder]
        self.child = processes.start([*words, *self.options], self.log)
        self.sizes = []

    def wait(self, seconds=30):
        client = self.client()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                client("PING")
                client.close()
                return
            except Away:
                time.sleep(0.01)
        raise RuntimeError("redis-server does not answer, see " + self.log)

    def tail(self):
        """The file that grows."""
        files = glob.glob(os.path.join(self.folder, "appendonlydir", "*.incr.aof"))
        return max(files, key=os.path.getmtime) if files else None

    def look(self):
        """Notes how large the append-only file is: called many times a second."""
        path = self.tail()
        if path:
            now = time.monotonic()
            self.sizes.append((now, path, os.path.getsize(path)))
            if len(self.sizes) > 400:
                del self.sizes[:200]

    def kill(self, loses):
        """kill -9. With `loses` (seconds) what was written since then is cut off, in the middle of a command too: what a machine that
        dies with it leaves of a file that is synced once a second."""
        self.child.kill()
        self.child.wait()
        path = self.tail()
        if not path or not loses:
            return 0
        now = time.monotonic()
        before = [size for at, name, size in self.sizes if name == path and at <= now - loses]
        size = os.path.getsize(path)
        keep = before[-1] if before else size
        if keep < size:
            os.truncate(path, keep)
            self.cut += 1
        return size - keep

    def freeze(self):
        self.child.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.child.send_signal(signal.SIGCONT)

    def stop(self):
        self.child.terminate()
        self.child.wait(20)
