"""A short list behind a long one: how long it takes while three workers are busy with ten million URLs."""

import signal
import statistics
import time

from images import Images, write
from rig import Redis, Workers, fail, say
from server import Server
from table import Section

SHORT, ROUNDS, LIMIT = 100, 10, 3.0


def behind(rig, count):
    images = Images(rig)
    server = Server(f"{rig.work}/nginx-behind", images.folder, 1, False)
    redis = Redis(rig, "redis-behind")
    workers = Workers(rig, redis, f"{rig.work}/cache-behind", "behind")
    try:
        path = f"{rig.work}/long.txt"
        say(f"behind: writing a list of {count:,}")
        write(path, (f"{server.base}/{images.paths[n % len(images.paths)]}?{n}\n" for n in range(count)))
        say("behind: running")
        feeder = rig.start([rig.program("coord"), "submit", path, "--redis", redis.url, "--name", "long"], rig.work, "long")
        for _ in range(6000):
            if int(redis.command("HGET", "prefetch:{default}:b:long", "finished") or 0) >= 1000:
                break
            if not feeder.look() and feeder.code != 0:
                fail("the long list was not queued", feeder.errors().strip(), 70)
            time.sleep(0.01)
        times, exact = [], 0
        for number in range(ROUNDS):
            short = f"{rig.work}/short{number}.txt"
            write(short, (f"{server.base}/{images.paths[n]}?short{number}\n" for n in range(SHORT)))
            child, result = rig.submit(redis, short, f"short{number}")
            times.append(child.wall)
            exact += result["outcomes"]["downloaded"] == SHORT
        done = int(redis.command("HGET", "prefetch:{default}:b:long", "finished"))
        feeder.stop(signal.SIGKILL)
    finally:
        workers.stop()
        redis.stop()
        server.stop()
    section = Section(
        f"behind: {SHORT} URLs submitted behind {count:,}",
        f"{ROUNDS} times, one after another; the time is that of the whole `submit --wait`. {done:,} URLs of the long list had ended by then.",
    )
    section.exact("short lists with every URL `downloaded`", ROUNDS, exact)
    section.row("the slowest", f"< {LIMIT:.0f} s", f"{max(times):.2f} s (median {statistics.median(times):.2f})", max(times) < LIMIT)
    return section
