"""The measurements at full size. Called by scripts/scale."""

import argparse
import datetime
import os
import shutil
import signal
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

import behind  # noqa: E402
import entries  # noqa: E402
import large  # noqa: E402
import machine  # noqa: E402
import small  # noqa: E402
from rig import Child, Rig, fail, say  # noqa: E402

COUNTS = {
    "hits": 10_000_000,
    "submit": 10_000_000,
    "transfers": 1_000_000,
    "failures": 1_000_000,
    "blacklist": 1_000_000,
    "batches": 10_000,
    "idle": 100,
    "behind": 10_000_000,
    "cache": 1_000_000,
}
# Bytes in the work folder for each unit of --count: lists, images, and what Redis writes of them.
ROOM = {"hits": 400, "submit": 250, "transfers": 6_500, "failures": 3_000, "blacklist": 3_000, "batches": 100_000, "idle": 1_000_000, "behind": 100,
        "cache": 5_000}


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("wants a number from 1 on")
    return number


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(message, "see scripts/scale --help", 64)


def arguments():
    parser = Parser(
        prog="scripts/scale",
        description="Measures the queue at its full size with the release programs and a redis-server of its own.",
        epilog="example: scripts/scale hits --count 200000",
    )
    parser.add_argument("what", nargs="*", default="all", choices=[*COUNTS, "all"], help="which measurements; all of them by default")
    parser.add_argument("--count", type=positive, help="URLs, batches or submits, for a quick look; by default the full target")
    parser.add_argument(
        "--work", default="/dev/shm", help="a folder with room; all that is made below is removed at the end (/dev/shm, in memory)")
    parser.add_argument("--priority", action="store_true", help="all that is started goes before other programs; needs root")
    parser.add_argument("--page", metavar="FILE", help="write what is printed into this page too, in place of what is there")
    parser.add_argument("--keep", action="store_true", help="leave lists, logs and caches")
    # What scripts/scale has built.
    parser.add_argument("--binaries", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--typed", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(rig, wanted, count):
    """The sections, in the order of the names."""

    def size(name):
        return count or COUNTS[name]

    for name in ("hits", "submit"):
        if name in wanted:
            yield getattr(large, name)(rig, size(name))
    if "failures" in wanted or "blacklist" in wanted:
        yield from large.failing(rig, size("failures"), wanted)
    if "idle" in wanted:
        yield small.idle(rig, size("idle"))
    if "behind" in wanted:
        yield behind.behind(rig, size("behind"))
    if "transfers" in wanted:
        yield large.transfers(rig, size("transfers"))
    if "batches" in wanted:
        yield small.batches(rig, size("batches"))
    if "cache" in wanted:
        yield entries.entries(rig, size("cache"))


def head(options, wanted, work, load):
    facts = machine.describe(work, "libjpeg62-turbo-dev")
    return [
        "# Scale of a cache" if wanted == ["cache"] else "# Scale",
        "",
        "The whole output of the command at its end, which measures it again on your machine.",
        "",
        f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, {facts['cores']} cores ({facts['processor']}), "
        f"{facts['memory_gib']} GiB, kernel {facts['kernel']}, files on {facts['file_system']}, Redis's append-only file too; everything "
        f"shares the cores. redis {facts['redis']}, nginx {facts['nginx']}, libjpeg-turbo {facts['libjpeg-turbo']}, libpng {facts['libpng']}. "
        f"Release build. Load average when it began: {load:.1f}{'; what is measured went before other programs (--priority)' if options.priority else ''}.",
        "",
    ]


def main():
    options = arguments()
    if options.priority and os.geteuid() != 0:
        fail("only root may use --priority", "leave it away, and keep the machine quiet", 64)
    Child.priority = options.priority
    wanted = list(COUNTS) if "all" in options.what else options.what
    # Ends through the clean-up below.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.work = os.path.abspath(options.work)
    os.makedirs(options.work, exist_ok=True)
    place = os.statvfs(options.work)
    need = max(ROOM[name] * (options.count or COUNTS[name]) for name in wanted) + (256 << 20)
    if need > place.f_bavail * place.f_frsize:
        fail(
            f"{need / 1e9:.1f} GB are needed in {options.work}, {place.f_bavail * place.f_frsize / 1e9:.1f} GB are free",
            "name another folder with --work, or a smaller --count", 73)  # fmt: skip
    load = os.getloadavg()[0]
    if options.page and not os.path.isdir(os.path.dirname(os.path.abspath(options.page))):
        fail(f"there is no folder for {options.page}", "name a page in a folder that is there", 73)
    work = tempfile.mkdtemp(prefix="prefetch-scale-", dir=options.work)
    page = []

    def tell(text):
        print(text, flush=True)
        page.append(text)

    rig = Rig(work, options.binaries)
    missed = []
    try:
        tell("\n".join(head(options, wanted, work, load)))
        for section in measure(rig, wanted, options.count):
            tell("\n".join(section.lines()))
            missed += [f"{section.title}: {row[0]}" for row in section.missed]
        tell(f"Every target met.\n\n`{options.typed}`" if not missed else f"Missed: {'; '.join(missed)}.\n\n`{options.typed}`")
        if options.page:
            with open(options.page, "w", encoding="utf-8") as file:
                file.writelines(f"{text}\n" for text in page)
        return 1 if missed else 0
    finally:
        rig.end()
        if options.keep:
            say(f"kept: {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
