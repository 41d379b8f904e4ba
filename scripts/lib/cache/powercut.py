"""Copies of a cache's disk in mid run, each mounted and compared with what Redis had counted before the copy was begun.

The order is what makes it a proof: first the outcomes are read, then the image file is copied, without a sync of the file system in
it. What was counted then must be in the copy. What a real disk may do beyond that, losing writes it has confirmed, is not tried.
"""
import argparse
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fill import png  # noqa: E402


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = png(int(self.path.strip("/").split(".")[0]))
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


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


def main():
    parser = argparse.ArgumentParser(prog="scripts/powercut", description=__doc__)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--fs", default="ext4", choices=["ext4", "xfs"])
    parser.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="powercut-"))
    (mount, copied) = (work / "disk", work / "copied")
    mount.mkdir()
    copied.mkdir()
    image = work / "image"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    children = []
    try:
        run("truncate", "-s", "1G", str(image))
        run(f"mkfs.{options.fs}", *(["-F", "-q"] if options.fs == "ext4" else ["-q", "-f"]), str(image))
        run("mount", "-o", "loop", str(image), str(mount))
        redis = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(work / "redis.sock"), "--save", "", "--dir", str(work)],
            stdout=subprocess.DEVNULL)
        children.append(redis)
        while not (work / "redis.sock").exists():
            time.sleep(0.05)
        urls = [f"http://127.0.0.1:{server.server_port}/{index}.png" for index in range(options.count)]
        (work / "urls.txt").write_text("".join(url + "\n" for url in urls))
        location = ["--redis", f"unix://{work}/redis.sock"]
        coord = os.path.join(options.binaries, "prefetch-coord")
        batch = "cut"
        run(coord, "submit", str(work / "urls.txt"), "--name", batch, *location)
        worker = subprocess.Popen(
            [os.path.join(options.binaries, "prefetch-worker"), "--burst", "--quiet", "--cache", str(mount / "cache"),
             "--allow-net", "127.0.0.0/8", "--max-concurrent-downloads", "8", *location], stdout=subprocess.DEVNULL)
        children.append(worker)
        bad = 0
        for cut in range(options.cuts):
            wanted = (cut + 1) * options.count // (options.cuts + 1)
            while True:
                codes = outcomes(str(work / "redis.sock"), batch)
                counted = [index for index, code in enumerate(codes) if 1 <= code <= 3]
                if len(counted) >= wanted:
                    break
                if worker.poll() is not None:
                    sys.exit("error: the worker has ended")
                time.sleep(0.005)
            # From here on nothing that is written matters.
            shutil.copyfile(image, work / "cut")
            # Not before: the copy has to be of a disk that is written to. The next cut is to find it at work again.
            worker.send_signal(signal.SIGSTOP)
            if options.fs == "xfs":
                # Two file systems of one id are mounted at the same time.
                run("mount", "-o", "loop,nouuid", str(work / "cut"), str(copied))
            else:
                run("mount", "-o", "loop", str(work / "cut"), str(copied))
            there = run(coord, "cache", "verify", "--cache", str(copied / "cache"), check=False)
            text = "".join(urls[index] + "\n" for index in counted)
            missing = subprocess.run(
                [coord, "cache", "exists", "-", "--cache", str(copied / "cache")], input=text, text=True,
                stdout=subprocess.PIPE).stdout.split()
            # A file that is damaged is in the copy too: only those that were counted matter.
            damaged = [line.split(": ")[1] for line in there.stdout.splitlines() if line.startswith("damaged: ")]
            paths = subprocess.run(
                [coord, "cache", "path", "-", "--cache", str(copied / "cache")], input=text, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split()
            lost = len(missing) + len(set(damaged) & set(paths))
            bad += lost
            print(f"cut {cut + 1}: {len(counted)} URLs counted, {len(missing)} missing, "
                  f"{len(set(damaged) & set(paths))} damaged; {len(damaged)} files not counted yet were not whole", flush=True)
            run("umount", str(copied))
            worker.send_signal(signal.SIGCONT)
        worker.wait()
        print("every counted URL survived every cut" if bad == 0 else f"{bad} counted URLs were lost")
        return 1 if bad else 0
    finally:
        for child in reversed(children):
            if child.poll() is None:
                child.send_signal(signal.SIGCONT)
                child.terminate()
                child.wait()
        for place in (copied, mount):
            run("umount", str(place), check=False)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
