"""An origin on every loopback address that answers after a delay and takes no more than so many connections: the first packets of others are
dropped. Called by auto.py: FOLDER DELAY CONNECTIONS (0: any); prints its port."""

import collections
import heapq
import resource
import select
import socket
import sys
import time

# Seconds until a full socket is tried again.
AGAIN = 0.05


class Origin:
    def __init__(self, folder, delay, most):
        with open(f"{folder}/manifest.tsv", encoding="ascii") as manifest:
            names = [line.split()[0] for line in manifest]
        self.bodies = {name: self.read(f"{folder}/{name}") for name in names}
        self.delay, self.most = delay, most
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("0.0.0.0", 0))
        self.listener.listen(4096)
        self.listener.setblocking(False)
        self.poll = select.epoll()
        self.poll.register(self.listener.fileno(), select.EPOLLIN)
        self.accepts = True
        self.open = {}
        self.due = []
        self.turn = 0
        self.pending = collections.defaultdict(bytes)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            body = file.read()
        return b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def later(self, seconds, descriptor, what):
        self.turn += 1
        heapq.heappush(self.due, (time.monotonic() + seconds, self.turn, descriptor, self.open[descriptor], what))

    def watch(self):
        """Accepts only while there is room. The queue of the kernel, which holds one more than is said, is what is left of it: so the first
        packets of a burst are dropped as exactly as those of single connections."""
        if not self.most:
            return
        room = self.most - len(self.open)
        self.listener.listen(max(0, room - 1))
        wanted = room > 0
        if wanted != self.accepts:
            self.accepts = wanted
            self.poll.modify(self.listener.fileno(), select.EPOLLIN if wanted else 0)

    def accept(self):
        while not self.most or len(self.open) < self.most:
            try:
                connection, _ = self.listener.accept()
            except BlockingIOError:
                break
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open[connection.fileno()] = connection
            self.poll.register(connection.fileno(), select.EPOLLIN)
        self.watch()

    def close(self, descriptor):
        connection = self.open.pop(descriptor, None)
        if connection is None:
            return
        self.pending.pop(descriptor, None)
        self.poll.unregister(descriptor)
        connection.close()
        self.watch()

    def receive(self, descriptor):
        try:
            data = self.open[descriptor].recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close(descriptor)
            return
        text = self.pending[descriptor] + data
        while b"\r\n\r\n" in text:
            request, _, text = text.partition(b"\r\n\r\n")
            name = request.split(b" ", 2)[1].decode("ascii").split("?")[0].lstrip("/")
            self.later(self.delay, descriptor, self.bodies.get(name, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
        self.pending[descriptor] = text

    def send(self, descriptor, data):
        """As much as the socket takes; the rest later."""
        try:
            sent = self.open[descriptor].send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close(descriptor)
            return
        if sent < len(data):
            self.later(AGAIN, descriptor, memoryview(data)[sent:])

    def run(self):
        self.watch()
        while True:
            wait = max(0, self.due[0][0] - time.monotonic()) if self.due else 60
            for descriptor, event in self.poll.poll(wait):
                if descriptor == self.listener.fileno():
                    self.accept()
                elif descriptor in self.open:
                    self.receive(descriptor) if event & select.EPOLLIN else self.close(descriptor)
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                _, _, descriptor, connection, data = heapq.heappop(self.due)
                # Another connection may have the number by now.
                if self.open.get(descriptor) is connection:
                    self.send(descriptor, data)


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder, delay, most = sys.argv[1:]
    origin = Origin(folder, float(delay), int(most))
    print(origin.listener.getsockname()[1], flush=True)
    origin.run()


if __name__ == "__main__":
    main()
