"""The benchmark `rate`: how exactly several workers together keep to --rate-per-host. Called by scripts/bench."""

import http.server
import random
import signal
import sys
import threading
import time

import rig

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
)


def origin(times):
    """Notes when each request came."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            times.append(time.monotonic())
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.send_header("Content-Length", str(len(PICTURE)))
            self.end_headers()
            self.wfile.write(PICTURE)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def most_in_a_second(times):
    most = start = 0
    for end, now in enumerate(times):
        while now - times[start] >= 1:
            start += 1
        most = max(most, end - start + 1)
    return most


def arguments():
    parser = rig.parser("rate", "Lets workers fetch from one host with a rate, kills some of them, and reads the host's log.")
    parser.add_argument("--rate", type=float, default=20, help="requests a second (20)")
    parser.add_argument("--seconds", type=rig.positive, default=60, help="how long (60)")
    parser.add_argument("--workers", type=rig.positive, default=4, help="worker processes (4)")
    parser.add_argument("--kills", type=int, default=0, help="workers that are killed meanwhile, and replaced (0)")
    parser.add_argument("--kill-redis", action="store_true", help="kill Redis once, too: then only the most in a second counts")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills (1)")
    return parser.parse_args()


def main():
    options = arguments()
    times = []
    with rig.Rig(options) as bench:
        server = origin(times)
        base = f"http://127.0.0.1:{server.server_address[1]}"
        keep = ("--appendonly", "yes")
        url, redis = bench.redis(*keep)
        count = int(options.rate * (options.seconds + 30)) + 100
        path = bench.write("urls.txt", [f"{base}/{number}.png" for number in range(count)])
        words = [bench.program("prefetch-coord"), "submit", path, "--redis", url, "--job-size", "8", "--window", "all", "--rate-per-host", str(options.rate)]
        bench.run(words)

        def worker():
            words = [bench.program("prefetch-worker"), "--redis", url, "--cache", bench.path("cache"), "--quiet"]
            words += ["--allow-net", "127.0.0.0/8", "--lease", "2s"]
            return bench.start(words)

        workers = [worker() for _ in range(options.workers)]
        while not times:
            time.sleep(0.01)
            if all(child.poll() is not None for child in workers):
                rig.fail("the workers ended before the first request", "start one by hand and see what it says", 70)
        # The workers that came first settle in within a second.
        begin = times[0] + 1
        end = begin + options.seconds
        moments = sorted(random.Random(options.seed).uniform(begin + 2, end - 3) for _ in range(options.kills))
        for moment in moments:
            time.sleep(max(0, moment - time.monotonic()))
            victim = workers.pop(0)
            victim.send_signal(signal.SIGKILL)
            workers.append(worker())
        if options.kill_redis:
            redis.kill()
            redis.wait()
            url, redis = bench.redis(*keep)
        time.sleep(max(0, end - time.monotonic()))
        seen = [moment for moment in times if begin <= moment < end]
        server.shutdown()
    mean, most = len(seen) / options.seconds, most_in_a_second(seen)
    allowed = int(options.rate) + 1
    killed = "once" if options.kill_redis else "no"
    lines = rig.heading("rate", f"{options.rate:g} requests/s to one host, {options.workers} workers")
    lines += [
        "| seconds | workers killed | Redis killed | mean requests/s | most in any second | allowed |",
        "|---|---|---|---|---|---|",
        f"| {options.seconds} | {options.kills} | {killed} | {mean:.2f} | {most} | {options.rate * 0.95:g} to {options.rate:g}, {allowed} |",
    ]
    rig.publish(options, "rate", lines)
    good = most <= allowed and mean <= options.rate and (options.kill_redis or mean >= options.rate * 0.95)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
