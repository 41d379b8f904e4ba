"""The tool itself: what it says of files, and what it makes of them."""

import json
import os
import pathlib
import subprocess
import urllib.parse

CLEAN = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
for name in ("REDIS_URL", "PREFETCH_REDIS_URL", "PREFETCH_CACHE", "REDISCLI_AUTH"):
    CLEAN.pop(name, None)
# The kernel ends a child when this process ends.
BOUND = ["setpriv", "--pdeathsig", "KILL"]


class Tool:
    """`binaries`: the folder of the programs; `work`: a folder for caches."""

    def __init__(self, binaries, work):
        self.binaries = pathlib.Path(binaries).resolve()
        self.work = pathlib.Path(work)

    def ran(self, words, codes):
        done = subprocess.run([*BOUND, self.binaries / "prefetch-coord", *words], env=CLEAN, capture_output=True, text=True, errors="replace")
        if done.returncode not in codes:
            raise SystemExit(f"error: prefetch-coord {words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done

    def verdicts(self, folder, count):
        """Of the files in a folder: why they are refused, by name. One import, at the level `decode`."""
        words = ["cache", "import", folder, "--from", "folder", "--base-url", "http://pictures.test/", "--cache", self.work / "verdicts"]
        done = self.ran([*map(str, words), "--validate", "decode", "--json"], (0, 1))
        start = f"refused: {folder}/"
        refused = dict(line[len(start) :].split(": ", 1) for line in done.stderr.splitlines() if line.startswith(start))
        stored = json.loads(done.stdout)["stored"]
        if stored + len(refused) != count:
            raise SystemExit(f"error: of {count} files {stored} are imported and {len(refused)} refused")
        return refused

    def fetched(self, folder, names, options):
        """Of the files in a folder: the manifest's line and the file with the result, in the order of names. One run over loopback."""
        out = self.work / "out"
        with subprocess.Popen(
            [*BOUND, self.binaries / "prefetch-origin", "serve", folder, "--port", "0"], env=CLEAN, stdout=subprocess.PIPE, text=True
        ) as origin:
            try:
                address = origin.stdout.readline().strip()
                urls = self.work / "urls.txt"
                urls.write_text("".join(address + urllib.parse.quote(name) + "\n" for name in names))
                words = ["run", urls, "--cache", self.work / "cache", "--out", out, "--manifest", self.work / "manifest.jsonl"]
                words += ["--allow-net", "127.0.0.0/8", "--blacklist", "none", "-q", *options]
                self.ran([*map(str, words)], (0, 3))
            finally:
                origin.kill()
        rows = [json.loads(line) for line in (self.work / "manifest.jsonl").read_text().splitlines()]
        files = {int(path.stem): path for path in out.iterdir() if path.stem.isdigit()}
        return [(row, files.get(row["line"])) for row in sorted(rows, key=lambda row: row["line"])]
