"""The benchmark `web`: thousands of small images from one server, tool by tool. Called by scripts/bench."""

import argparse
import datetime
import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import left
import machine
import page
import report
from corpus import QUERIES, Corpus
from server import Server
from tools import all_tools

SCRIPT = "scripts/bench web"
FILE_OVERHEAD = 4096
MARGIN = 2 << 30
# For five minutes after many files were deleted, ext4 looks at every recently freed inode before it takes one: file creation then
# costs five times as much and more, and it is another tool's turn each time (ext4/ialloc.c, recently_deleted()).
QUIET_SECONDS = 360
MANY_FILES = 10_000


def fail(what, hint, code):
    print(f"error: {what}\nhint: {hint}", file=sys.stderr)
    raise SystemExit(code)


def say(text):
    print(text, file=sys.stderr, flush=True)


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("wants a number from 1 on")
    return number


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(message, "see scripts/bench web --help", 64)


def arguments():
    parser = Parser(
        prog="scripts/bench web",
        description="Downloads the same list with every tool, and counts what each left on disk.",
        epilog="example: scripts/bench web --count 2000 --reps 2 --only prefetch,bare",
    )
    parser.add_argument("--count", type=positive, default=40_000, help="requests; an eighth as many images (40000)")
    parser.add_argument("--reps", type=positive, default=5, help="repetitions (5)")
    parser.add_argument("--work", default="/var/tmp", help="a folder with room; all below is removed at the end (/var/tmp)")
    parser.add_argument("--only", default="", help="names of tools, with commas in between")
    parser.add_argument("--no-bad", action="store_true", help="no broken bodies, no 404")
    parser.add_argument("--seed", type=int, default=1, help="of the images and the order of the list (1)")
    parser.add_argument("--server-workers", type=positive, default=min(2, os.cpu_count()), help="processes of nginx")
    parser.add_argument("--truncate", action="store_true", help="empty the files of a run once they are counted: less room")
    parser.add_argument("--priority", action="store_true", help="client and server go before other programs; needs root")
    parser.add_argument("--json", metavar="FILE", help="all measured values")
    parser.add_argument("--page", metavar="FILE", help="put the tables into this page, in place of those before")
    parser.add_argument("--readme", metavar="FILE", action="append", default=[], help="put a short table into this file; may be repeated")
    parser.add_argument("--keep", action="store_true", help="leave the files of every run")
    # What scripts/bench has built.
    parser.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--bare", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--jpeg-package", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--typed", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def wait_for_quiet(mark):
    """Where an earlier measurement has removed its files from here, waits until that costs nobody anything."""
    try:
        left_to_wait = os.stat(mark).st_mtime + QUIET_SECONDS - time.time()
    except FileNotFoundError:
        return
    if 0 < left_to_wait <= QUIET_SECONDS:
        say(f"waiting {left_to_wait:.0f} s: the files of an earlier measurement were removed from here just now")
        time.sleep(left_to_wait)


def check_room(work, corpus, runs, truncate):
    """Deleting in between would be cheaper and would falsify the rest: ext4 then looks at recently freed inodes one by one."""
    full = 2 if truncate else runs
    need = full * QUERIES * (corpus.bytes + corpus.images * FILE_OVERHEAD) + MARGIN
    files = runs * QUERIES * corpus.images
    place = os.statvfs(work)
    free = place.f_bavail * place.f_frsize
    say(
        f"disk: {need / 1e9:.1f} GB and {files:,} files needed, since nothing is deleted between {runs} runs; "
        f"{free / 1e9:.1f} GB and {place.f_favail:,} files free in {work}"
    )
    if need > free or (place.f_files and files > place.f_favail):
        fail(f"not enough room in {work}", "name another folder with --work, fewer --reps, or --truncate", 73)


