"""The tool itself: what it says of files, and what it makes of them."""

import json
import pathlib
import urllib.parse

import rig


def verdicts(bench, folder, count):
    """Of the files in a folder: why they are refused, by name. One import, at the level `decode`."""
    words = ["cache", "import", folder, "--from", "folder", "--base-url", "http://pictures.test/", "--cache", bench.path("verdicts")]
    _, _, text = bench.coord(*words, "--validate", "decode", "--json", codes=(0, 1))
    start, lines = f"refused: {folder}/", text.splitlines()
    refused = dict(line[len(start) :].split(": ", 1) for line in lines if line.startswith(start))
    stored = next(json.loads(line)["stored"] for line in reversed(lines) if line.startswith("{"))
    if stored + len(refused) != count:
        rig.fail(f"of {count} files {stored} are imported and {len(refused)} refused", "see what the import says", 70)
    return refused


def fetched(bench, folder, names):
    """Of the files in a folder, made PNG: the manifest's line and the file with the result, in the order of names. One run over loopback."""
    base, out, manifest = bench.serve(folder), pathlib.Path(bench.path("out")), pathlib.Path(bench.path("manifest.jsonl"))
    urls = bench.write("urls.txt", (f"{base}/{urllib.parse.quote(name)}" for name in names))
    words = ["run", urls, "--cache", bench.path("cache"), "--out", out, "--manifest", manifest, "--allow-net", "127.0.0.0/8", "--blacklist", "none"]
    bench.coord(*words, "-q", "--image-format", "png", "--strip", "--options", "transformAnimatedImage", codes=(0, 3))
    rows = [json.loads(line) for line in manifest.read_text(encoding="utf-8").splitlines()]
    files = {int(path.stem): path for path in out.iterdir() if path.stem.isdigit()}
    return [(row, files.get(row["line"])) for row in sorted(rows, key=lambda row: row["line"])]
