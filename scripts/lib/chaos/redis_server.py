"""A redis-server with an append-only file, which can be killed with the loss of its last second; and a client of it."""

import glob
import os
import signal
import socket
import time

import children


class Away(Exception):
    """Redis did not answer."""


class Client:
    """Commands over a Unix socket, connected anew after every failure."""

    def __init__(self, path, patience=1.0):
        self.path, self.patience, self.file, self.socket = path, patience, None, None

    def __call__(self, *words):
        return self.many([words])[0]

    def many(self, commands):
        try:
            if self.file is None:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.settimeout(self.patience)
                self.socket.connect(self.path)
                self.file = self.socket.makefile("rb")
            data = b""
            for words in commands:
                data += b"*%d\r\n" % len(words)
                for word in words:
                    word = word if isinstance(word, bytes) else str(word).encode()
                    data += b"$%d\r\n%s\r\n" % (len(word), word)
            self.socket.sendall(data)
            return [self.reply() for _ in commands]
        except (OSError, ValueError) as error:
            self.close()
            raise Away(str(error)) from error

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection ended")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            # LOADING and its like: as good as away.
            raise OSError(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"$":
            if int(text) < 0:
                return None
            value = self.file.read(int(text) + 2)
            if len(value) != int(text) + 2:
                raise OSError("the connection ended")
            return value[:-2].decode(errors="replace")
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        return text.decode()

    def close(self):
        for thing in (self.file, self.socket):
            if thing is not None:
                thing.close()
        self.file = self.socket = None


class Server:
    def __init__(self, folder, isWitnessed=False):
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
        self.away = []

    def client(self, patience=1.0, path=None):
        return Client(path or self.socket, patience)

    def start(self):
        words = ["redis-server", "--port", "0", "--unixsocket", self.door, "--unixsocketperm", "700", "--save", ""]
        words += ["--appendonly", "yes", "--appendfsync", "everysec", "--daemonize", "no", "--dir", self.folder]
        self.child = children.start(words, self.log)
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
