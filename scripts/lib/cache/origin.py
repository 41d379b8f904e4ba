"""A server of pictures that answers as many requests as it is told, so that a run can be held where a test wants it; and a look at Redis."""

import http.server
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fill import png  # noqa: E402


class Gate:
    """How many requests may be answered."""

    def __init__(self):
        self.lock, self.allowed, self.asked, self.answered = threading.Condition(), 0, 0, 0

    def enter(self):
        with self.lock:
            self.asked += 1
            ticket = self.asked
            self.lock.wait_for(lambda: ticket <= self.allowed)
            self.answered += 1
            self.lock.notify_all()

    def allow(self, count):
        with self.lock:
            self.allowed = max(self.allowed, count)
            self.lock.notify_all()

    def wait(self, count, seconds):
        """Whether that many were answered within the time."""
        with self.lock:
            return self.lock.wait_for(lambda: self.answered >= count, seconds)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A worker that was killed is no error."""


class Origin:
    def __init__(self):
        self.gate = Gate()
        self.server = Server(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def urls(self, count, folder=""):
        return [f"http://127.0.0.1:{self.server.server_port}/{folder}{index}.png" for index in range(count)]

    def handler(self):
        gate = self.gate

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                gate.enter()
                body = png(int(self.path.rsplit("/", 1)[1].split(".")[0]))
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        return Handler


def trickle(gate, limit, over):
    """Lets a run go on, slowly, until it is over."""
    while not over.wait(0.002):
        gate.allow(min(limit, gate.allowed + 1))


def run(*words, check=True):
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if check and result.returncode:
        sys.exit(f"error: {' '.join(words)}: {result.stderr.strip()}")
    return result


def outcomes(socket, batch):
    """The outcome bytes as Redis has them now."""
    raw = subprocess.run(
        ["redis-cli", "-s", socket, "--raw", "GETRANGE", f"prefetch:{{default}}:b:{batch}:o", "0", "-1"],
        stdout=subprocess.PIPE, check=True).stdout
    return raw[:-1] if raw.endswith(b"\n") else raw
