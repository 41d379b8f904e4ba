"""A fresh clone of what is committed, then the README's two commands in it, each timed."""

import argparse
import http.server
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time


def commands(readme):
    """The commands of the first block of the README that begin with `$ scripts/run`, without their comments."""
    found = []
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        found = [re.sub(r"\s+#.*", "", line[2:]) for line in block.splitlines() if line.startswith("$ scripts/run")]
        if found:
            break
    if len(found) != 2 or found[0] != "scripts/run" or "urls.txt" not in found[1]:
        sys.exit(f"error: the README does not begin with `scripts/run` and `scripts/run urls.txt …`, but with {found}")
    return found


class Measured:
    """What a command took, and when its first line of a kind came."""

    def __init__(self, words, folder, mark=None):
        began, used = time.monotonic(), self.cpu()
        self.marked, self.lines = None, []
        child = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in child.stdout:
            self.lines.append(line.rstrip("\n"))
            if mark and self.marked is None and line.startswith(mark):
                self.marked = time.monotonic() - began
        self.code = child.wait()
        self.seconds, self.used = time.monotonic() - began, self.cpu() - used

    @staticmethod
    def cpu():
        """Of all children that have ended."""
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


class Server(http.server.ThreadingHTTPServer):
    # With the usual 5 a connection that finds no room is tried again after 1, 3, 7 and 15 seconds.
    request_queue_size = 128


def serve(folder):
    """A server of a folder's files, for a list of one's own without a network."""
    def handler(*words):
        return Quiet(*words, directory=folder)

    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    parser = argparse.ArgumentParser(prog="scripts/newcomer", description=__doc__)
    parser.add_argument("--tree", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build-limit", type=float, default=360, metavar="S", help="seconds until the demo begins (360)")
    parser.add_argument("--demo-limit", type=float, default=10, metavar="S", help="seconds of the demo (10)")
    parser.add_argument("--json", action="store_true", help="print the figures as one object")
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="newcomer-"))
    figures, failures = {}, []
    os.environ["XDG_STATE_HOME"] = str(work / "state")
    try:
        clone = work / "prefetch"
        # By way of a bare one: nothing but what is committed can come along.
        for words in (["git", "clone", "-q", "--bare", options.tree, str(work / "bare.git")],
                      ["git", "clone", "-q", str(work / "bare.git"), str(clone)]):
            subprocess.run(words, check=True)
        first, second = commands((clone / "README.md").read_text(encoding="utf-8"))

        demo = Measured(first.split(), clone, mark="demo: ")
        if demo.code != 0 or not any(re.fullmatch(r"all [0-9,]+ outcomes as expected\.", line) for line in demo.lines) or demo.marked is None:
            failures.append(f"{first}: exit {demo.code}\n" + "\n".join(demo.lines[-20:]))
        else:
            figures |= {"build_seconds": demo.marked, "demo_seconds": demo.seconds - demo.marked, "cpu_seconds": demo.used}
            if demo.marked > options.build_limit:
                failures.append(f"the build took {demo.marked:.0f} s, {options.build_limit:.0f} s at most")
            if figures["demo_seconds"] > options.demo_limit:
                failures.append(f"the demo took {figures['demo_seconds']:.1f} s, {options.demo_limit:.0f} s at most")

            pictures = sorted(p for p in (clone / "demo-cache").rglob("*") if p.is_file() and p.stat().st_size > 1000
                              and p.read_bytes()[:3] in (b"\xff\xd8\xff", b"\x89PN", b"GIF", b"RIF"))[:200]
            server = serve(str(clone / "demo-cache"))
            (clone / "urls.txt").write_text("".join(
                f"http://127.0.0.1:{server.server_port}/{p.relative_to(clone / 'demo-cache')}\n" for p in pictures))
            own = Measured([*second.split(), "--allow-net", "127.0.0.0/8"], clone)
            server.shutdown()
            wanted = f"finished {len(pictures)} of {len(pictures)}: {len(pictures)} images, 0 skipped"
            if own.code != 0 or not pictures or not any(wanted in line for line in own.lines):
                failures.append(f"{second}: exit {own.code}\n" + "\n".join(own.lines[-20:]))
            figures |= {"list_seconds": own.seconds, "list_urls": len(pictures)}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        print(json.dumps({name: round(value, 1) for name, value in figures.items()} | {"ok": not failures}))
    else:
        for name, text in (
            ("build_seconds", "s from the command to the demo's first line: the build"), ("demo_seconds", "s the demo"),
            ("cpu_seconds", "CPU s of both"),
            ("list_seconds", f"s the second command, with {figures.get('list_urls', 0):.0f} URLs")):
            if name in figures:
                print(f"{figures[name]:8.1f} {text}")
        if not failures:
            print("newcomer: both commands did what the README says")
    for failure in failures:
        print(f"FAIL  {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
