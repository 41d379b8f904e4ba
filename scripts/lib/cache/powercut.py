"""Copies of a cache's disk in mid run, each mounted and compared with what Redis had counted before the copy was begun.

The order is what makes it a proof: first the outcomes are read, then the image file is copied, without a sync of the file system in
it. What was counted then must be in the copy. What a real disk may do beyond that, losing writes it has confirmed, is not tried.
"""
import argparse
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

from origin import Origin, outcomes, run, trickle  # noqa: E402


# Requests beyond the number at which a cut is taken: what is in flight and what a worker has not reported yet.
ROOM = 100


def compare(coord, kind, cut, copied, urls):
    """How many of these URLs' files a copy of the disk lacks, and has damaged; and how many others are damaged."""
    # Two file systems of one id are mounted at the same time, which XFS refuses unless it is told.
    run("mount", "-o", "loop,nouuid" if kind == "xfs" else "loop", str(cut), str(copied))
    there = run(coord, "cache", "verify", "--cache", str(copied / "cache"), check=False)
    text = "".join(url + "\n" for url in urls)
    missing = subprocess.run(
        [coord, "cache", "path", "--missing", "-", "--cache", str(copied / "cache")], input=text, text=True,
        stdout=subprocess.PIPE).stdout.split()
    # A file that is damaged is in the copy too: only those that were counted matter.
    damaged = {line.split(": ")[1] for line in there.stdout.splitlines() if line.startswith("damaged: ")}
    paths = subprocess.run(
        [coord, "cache", "path", "-", "--cache", str(copied / "cache")], input=text, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split()
    run("umount", str(copied))
    return len(missing), len(damaged & set(paths)), len(damaged - set(paths))


def cut_after_kill(options, origin, work, image, mount, copied, location, children):
    """A worker that never writes out is killed, and another counts its files as hits: those have to survive a cut too."""
    coord = os.path.join(options.binaries, "prefetch-coord")
    worker = [os.path.join(options.binaries, "prefetch-worker"), "--quiet", "--cache", str(mount / "cache"), "--allow-net",
              "127.0.0.0/8", "--max-concurrent-downloads", "8", "--lease", "1s", *location]
    urls = origin.urls(ROOM, "killed/")
    (work / "killed.txt").write_text("".join(url + "\n" for url in urls))
    run(coord, "submit", str(work / "killed.txt"), "--name", "killed", "--durability", "none", *location)
    origin.gate.allow(origin.gate.asked + ROOM)
    first = subprocess.Popen(worker, stdout=subprocess.DEVNULL)
    children.append(first)
    while sum(1 for code in outcomes(str(work / "redis.sock"), "killed") if code) < ROOM:
        time.sleep(0.005)
    first.kill()
    first.wait()
    run(coord, "submit", str(work / "killed.txt"), "--name", "hits", *location)
    second = subprocess.Popen([*worker, "--burst"], stdout=subprocess.DEVNULL)
    children.append(second)
    second.wait()
    hits = [index for index, code in enumerate(outcomes(str(work / "redis.sock"), "hits")) if code == 2]
    run("cp", "--sparse=always", str(image), str(work / "cut"))
    missing, damaged, _ = compare(coord, options.fs, work / "cut", copied, [urls[index] for index in hits])
    print(f"cut after a kill: {len(hits)} of {ROOM} URLs counted as hits of another worker's files; {missing} missing, {damaged} damaged")
    return missing + damaged + (ROOM - len(hits))


def main():
    parser = argparse.ArgumentParser(prog="scripts/powercut", description=__doc__)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--fs", default="ext4", choices=["ext4", "xfs"])
    parser.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cuts < 1 or options.count < 4 * ROOM * (options.cuts + 1):
        parser.error(f"--count wants {4 * ROOM} URLs or more for each part of the run that the cuts make")
    work = pathlib.Path(tempfile.mkdtemp(prefix="powercut-"))
    (mount, copied) = (work / "disk", work / "copied")
    mount.mkdir()
    copied.mkdir()
    image = work / "image"
    origin = Origin()
    gate = origin.gate
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
        urls = origin.urls(options.count)
        (work / "urls.txt").write_text("".join(url + "\n" for url in urls))
        location = ["--redis", f"unix://{work}/redis.sock"]
        coord = os.path.join(options.binaries, "prefetch-coord")
        batch = "cut"
        run(coord, "submit", str(work / "urls.txt"), "--name", batch, *location)
        worker = subprocess.Popen(
            [os.path.join(options.binaries, "prefetch-worker"), "--burst", "--quiet", "--cache", str(mount / "cache"),
             "--allow-net", "127.0.0.0/8", "--max-concurrent-downloads", "8", *location], stdout=subprocess.DEVNULL)
        children.append(worker)
        bad = idle = 0
        for cut in range(options.cuts):
            # The cuts are as far apart as they are from begin and end, in URLs that are counted.
            wanted = (cut + 1) * options.count // (options.cuts + 1)
            gate.allow(wanted + ROOM)
            while True:
                codes = outcomes(str(work / "redis.sock"), batch)
                counted = [index for index, code in enumerate(codes) if 1 <= code <= 3]
                if len(counted) >= wanted:
                    break
                if worker.poll() is not None:
                    sys.exit("error: the worker has ended")
                time.sleep(0.005)
            # From here on nothing that is written matters. It goes on writing all the while, though not up to the next cut.
            before, over = gate.answered, threading.Event()
            limit = (cut + 2) * options.count // (options.cuts + 1) - ROOM
            drip = threading.Thread(target=trickle, args=(gate, limit, over))
            drip.start()
            run("cp", "--sparse=always", str(image), str(work / "cut"))
            over.set()
            drip.join()
            during = gate.answered - before
            idle += during == 0
            # Not before: the copy has to be of a disk that is written to. The next cut is to find it at work again.
            worker.send_signal(signal.SIGSTOP)
            missing, damaged, others = compare(coord, options.fs, work / "cut", copied, [urls[index] for index in counted])
            bad += missing + damaged
            print(f"cut {cut + 1}: {len(counted)} of {options.count} URLs counted, {during} more answered during the copy; "
                  f"{missing} missing, {damaged} damaged; {others} files not counted yet were not whole", flush=True)
            worker.send_signal(signal.SIGCONT)
        gate.allow(options.count)
        worker.wait()
        codes = outcomes(str(work / "redis.sock"), batch)
        finished = sum(1 for code in codes if 1 <= code <= 3)
        print(f"the run then ended with {finished} of {options.count} images")
        bad += cut_after_kill(options, origin, work, image, mount, copied, location, children)
        if finished != options.count or idle:
            print(f"error: {idle} cuts fell where nothing was written" if idle else "error: the run did not finish", file=sys.stderr)
            return 1
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