def run_once(tool, folder, server, requests, priority):
    """One run in a fresh folder, measured from outside."""
    os.makedirs(folder)
    words = tool.command(folder)
    log = folder + ".log"
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with open(log, "wb") as output:
        noise, served = machine.busy_seconds(), server.seconds()
        started = time.monotonic()
        # GNU time, since what getrusage(2) calls the largest size begins with that of the program that forked: this one.
        child = subprocess.Popen(
            ["/usr/bin/time", "-q", "-f", "%M", "-o", folder + ".size", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        try:
            if priority:
                machine.prefer(child.pid)
            # Its own usage and that of every descendant it has waited for (getrusage(2), RUSAGE_CHILDREN).
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        wall = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    served = server.seconds() - served
    noise = max(0.0, machine.busy_seconds() - noise - cpu - served) / wall
    with open(folder + ".size", encoding="ascii") as file:
        largest = int(file.read()) * 1024
    return {
        "tool": tool.name,
        "command": shlex.join(words),
        "requests": requests,
        "exit_code": child.returncode,
        "wall_seconds": round(wall, 4),
        "client_cpu_seconds": round(cpu, 4),
        "client_user_seconds": round(usage.ru_utime, 4),
        "server_cpu_seconds": round(served, 2),
        "largest_process_bytes": largest,
        "noise_cores": round(noise, 3),
    }


def measure(options, tools, corpus, server, folder, urls):
    rows = {tool.name: [] for tool in tools}
    complaints = []
    for repetition in range(options.reps):
        turn = repetition % len(tools)
        for tool in tools[turn:] + tools[:turn]:
            # What earlier runs wrote has to be on disk, and the server's files in memory, before the clock starts.
            os.sync()
            corpus.warm()
            machine.touch_memory(QUERIES * corpus.bytes + (512 << 20))
            place = f"{folder}/runs/{repetition + 1}-{tool.name}"
            row = run_once(tool, place, server, len(urls), options.priority)
            os.sync()
            row["repetition"] = repetition + 1
            row["left"] = left.count(place, corpus, QUERIES, thoroughly=repetition == 0)
            rows[tool.name].append(row)
            if options.truncate:
                left.empty(place)
            rate = len(urls) / row["wall_seconds"]
            say(
                f"{repetition + 1}/{options.reps} {tool.name}: {row['wall_seconds']:.2f} s, {rate:,.0f} requests/s, "
                f"{row['client_cpu_seconds'] / len(urls) * 1e6:.0f} us CPU, others {row['noise_cores']:.2f} cores, {row['left']}"
            )
            if row["exit_code"] not in tool.codes:
                complaints.append(f"{tool.name} ended with {row['exit_code']} in repetition {repetition + 1}")
                with open(place + ".log", encoding="utf-8", errors="replace") as log:
                    say("".join(log.readlines()[-5:]))
    return rows, complaints


def main():
    options = arguments()
    if options.priority and os.geteuid() != 0:
        fail("only root may use --priority", "leave it away, and keep the machine quiet", 64)
    # Ends through the clean-up below.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    only = [name for name in options.only.split(",") if name]
    names = [tool.name for tool in all_tools("", "", [], "", "")]
    for name in only:
        if name not in names:
            fail(f"there is no tool '{name}'", "there are " + ", ".join(names), 64)
    options.work = os.path.abspath(options.work)
    os.makedirs(options.work, exist_ok=True)
    mark = f"{options.work}/.prefetch-bench-removed"
    wait_for_quiet(mark)
    written = 0
    work = tempfile.mkdtemp(prefix="prefetch-bench-", dir=options.work)
    server = None
    try:
        images = math.ceil(options.count / QUERIES)
        say(f"corpus: {images:,} images")
        corpus = Corpus(f"{work}/corpus", f"{options.binaries}/prefetch-origin", images, options.seed, not options.no_bad)
        server = Server(f"{work}/nginx", corpus.folder, options.server_workers, options.priority)
        urls = corpus.urls(server.base)
        list_path = f"{work}/urls.txt"
        with open(list_path, "w", encoding="ascii") as file:
            file.writelines(url + "\n" for url in urls)
        tools = all_tools(options.binaries, options.bare, urls, list_path, work)
        chosen = [tool for tool in tools if not only or tool.name in only]
        check_room(work, corpus, len(chosen) * options.reps, options.truncate)
        written = len(chosen) * options.reps * len(urls)
        rows, complaints = measure(options, chosen, corpus, server, work, urls)
        complaints += [f"nginx: {line}" for line in server.complaints()[:5]]
        facts = {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": machine.describe(work, options.jpeg_package),
            "requests": len(urls),
            "repetitions": options.reps,
            "server_workers": options.server_workers,
            "truncated": options.truncate,
            "priority": options.priority,
            "command": options.typed,
            "complaints": complaints,
        }
        described = {
            "images": corpus.images,
            "kinds": corpus.kinds,
            "seed": corpus.seed,
            "bytes": corpus.bytes,
            "queries": QUERIES,
            "broken": len(corpus.broken),
            "missing": corpus.missing,
        }
        page.publish(options.page, SCRIPT, [report.markdown(facts, described, tools, rows)])
        for path in options.readme:
            page.put(path, SCRIPT, report.short(facts, tools, rows))
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"v": 1, **facts, "corpus": described, "runs": rows}, file, indent=1)
                file.write("\n")
        return 1 if complaints else 0
    finally:
        if server:
            server.stop()
        if options.keep:
            say(f"kept: {work}")
        else:
            shutil.rmtree(work)
            say("removed the files of all runs")
            if written >= MANY_FILES:
                with open(mark, "w", encoding="ascii"):
                    pass


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
