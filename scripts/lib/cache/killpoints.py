"""Kills a publish, a sweep, an export of shards and a run that writes some at each of their first system calls, and looks what is left.

strace(1) sends SIGKILL when the program enters a call that can change a disk, each of them in turn. Between two of them nothing on the disk
changes, so these are all the states that a kill at any call can leave. Afterwards nothing may be torn, nothing may lie about, and the same
command has to finish the work.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import png
import rig
from outcomes import place

IMAGES = 24
# Calls that change files, folders, names or attributes, lock or write out. The cache opens what it makes with openat2; openat and mmap, which
# the dynamic linker calls in another thread, are left out, since strace counts the calls of each thread.
CHANGING = (
    "mkdir,mkdirat,rmdir,openat2,write,writev,pwrite64,pwritev,ftruncate,fallocate,link,linkat,symlinkat,rename,renameat,renameat2,unlink,"
    "unlinkat,fsetxattr,setxattr,fremovexattr,fchmod,fchmodat,fchown,utimensat,flock,fcntl,copy_file_range,fsync,fdatasync,syncfs,exit_group"
).split(",")
# As on a file system that has neither unnamed files nor attributes.
PLAIN = ["-e", "inject=access:error=ENOENT", "-e", "inject=fsetxattr,setxattr:error=EOPNOTSUPP"]
# Of these only the calls that make or lock something.
ONLY_WITH = {"openat2": ("O_CREAT", "O_TMPFILE"), "fcntl": ("SETLK",)}


def run(words, **options):
    # A leak checker stops the program's threads with ptrace, which strace has already.
    if words[0] == "strace":
        sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"
        options["env"] = {**os.environ, "ASAN_OPTIONS": sanitizer}
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)


class Bench:
    def __init__(self, binaries, work):
        self.coord, self.work = os.path.join(binaries, "prefetch-coord"), work
        self.cache = work / "cache"
        self.image = work / "image.png"
        self.image.write_bytes(png.noise(1, 50))
        self.url = "http://h/1.png"

    def clear(self, template=None):
        """The cache is gone, or as that one is."""
        shutil.rmtree(self.cache, ignore_errors=True)
        if template:
            shutil.copytree(template, self.cache)

    def path(self):
        return pathlib.Path(place(str(self.cache), self.url))

    def litter(self, cache=None):
        cache = cache or self.cache
        return [str(found.relative_to(cache)) for found in cache.rglob(".t-*")] if cache.exists() else []

    def sweep(self, names, cache=None):
        """Removes what lies about, once it is old."""
        cache = cache or self.cache
        for name in names:
            os.utime(cache / name, (0, 0), follow_symlinks=False)
        run([self.coord, "cache", "gc", "--yes", "--max-size", "1000GB", "--cache", str(cache)])
        if self.litter(cache):
            raise AssertionError(f"gc leaves {self.litter(cache)}")

    def count(self, cache=None):
        """Images, all whole; a sentence where one is not."""
        cache = cache or self.cache
        if not (cache / "v1").exists():
            return 0
        verify = run([self.coord, "cache", "verify", "--cache", str(cache)])
        if verify.returncode != 0 or ", 0 damaged" not in verify.stdout:
            raise AssertionError(f"verify: {verify.stdout}{verify.stderr}")
        return int(verify.stdout.split(" file")[0].split()[-1].replace(",", ""))

    def calls(self, words, inject=(), mark=None):
        """Of the thread that works on the cache, from its first word of the cache on, or of `mark`: how many system calls it makes, and those of
        them that can change a disk, each with its number among those of its name."""
        log = self.work / "calls"
        done = run(["strace", "-f", "-s", "400", "-o", str(log), *inject, *words])
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        threads = {}
        for line in log.read_text(errors="replace").splitlines():
            pid, _, text = line.partition(" ")
            text = text.strip()
            name = text.partition("(")[0]
            if not text.startswith(("+++", "---", "<...", "execve")) and name.isidentifier():
                changes = name in CHANGING and any(word in text for word in ONLY_WITH.get(name, ("",)))
                threads.setdefault(pid, []).append((name, changes, (mark or f'"{self.cache}') in text))
        for calls in threads.values():
            first = next((place for place, (_, _, names) in enumerate(calls) if names), None)
            if first is not None:
                seen, found = {}, []
                for place, (name, changes, _) in enumerate(calls):
                    seen[name] = seen.get(name, 0) + 1
                    if place >= first and changes:
                        found.append((name, seen[name]))
                return len(calls) - first, found
        raise AssertionError(f"{words}: no call names {mark or 'the cache'}")

    def kill(self, words, call, inject=()):
        """True where it was killed there, false where it ended before."""
        name, number = call
        done = run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:signal=SIGKILL:when={number}", *inject, *words])
        return done.returncode != 0


def publish(bench, most, step, mode):
    """`mode`: whether the cache is there already, and whether it has unnamed files and attributes."""
    words = [bench.coord, "cache", "import", str(bench.image), "--url", bench.url, "--cache", str(bench.cache)]
    inject = PLAIN if mode == "plain" else []
    first = "http://h/other.png"

    def prepare():
        bench.clear()
        if mode != "new":
            run([*words[:5], first, *words[6:]])

    base = 0 if mode == "new" else 1
    prepare()
    total, calls = bench.calls(words, inject)
    killed = done = litter = 0
    for call in calls[:most:step]:
        prepare()
        killed += bench.kill(words, call, inject)
        there = bench.path().exists()
        if there and bench.path().read_bytes() != bench.image.read_bytes():
            raise AssertionError(f"call {call}: the file is torn")
        done += there
        if bench.count() != base + there:
            raise AssertionError(f"call {call}: {bench.count()} images")
        left = bench.litter()
        litter += len(left)
        if left and mode != "plain":
            raise AssertionError(f"call {call}: {left}")
        again = run(words)
        if again.returncode != 0 or bench.count() != base + 1:
            raise AssertionError(f"call {call}, again: {again.stderr}")
        if left:
            bench.sweep(left)
    kinds = {"new": "a publish that makes the cache", "old": "a publish", "plain": "a publish without unnamed files and attributes"}
    rest = f", {litter} temporary files left for gc" if mode == "plain" else ""
    print(f"{kinds[mode]}: {total} system calls, {len(calls)} of which can change a disk; killed at {killed} of these: {killed - done} times nothing, {done} times the whole file{rest}", flush=True)


def sweep(bench, most, step):
    words = [bench.coord, "cache", "gc", "--yes", "--max-size", str(IMAGES // 2 * 24_576), "--cache", str(bench.cache)]
    full = bench.work / "full"
    for number in range(IMAGES + 1):
        url = f"http://h/{number}.png"
        run([bench.coord, "cache", "import", str(bench.image), "--url", url, "--cache", str(full)])
        then = time.time() - 3600 * (IMAGES - number)
        os.utime(place(str(full), url), (then, then))
    bench.clear(full)
    total, calls = bench.calls(words)
    wanted = bench.count()
    killed, seen = 0, set()
    for call in calls[:most:step]:
        bench.clear(full)
        killed += bench.kill(words, call)
        left = bench.count()
        seen.add(left)
        if not wanted <= left <= IMAGES + 1 or bench.litter():
            raise AssertionError(f"call {call}: {left} images, {bench.litter()}")
        again = run(words)
        if again.returncode != 0 or bench.count() != wanted:
            raise AssertionError(f"call {call}, again: {again.stderr}, {bench.count()} images and not {wanted}")
        usage = run([bench.coord, "cache", "gc", "--max-size", "1000GB", "--dry-run", "--json", "--cache", str(bench.cache)])
        if f'"remaining":{{"count":{wanted},' not in usage.stdout:
            raise AssertionError(f"call {call}, account: {usage.stdout}")
    print(f"a sweep: {total} system calls, {len(calls)} of which can change a disk; killed at {killed} of these: {min(seen)} to {max(seen)} of {IMAGES + 1} images left, all whole", flush=True)


def shards(bench, most, step):
    """Of a folder whose second shard gets an image that it did not have."""
    bench.clear()
    urls = [f"http://h/{number}.png" for number in range(5)]
    (bench.work / "urls.txt").write_text("".join(f"{url}\n" for url in urls))
    place = ["--cache", str(bench.cache), "--state", str(bench.work / "state")]
    before, out, after = (bench.work / name for name in ("before", "out", "after"))

    def export(folder):
        return [bench.coord, "export", "--format", "webdataset", "--sidecar", "jsonl", "--per-shard", "2", "--out", str(folder), *place]

    def must(words, code=0):
        done = run(words)
        if done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}, {done.stderr}")

    def files(folder):
        """Without the name that a file has until it takes the place of another."""
        return {found.name: found.read_bytes() for found in folder.iterdir() if not found.match(".prefetch-*.tmp")}

    for number in (0, 1, 2, 4, 3):
        if number == 3:
            must([bench.coord, "run", str(bench.work / "urls.txt"), "--options", "fromCacheOnly", "-q", "-n", "1", *place], 3)
            must(export(before))
        must([bench.coord, "cache", "import", str(bench.image), "--url", urls[number], "--cache", str(bench.cache)])
    must([bench.coord, "retry", "-q", "-n", "1", *place])
    shutil.copytree(before, after)
    must(export(after))
    old, new = files(before), files(after)

    def prepare():
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(before, out)

    prepare()
    total, calls = bench.calls(export(out), mark='"00001.tar"')
    killed, whole, litter = 0, 0, 0
    for call in calls[:most:step]:
        prepare()
        killed += bench.kill(export(out), call)
        litter += len(list(out.glob(".prefetch-*.tmp")))
        left = files(out)
        named = {name: text for name, text in left.items() if not name.startswith(".")}
        if sorted(named) != sorted(new) or any(text not in (old[name], new[name]) for name, text in named.items()):
            raise AssertionError(f"call {call}: {sorted(left)}, or torn")
        if named["00001_stats.json"] == new["00001_stats.json"]:
            whole += 1
            if named != new:
                raise AssertionError(f"call {call}: stats of files that are not there")
        must(export(out))
        if files(out) != new:
            raise AssertionError(f"call {call}, again: {sorted(files(out))}, or others")
    print(f"an export of a shard that has got an image: {total} system calls, {len(calls)} of which can change a disk; killed at {killed} of these: {whole} times all its files, {litter} temporary names left", flush=True)


def own_cache(bench, most, step):
    """Of a run whose cache lies in its folder of shards: once a shard is written, links take the place of its images. Only the program itself is
    traced and killed, not its workers."""
    names = [f"http://h/{number}.png" for number in range(6)]
    (bench.work / "own.txt").write_text("".join(f"{url}\n" for url in names))
    template, out, state = (bench.work / name for name in ("own", "shards", "own-state"))
    cache = out / ".prefetch"
    for number, url in enumerate(names):
        # The third has the same bytes as the first, in another shard; the fourth as the third, in the same.
        bench.image.write_bytes(png.noise(1 if number in (0, 2, 3) else number + 1, 50))
        run([bench.coord, "cache", "import", str(bench.image), "--url", url, "--cache", str(template / ".prefetch")])
    words = [
        bench.coord, "run", str(bench.work / "own.txt"), "--options", "fromCacheOnly", "-q", "-n", "1", "--format", "webdataset", "--sidecar", "jsonl",
        "--per-shard", "2", "--add-columns", "duplicate_of", "--out", str(out), "--cache", str(cache), "--state", str(state)]

    def prepare():
        for folder in (out, state):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, out)

    def files():
        """Without the times."""
        named = {found.name: found.read_bytes() for found in out.iterdir() if found.is_file() and not found.name.startswith(".")}
        for name, text in named.items():
            if name.endswith(".json"):
                stats = json.loads(text)
                named[name] = {key: stats[key] for key in ("count", "successes", "status_dict", "lines_sha256", "columns")}
        return named

    def images():
        """Files, and links, in the cache."""
        found = [path for path in (cache / "v1").rglob("*") if not path.match(".t-*") and (path.is_symlink() or path.is_file())]
        return sum(not path.is_symlink() for path in found), sum(path.is_symlink() for path in found)

    only = ["-b", "execve"]
    prepare()
    total, calls = bench.calls(words, only, mark='"00000.tar"')
    # What its other threads do, too, is in no order.
    calls = [call for call in calls if call[0] not in ("write", "writev", "fcntl", "exit_group")]
    new = files()
    if images() != (0, len(names)):
        raise AssertionError(f"{images()} files and links")
    killed, whole, linked, litter = 0, 0, 0, 0
    for call in calls[:most:step]:
        prepare()
        killed += bench.kill(words, call, only)
        lying = bench.litter(cache)
        litter += len(lying)
        left = files()
        if any(text != new[name] for name, text in left.items()):
            raise AssertionError(f"call {call}: {sorted(left)}, or torn")
        whole += len(left) == len(new)
        linked += images()[1]
        if bench.count(cache) != len(names):
            raise AssertionError(f"call {call}: {bench.count(cache)} images")
        again = run(words)
        if again.returncode != 0 or files() != new or images() != (0, len(names)) or bench.count(cache) != len(names):
            raise AssertionError(f"call {call}, again: {again.returncode}, {again.stderr}, {sorted(files())}, {images()}")
        if lying:
            bench.sweep(lying, cache)
    print(f"a run whose cache is in its folder of shards: {total} system calls, {len(calls)} of which can change a disk; killed at {killed} of these: {whole} times all its files, {linked} links, {litter} temporary names left for gc, every image there", flush=True)


def main():
    parser = rig.parser("killpoints", __doc__)
    parser.add_argument("--calls", type=rig.positive, default=200, help="how many of each at most")
    parser.add_argument("--step", type=rig.positive, default=1, help="only every so many")
    parser.add_argument("--work", help="a folder; one below TMPDIR by default")
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="killpoints-", dir=options.work))
    try:
        bench = Bench(options.binaries, work)
        for mode in ("new", "old", "plain"):
            publish(bench, options.calls, options.step, mode)
        sweep(bench, options.calls, options.step)
        shards(bench, options.calls, options.step)
        own_cache(bench, options.calls, options.step)
        print("nothing torn, no litter")
        return 0
    except AssertionError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
