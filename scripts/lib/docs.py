"""Runs the commands of the README and of docs/ that can run here, and compares what they print with what the page shows."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import rig

TREE = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?P<before>[^\n]*)\n```(?P<kind>[a-z]*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
# What a line of commands begins with; a block with none of them shows something else.
COMMAND = re.compile(r"^(\$ |export |scripts/|prefetch-(coord|worker|origin) (?!\S+:\d+ finished)|docker |promtool |printf |curl |duckdb |for |mkdir |R=|python3 )")
RUNS = re.compile(r"<!-- runs: (.*?) -->$")
SKIPPED = re.compile(r"<!-- does not run here: (.*?) -->$")


def blocks(path):
    """The blocks of commands of a page: line, mark, lines and kind of each."""
    text = "\n" + path.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        lines = found["text"].splitlines()
        if found["kind"] in ("", "sh") and any(COMMAND.match(line) for line in lines):
            yield text.count("\n", 0, found.start("text")), found["before"].strip(), lines, found["kind"]


class Fixture(rig.Rig):
    """What the pages take for granted: a Redis, a server with images, lists of them, a cache that has them."""

    def __init__(self, options):
        super().__init__(options)
        self.work = pathlib.Path(self.folder)
        self.here = self.work / "here"
        for folder in ("here", "srv", "prom", "etc"):
            (self.work / folder).mkdir()
        for name in ("docs", "scripts"):
            (self.here / name).symlink_to(TREE / name)
        self.environment |= {
            "PATH": f"{self.binaries}:{os.environ['PATH']}", "TERM": "dumb", "PREFETCH_ALLOW_NET": "127.0.0.0/8", "HOME": self.folder}

    def open(self):
        # Below the ports that the kernel hands out to others.
        port = 20000 + os.getpid() % 12000
        self.redis = f"redis://127.0.0.1:{port}/0"
        self.begin(["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--appendonly", "yes", "--save", "", "--dir", self.folder,
                    "--maxmemory-policy", "noeviction"], "Ready to accept")
        rows = rig.generate(self.binaries, self.path("corpus"), 60, 4000)
        self.origin = self.serve(self.path("corpus"))
        urls = [f"{self.origin}/{path}" for path, *_ in rows if path.endswith((".jpg", ".png"))]
        (self.here / "urls.txt").write_text("\n".join(urls + [f"{self.origin}/missing.jpg"]) + "\n")
        (self.here / "ten.txt").write_text("\n".join(urls[:7] + [f"{self.origin}/missing.jpg", f"{self.origin}/gone.jpg", "not a url"]) + "\n")
        (self.here / "images.csv").write_text("id,picture,caption\n" + "".join(f"{i},{u},picture {i}\n" for i, u in enumerate(urls[:9])))
        self.first = urls[0]

    # Each of these a block may name after `runs:`.

    def list(self):
        """urls.txt is done, in ./cache."""
        self.check(["prefetch-coord", "run", "urls.txt", "--cache", "./cache", "-n", "2", "--quiet"], (0, 3))

    def ten(self):
        """Ten URLs, three of which are missing, are the newest batch of ./cache."""
        shutil.rmtree(self.here / "cache", ignore_errors=True)
        self.check(["prefetch-coord", "run", "ten.txt", "--cache", "./cache", "-n", "1", "--quiet"], (0, 3))

    def queue(self):
        """urls.txt is done, by way of the Redis that everybody shares."""
        self.check(["prefetch-coord", "submit", "urls.txt", "--redis", self.redis])
        self.check(["prefetch-worker", "--burst", "--quiet", "--redis", self.redis, "--cache", str(self.work / "srv")])
        status = json.loads(self.check(["prefetch-coord", "status", "--json", "--redis", self.redis]))
        self.batch = status["batches"][-1]["id"]

    def alone(self):
        """Nothing but the lists."""

    def text(self, line):
        """A command as it can be typed here: the page's places become this fixture's."""
        image = next((p for p in (self.here / "cache").glob("v1/*/*/*") if p.is_file()), None)
        for there, here in (
            ("redis://host:6379/0", self.redis), ("redis-cli -u redis://127.0.0.1", f"redis-cli -u {self.redis}"),
            ("/srv/images", str(self.work / "srv")), ("/var/lib/prometheus/node-exporter", str(self.work / "prom")),
            ("/etc/bash_completion.d", str(self.work / "etc")), ("127.0.0.1:9464", "127.0.0.1:0"),
            ("CACHE/v1/a/b/…", str(image)), ("--cache DIR", "--cache ./cache"),
            ("urls-7f3a12c9", getattr(self, "batch", "urls-7f3a12c9")), ("https://example.org/a.jpg", self.first),
        ):
            line = line.replace(there, here)
        return line

    def begin(self, words, mark):
        """A program that goes on, once it has said that."""
        child = rig.start(words, output=subprocess.PIPE, environment=self.environment, cwd=self.here, text=True, joins=True)
        said, end = "", time.monotonic() + 30
        while mark not in said:
            line = child.stdout.readline()
            if not line or time.monotonic() > end:
                raise RuntimeError(f"{' '.join(words)} does not say '{mark}': {said}")
            said += line
        return child

    def check(self, words, codes=(0,)):
        done = subprocess.run(words, cwd=self.here, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode not in codes:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout


def shape(line):
    """A line without what differs from run to run; a regular expression, in which … stands for anything."""
    line = re.sub(r"[0-9a-f]{8,}", "#", line.strip())
    line = re.sub(r"[0-9][0-9,.:TZ]*", "#", line)
    return re.sub(r"\s+", " ", line)


def is_shown(expected, printed):
    """Whether the lines of a page are among those that were printed, in their order; those that are only … stand for any."""
    rest = iter([shape(line) for line in printed])
    for line in expected:
        wanted = ".*".join(re.escape(part) for part in shape(line).split("…"))
        if wanted == ".*":
            continue
        if not any(re.fullmatch(wanted, line) for line in rest):
            return line
    return None


def commands(lines, kind):
    """(command, lines that the page shows behind it) of a block."""
    if not any(line.startswith("$ ") for line in lines):
        return [("\n".join(lines), [])] if kind == "sh" and any(line[:1] in " )" for line in lines) else [
            (line, []) for line in lines if line.strip()]
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def run(fixture, block):
    """Runs the commands of a block one after the other, in one shell's folder; what is wrong, a line each."""
    line, mark, lines, kind = block
    problems, background, before = [], [], []
    for command, expected in commands(lines, kind):
        text = fixture.text(command)
        if re.match(r"prefetch-worker (?!--version|health)|.*--listen ", text):
            background.append(fixture.begin(["bash", "-c", "\n".join([*before, "exec " + text])], " is ready" if text.startswith("prefetch-worker") else "serving "))
            continue
        # What sets a variable holds for those behind it.
        if re.match(r"(export )?[A-Z_]+=\S*$|R='", text):
            before.append(text)
            continue
        done = subprocess.run(["bash", "-c", "set -o pipefail\n" + "\n".join([*before, text])], cwd=fixture.here, env=fixture.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        # 3: finished with skips, which are planted.
        if done.returncode not in (0, 3):
            problems.append(f"`{command}` ended with {done.returncode}: {done.stdout[-600:]}")
        missing = is_shown(expected, done.stdout.splitlines())
        if missing is not None:
            problems.append(f"`{command}` does not print what the page shows: {missing}\nbut:\n{done.stdout[-1500:]}")
    for child in background:
        child.send_signal(signal.SIGTERM)
        if child.wait(timeout=60) != 0:
            problems.append(f"`{' '.join(child.args)}` ended with {child.returncode} after SIGTERM")
    return problems


def main():
    parser = rig.parser("docs-test", __doc__)
    parser.add_argument("--work", default=tempfile.gettempdir(), help="a folder with room; all below is removed at the end (%(default)s)")
    parser.add_argument("--only", metavar="PAGE", help="one page, as README.md or docs/CACHE.md")
    options = parser.parse_args()
    pages = [TREE / "README.md", TREE / "README.zh-CN.md", *sorted((TREE / "docs").glob("*.md"))]
    failures, ran, skipped = [], 0, []
    with Fixture(options) as fixture:
        fixture.open()
        for page in pages:
            name = str(page.relative_to(TREE))
            if options.only and options.only != name:
                continue
            for block in blocks(page):
                place, mark = f"{name}:{block[0]}", block[1]
                runs, no = RUNS.search(mark), SKIPPED.search(mark)
                if no:
                    for script in re.findall(r"scripts/[a-z-]+", no[1]):
                        if not (TREE / script).is_file():
                            failures.append(f"{place}: there is no {script}")
                    skipped.append(f"{place}: {no[1]}")
                elif not runs:
                    failures.append(f"{place}: commands without a mark before them: <!-- runs: … --> or <!-- does not run here: reason -->")
                else:
                    absent = [] if shutil.which("promtool") else [line for line in block[2] if line.startswith("promtool ")]
                    skipped += [f"{place}: promtool is not installed: {line}" for line in absent]
                    block = (*block[:2], [line for line in block[2] if line not in absent], block[3])
                    try:
                        for step in runs[1].split():
                            getattr(fixture, step)()
                        found = run(fixture, block)
                    except (RuntimeError, AttributeError, subprocess.TimeoutExpired) as error:
                        found = [str(error)]
                    failures += [f"{place}: {problem}" for problem in found]
                    ran += 1
    for line in skipped:
        print(f"not run  {line}")
    for line in failures:
        print(f"FAIL  {line}", file=sys.stderr)
    print(f"docs-test: {ran} blocks ran, {len(skipped)} cannot run here, {len(failures)} problems")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
