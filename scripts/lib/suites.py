#!/usr/bin/env python3
"""Runs the built tests in several processes at once: scripts/lib/suites.py BUNDLE [--slots N] [FILTER]

Suites are spread over processes, longest first: by what an earlier run has noted in `suites.json` beside the bundle.
Within a process one test runs at a time. A process that prints nothing for five minutes is killed, and its tests count as failed.
Exit code 0: every test passed; 1: some failed; 64: no test has FILTER in its name; 130: interrupted.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

SILENCE = 300
# Seconds a test takes of a suite that has never run here: those of EndToEndTests start programs.
END_TO_END, OTHERS = 5, 0.7
GROUPS_PER_SLOT = 6


def listed(bundle):
    """The tests of each suite, in the order of the listing."""
    command = [bundle, "--testing-library", "swift-testing", "--list-tests"]
    suites = {}
    for line in subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.splitlines():
        suites.setdefault(line.split("/")[0], []).append(line)
    return suites


class Group:
    """Suites that run in one process, and what came of it."""

    def __init__(self, number, suites, folder):
        self.number, self.suites = number, suites
        self.output, self.stream = folder / f"{number}.txt", folder / f"{number}.jsonl"
        self.offset, self.size, self.heard = 0, 0, time.monotonic()
        self.running, self.started, self.ended = {}, {}, {}
        self.failed, self.skipped, self.closing, self.trouble = [], [], None, None

    def start(self, bundle, filters):
        """Starts it in a session of its own, by which all its processes are found again."""
        command = [bundle, "--testing-library", "swift-testing", "--no-parallel"]
        for pattern in filters:
            command += ["--filter", pattern]
        command += ["--event-stream-version", "0", "--event-stream-output-path", str(self.stream)]
        self.stream.touch()
        self.heard = time.monotonic()
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)

    def read(self):
        """Takes in what the process has reported since the last time."""
        with open(self.stream, "rb") as stream:
            stream.seek(self.offset)
            new = stream.read()
        whole = new[: new.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.splitlines():
            record = json.loads(line)
            if record["kind"] == "event":
                self.take(record["payload"])
        size = self.output.stat().st_size + self.offset
        if size != self.size:
            self.size, self.heard = size, time.monotonic()

    def take(self, event):
        """One event of https://github.com/swiftlang/swift-testing/blob/main/Documentation/ABI/JSON.md"""
        kind, test, at = event["kind"], event.get("testID"), event["instant"]["absolute"]
        said = " ".join(message["text"] for message in event["messages"])
        reason = re.search(r'skipped: "?(.*?)"?$', said)
        if kind == "testStarted":
            self.running[test] = at
        elif kind == "testEnded":
            took = at - self.running.pop(test, at)
            if "/" in test:
                self.ended[test] = took
                if any(message["symbol"] == "fail" for message in event["messages"]):
                    self.failed.append(test)
        elif kind == "testSkipped" and "/" in test:
            self.skipped.append((test, reason[1] if reason else "not possible on this machine"))
        elif kind == "runEnded":
            self.closing = next((line for line in self.lines() if "Test run with" in line), said)

    def lines(self):
        return self.output.read_text(encoding="utf-8", errors="replace").splitlines()

    def poll(self):
        """Whether it has ended; a process that is silent for too long is made to."""
        self.read()
        code = self.process.poll()
        if code is None and time.monotonic() - self.heard > SILENCE:
            self.trouble = f"killed after {SILENCE} s of silence"
            self.kill()
            code = self.process.wait()
        if code is None:
            return False
        self.read()
        if code < 0 and not self.trouble:
            self.trouble = f"ended by {signal.Signals(-code).name}"
        elif self.closing is None or (code != 0 and not self.failed):
            self.trouble = self.trouble or f"exited with {code}" + ("" if self.closing else " before its end")
        if self.trouble:
            self.kill()
        return True

    def kill(self):
        """Ends every process of the session: tests give the programs they start process groups of their own."""
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid:
                    os.kill(int(path.parent.name), signal.SIGKILL)
            except (OSError, ValueError, IndexError):
                continue

    def message(self):
        """The complete output of the tests that failed."""
        lines = self.lines()
        if self.trouble:
            at = [test for test in self.running if "/" in test] or ["no test"]
            return [f"process {self.number} {self.trouble}, in {', '.join(at)}; its suites: {' '.join(self.suites)}"] + lines[-60:]
        cut = []
        block, wanted = [], False
        for line in lines:
            if re.match(r"◇ Test (?!run|case)", line):
                block = []
            block.append(line)
            if re.match(r"✘ Test (?!run).* (failed after|recorded an issue)", line):
                wanted = True
            if re.match(r"[✘✔] Test (?!run|case).* (passed|failed) after", line):
                if wanted:
                    cut += block
                block, wanted = [], False
        return cut or ["failed: " + ", ".join(self.failed)] + lines[-60:]


