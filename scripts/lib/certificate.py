#!/usr/bin/env python3
"""scripts/lib/certificate.py PACKAGE BUNDLE [--json]: runs the tests that docs/SDWEBIMAGE.md names, and prints each row with their result."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

SUITES = {
    "downloader": "SDWebImageDownloaderTests",
    "manager": "SDWebImageManagerTests",
    "cache": "SDImageCacheTests",
    "prefetcher": "SDWebImagePrefetcherTests",
    "coder": "SDImageCoderTests",
    "decoder": "SDWebImageDecoderTests",
    "transformer": "SDImageTransformerTests",
}


def rows(page):
    """(class, name, here, proofs) of each row that is proved."""
    heading, proved = "", False
    for line in page.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        if not line.startswith("|"):
            proved = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[-1].strip(" |") == "proved by":
            proved = True
        elif proved and not cells[0].startswith("---"):
            yield heading, cells[0], cells[1], cells[-1].strip(" |").split("; ")


def is_meant(proof, suite, title):
    """Whether a proof means a test, by the suite's name and the test's title or function."""
    ported = re.fullmatch(r"ported ([a-z]+) ([0-9, ]+)", proof)
    if ported:
        return any(re.match(rf"{SUITES[ported[1]]} ([0-9]{{2}} [A-Za-z]+, )*{number} ", title) for number in ported[2].split(", "))
    if proof.startswith("trace list-over"):
        return suite == "ListTraceTests"
    if proof.startswith("trace "):
        return suite == "TraceTests"
    named = re.fullmatch(r'([A-Za-z]+) "([^"…]+)(…?)"', proof)
    return bool(named) and suite == named[1] and (title.startswith(named[2]) if named[3] else title == named[2])


def listed(bundle):
    command = [bundle, "--testing-library", "swift-testing", "--list-tests"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.splitlines()


def main():
    package, bundle = pathlib.Path(sys.argv[1]), sys.argv[2]
    as_json = "--json" in sys.argv[3:]
    table = list(rows((package / "docs/SDWEBIMAGE.md").read_text(encoding="utf-8")))
    suites = {re.fullmatch(r'([A-Za-z]+) ".*"', proof)[1] for row in table for proof in row[3] if '"' in proof}
    names = "|".join(sorted(suites | {"TraceTests", "ListTraceTests", "Ported[A-Za-z]*Tests", "PrefetcherPortTests", "DownloaderPortTests"}))
    print(f"{len(table)} names, {len(suites)} suites and the ported tests", file=sys.stderr, flush=True)
    titles, results = {}, {}
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as stream:
        command = [bundle, "--testing-library", "swift-testing", "--no-parallel", "--filter", rf"\.({names})/"]
        command += ["--event-stream-version", "0", "--event-stream-output-path", stream.name]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for line in pathlib.Path(stream.name).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            payload = record["payload"]
            if record["kind"] == "test":
                titles[payload["id"]] = payload.get("displayName") or payload["name"].strip("`()")
            elif payload["kind"] == "testEnded" and "/" in payload["testID"]:
                results[payload["testID"]] = not any(message["symbol"] == "fail" for message in payload["messages"])
    tests = [(re.match(r"[A-Za-z]+\.([A-Za-z]+)/", test), titles.get(test, ""), test) for test in results]
    tests = [(suite[1], title, test) for suite, title, test in tests if suite]
    good = True
    for heading, name, here, proofs in table:
        ended = []
        for proof in proofs:
            found = [(title, results[test]) for suite, title, test in tests if is_meant(proof, suite, title)]
            ended.append((proof, bool(found) and all(result for _, result in found)))
        passed = all(result for _, result in ended)
        good = good and passed
        if as_json:
            print(json.dumps({"class": heading, "name": name, "here": here, "tests": dict(ended), "passed": passed}, ensure_ascii=False))
        else:
            print(f"{'pass' if passed else 'FAIL'}  {heading}: {name}  <- " + "; ".join(f"{'' if result else 'FAIL '}{proof}" for proof, result in ended))
    count = sum(results.values())
    print(f"{len(table)} names; {count} of {len(results)} tests passed", file=sys.stderr)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
