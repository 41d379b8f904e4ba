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


def read(path):
    """Digest and size; the pages leave the cache, so that later runs find the memory as the first one did."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
        size = file.tell()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return digest.hexdigest(), size


def look(path):
    """Size only, and the pages leave the cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return None, os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def count(folder, corpus, thoroughly):
    """Good, other and missing files by content; without `thoroughly` only how many files and bytes there are."""
    paths = list(files(folder))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(read if thoroughly else look, paths, chunksize=64))
    found = {"files": len(results), "bytes": sum(size for _, size in results)}
    if not thoroughly:
        return found
    wanted = corpus.good
    good = other = last = 0
    for path, (digest, _) in zip(paths, results):
        if wanted.get(digest, 0) > 0:
            wanted[digest] -= 1
            good += 1
            # When it got its name: what a server says of its age changes the other time.
            last = max(last, os.stat(path).st_ctime)
        else:
            other += 1
    found.update(good=good, other=other, missing=sum(wanted.values()), last=last)
    return found


def times(folder, corpus, began):
    """When each good image got its name, in seconds after `began`, in order."""
    paths = list(files(folder))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(read, paths, chunksize=64))
    wanted, moments = corpus.good, []
    for path, (digest, _) in zip(paths, results):
        if wanted.get(digest, 0) > 0:
            wanted[digest] -= 1
            moments.append(os.stat(path).st_ctime - began)
    return sorted(moments)
