"""What a run left on disk."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor


def files(folder):
    """Every file below, but for what prefetch keeps beside its images: its queue, and a mark for backup programs."""
    for root, folders, names in os.walk(folder):
        if ".prefetch" in folders:
            folders.remove(".prefetch")
        for name in names:
            if name != "CACHEDIR.TAG":
                yield os.path.join(root, name)


def empty(folder):
    """Gives the room back without freeing an inode."""
    for path in files(folder):
        os.chmod(path, 0o600)
        os.truncate(path, 0)


def read(path, thoroughly):
    """Size and, if thoroughly, digest; the pages leave the cache, so that later runs find the memory as the first one did."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest() if thoroughly else None
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return digest, os.fstat(file.fileno()).st_size


def count(folder, corpus, thoroughly):
    """Good, other and missing files by content, and when each good one got its name, in order; without `thoroughly` only how many files and bytes
    there are."""
    paths = list(files(folder))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: read(path, thoroughly), paths))
    found, times = {"files": len(results), "bytes": sum(size for _, size in results)}, []
    if not thoroughly:
        return found, times
    wanted = corpus.good
    for path, (digest, _) in zip(paths, results):
        if wanted.get(digest, 0) > 0:
            wanted[digest] -= 1
            # Not the time of change of its bytes, which follows what a server says of its age.
            times.append(os.stat(path).st_ctime)
    return found | {"good": len(times), "other": len(paths) - len(times), "missing": sum(wanted.values())}, sorted(times)
