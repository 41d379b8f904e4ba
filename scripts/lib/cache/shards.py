"""Exports a batch as archives, twice and from two caches, and reads them with the webdataset package that training jobs use."""

import argparse
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import webdataset  # noqa: E402
from fill import png  # noqa: E402

IMAGES, PER_SHARD = 250, 100


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = int(self.path.strip("/").split(".")[0])
        body = png(number) if number % 10 else b"gone"
        self.send_response(200 if number % 10 else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def main():
    parser = argparse.ArgumentParser(prog="scripts/webdataset", description=__doc__)
    parser.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    coord = os.path.join(parser.parse_args().binaries, "prefetch-coord")
    work = pathlib.Path(tempfile.mkdtemp(prefix="webdataset-"))
    os.environ["XDG_STATE_HOME"] = str(work / "state")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        urls = [f"http://127.0.0.1:{server.server_port}/{number}.png" for number in range(IMAGES)]
        (work / "urls.txt").write_text("".join(url + "\n" for url in urls))
        shards = []
        for name in ("one", "two"):
            run = [coord, "run", str(work / "urls.txt"), "--cache", str(work / name), "--allow-net", "127.0.0.0/8", "-q", "-n", "1"]
            if subprocess.run(run, stdout=subprocess.DEVNULL, check=False).returncode != 3:
                sys.exit("error: the run did not end with skipped URLs alone")
            out = work / f"{name}-shards"
            subprocess.run(
                [coord, "export", "--format", "webdataset", "--out", str(out), "--per-shard", str(PER_SHARD), "--cache", str(work / name)], check=True)
            shards.append(sorted(out.iterdir()))
        same = [one.read_bytes() == two.read_bytes() for one, two in zip(*shards, strict=True)]
        found = 0
        for sample in webdataset.WebDataset([str(path) for path in shards[0]], shardshuffle=False):
            facts = json.loads(sample["json"])
            if sample["png"] != png(facts["line"] - 1) or hashlib.sha256(sample["png"]).hexdigest() != facts["sha256"]:
                sys.exit(f"error: sample {sample['__key__']} has other bytes than line {facts['line']}")
            if int(sample["__key__"]) != facts["line"] or facts["url"] != urls[facts["line"] - 1]:
                sys.exit(f"error: sample {sample['__key__']} is not line {facts['line']}")
            found += 1
        wanted = sum(1 for number in range(IMAGES) if number % 10)
        version = getattr(webdataset, "__version__", "")
        print(f"webdataset {version}: {found} samples of {wanted} in {len(same)} archives, each with the bytes of its line")
        print(f"archives of two caches that are the same byte for byte: {sum(same)} of {len(same)}")
        return 0 if found == wanted and all(same) else 1
    finally:
        server.shutdown()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