def grouped(suites, times, slots):
    """Lists of suites, longest first; what is long has a process of its own."""
    weights = {suite: times.get(suite, len(tests) * (END_TO_END if suite.startswith("EndToEndTests.") else OTHERS)) for suite, tests in suites.items()}
    target = max(sum(weights.values()) / (slots * GROUPS_PER_SLOT), 2)
    groups = []
    for suite in sorted(suites, key=lambda suite: -weights[suite]):
        room = next((group for group in groups if group[0] + weights[suite] <= target), None)
        if room is None:
            groups.append(room := [0, []])
        room[0] += weights[suite]
        room[1].append(suite)
    return [names for _, names in sorted(groups, key=lambda group: -group[0])]


def patterns(names, suites, whole):
    """The filters by which a process runs these suites, or only the tests of them that were asked for."""
    for name in names:
        if len(suites[name]) == len(whole[name]):
            yield "^" + re.escape(name) + "/"
        else:
            yield from ("^" + re.escape(test) for test in suites[name])


class Run:
    """All processes of one run."""

    def __init__(self, options, suites, whole, folder):
        self.options, self.suites, self.whole = options, suites, whole
        self.folder = pathlib.Path(folder)
        self.done, self.active = [], []
        self.began = self.said = time.monotonic()
        self.total = sum(map(len, suites.values()))

    def finished(self):
        return sum(len(group.ended) + len(group.skipped) for group in self.done + self.active)

    def all(self, groups):
        """Runs groups of suites, so many at a time as there are slots."""
        waiting = collections.deque(groups)
        while waiting or self.active:
            while waiting and len(self.active) < self.options.slots:
                names = waiting.popleft()
                group = Group(len(self.done) + len(self.active) + 1, names, self.folder)
                group.start(self.options.bundle, patterns(names, self.suites, self.whole))
                self.active.append(group)
            time.sleep(0.05)
            for group in [group for group in self.active if group.poll()]:
                self.active.remove(group)
                self.done.append(group)
                if group.failed or group.trouble:
                    print("\n".join(group.message()), flush=True)
            if time.monotonic() - self.said >= (2 if sys.stdout.isatty() else 30):
                self.progress()

    def progress(self):
        self.said = time.monotonic()
        busy = [max(group.running, key=group.running.get).split("/")[0] for group in self.active if group.running]
        print(f"{time.monotonic() - self.began:4.0f} s: {self.finished():,} of {self.total:,} tests, now {' '.join(busy)}", flush=True)

    def end(self):
        for group in self.active:
            group.kill()

    def times(self):
        took = collections.Counter()
        for group in self.done:
            for test, seconds in group.ended.items():
                took[test.split("/")[0]] += seconds
        return took

    def report(self):
        """What is said at the end; returns the exit code."""
        bad = [group for group in self.done if group.failed or group.trouble]
        for group in bad:
            print("\n" + "\n".join(group.message()))
        took = self.times()
        print("slowest: " + ", ".join(f"{suite.split('.')[1]} {seconds:.0f} s" for suite, seconds in took.most_common(10)))
        reasons = collections.Counter(reason for group in self.done for _, reason in group.skipped)
        for reason, count in reasons.items():
            print(f"skipped {count:,}: {reason}")
        for group in self.done:
            print(group.closing or f"✘ process {group.number} {group.trouble}")
        failed = sum(len(group.failed) for group in bad)
        ended = sum(len(group.ended) for group in self.done)
        left = self.total - self.finished()
        cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{ended - failed:,} of {self.total:,} tests passed, {failed} failed, {sum(reasons.values())} skipped, {left} not run, "
            f"in {len(self.done)} processes, {time.monotonic() - self.began:.0f} s, {cpu.ru_utime + cpu.ru_stime:.0f} s of processor time"
        )
        return 1 if bad or left else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("filter", nargs="?")
    options = parser.parse_intermixed_args()
    whole = listed(options.bundle)
    suites = {name: found for name, tests in whole.items() if (found := [test for test in tests if re.search(options.filter or "", test)])}
    if not suites:
        print(f"error: no test has '{options.filter}' in its name", file=sys.stderr)
        return 64
    noted = pathlib.Path(options.bundle).with_name("suites.json")
    times = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
    with tempfile.TemporaryDirectory(prefix="suites-") as folder:
        run = Run(options, suites, whole, folder)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            run.all(grouped(suites, times, options.slots))
            code = run.report()
        except KeyboardInterrupt:
            code = 130
        finally:
            run.end()
        times |= {suite: round(seconds, 1) for suite, seconds in run.times().items() if len(suites[suite]) == len(whole[suite])}
        noted.write_text(json.dumps({suite: times[suite] for suite in times if suite in whole}), encoding="utf-8")
    return code


sys.exit(main())
