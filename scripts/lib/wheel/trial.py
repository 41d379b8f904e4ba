"""Uses an installed wheel as a person would, without a network: trial.py FOLDER-OF-PROGRAMS GIVEN. Beside the programs is duckdb; in GIVEN are an
authority, a server's certificate by it, images (HexSamples.swift) and png.py; the machine's bundle has the authority. Ends at the first thing that is wrong."""
import http.server
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

from png import noise

programs, given = (Path(word) for word in sys.argv[1:])
held, asked = threading.Event(), threading.Event()
os.chdir(os.environ["HOME"])
# As somebody who has not activated the environment.
environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], "LC_ALL": "C.UTF-8"}

hexes = re.findall(r'let (alphaWebP|avif) = bytes\(\s+"""(.*?)"""', (given / "HexSamples.swift").read_text(), re.S)
samples = {f"/{name}": bytes.fromhex(text) for name, text in hexes}


class Site(http.server.BaseHTTPRequestHandler):
    """A PNG of its own for each name; one that is called slow comes once that is let go."""

    def do_GET(self):
        if "slow" in self.path:
            asked.set()
            held.wait()
        body = samples.get(self.path) or noise(self.path, 8)
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except BrokenPipeError:
            pass

    def log_message(self, *words):
        pass


def serve(tls):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given / "server.pem", given / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"


def must(what, condition, *facts):
    if not condition:
        sys.exit("\n".join([f"wrong: {what}", *map(str, facts)]))
    print(what)


def coord(*words, code=0, **more):
    words = [str(programs / "prefetch-coord"), *words]
    done = subprocess.run(words, env=environment | more, capture_output=True, text=True, timeout=120)
    must(f"{' '.join(words[1:3])} ends with {code}", done.returncode == code, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def run(name, urls, code=0, **more):
    Path(name).write_text("".join(f"{url}\n" for url in urls))
    return coord("run", name, "--cache", f"cache-{name}", "--allow-net", "127.0.0.0/8", "-n", "2", "--tries", "1", code=code, **more)


def children(pid):
    """Names and command lines of the processes that a process has started, and theirs."""
    found = []
    for child in " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")).split():
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        found += [(child, Path(f"/proc/{child}/comm").read_text().strip(), os.path.basename(words[0].decode())), *children(child)]
    return found


plain, secure = serve(False), serve(True)
doctor = coord("doctor", "--cache", "cache")
for fact in ("hiredis 1.2", "libwebp 1", "libavif 0", "lib/prefetch/redis-server"):
    must(f"doctor has {fact}", fact in doctor, doctor)
must("the sandbox is there, and TLS with Redis", "prefetch-codec is not there" not in doctor and "without TLS" not in doctor, doctor)
run("list", [f"{plain}/{i}.png" for i in range(200)])
run("partly", [f"{plain}/missing.png", f"{plain}/there.png"], 3)
run("formats", [plain + path for path in samples])
coord("export", "--cache", "cache-formats", "--format", "jsonl", "-o", "formats.jsonl")
must("WebP and AVIF were decoded", len(samples) == 2 and all(f'"format":"{one}"' in Path("formats.jsonl").read_text() for one in ("webp", "avif")), Path("formats.jsonl").read_text())
coord("run", "none", code=66)
coord("run", "--no-such-option", code=64)
run("tls", [f"{secure}/{i}.png" for i in range(20)], SSL_CERT_FILE=str(given / "authority.pem"))
run("bundle", [f"{secure}/another.png"])
run("untrusted", [f"{secure}/other.png"], 3, SSL_CERT_FILE=str(given / "stranger.pem"))

# The extra.
columns = f"select '{plain}/row' || i || '.png' as url, 'nr ' || i as caption from range(50) t(i)"
subprocess.run([programs / "duckdb", "-c", f"copy ({columns}) to 'list.parquet' (format parquet)"], check=True, capture_output=True)
coord("run", "list.parquet", "--cache", "cache-parquet", "--allow-net", "127.0.0.0/8", "--keep-columns", "caption", "--out", "shards", "--format", "webdataset")
must("the shard has its table", sorted(path.suffix for path in Path("shards").iterdir() if path.name.startswith("00000."))[:1] == [".parquet"], list(Path("shards").iterdir()))

# SIGTERM in the middle.
Path("slow").write_text(f"{plain}/quick.png\n{plain}/slow.png\n")
words = ["run", "slow", "--cache", "cache-slow", "--allow-net", "127.0.0.0/8", "-n", "2", "--timeout", "60s"]
running = subprocess.Popen([programs / "prefetch-coord", *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
must("the slow one is asked for", asked.wait(30))
started = children(running.pid)
names = sorted(name for _, name, _ in started)
must("two workers and a redis-server run under their names", names.count("prefetch-worker") == 2 and "redis-server" in names, started)
must("no Python and no shell is left running", not any("python" in name or name in ("sh", "bash") for _, name, _ in started), started)
must("ps has the same", sum(word == "prefetch-worker" for _, _, word in started) == 2, started)
begun = time.monotonic()
running.send_signal(signal.SIGTERM)
must("SIGTERM ends the run with 75", running.wait(60) == 75, running.returncode)
print(f"after {time.monotonic() - begun:.1f} s")
must("nothing of it is left", not any(os.path.exists(f"/proc/{pid}") for pid, _, _ in started), started)
held.set()
coord(*words)
for program, words, lines in (("prefetch-worker", ["--version"], 1), ("prefetch-origin", ["manifest", "--count", "100"], 100)):
    said = subprocess.run([programs / program, *words], env=environment, capture_output=True, text=True)
    must(f"{program} is there", said.returncode == 0 and len(said.stdout.splitlines()) == lines, said)
