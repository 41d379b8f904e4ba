"""File systems to try a cache on: how each is made and mounted, and what it can do."""

import ctypes
import fcntl
import mmap
import os
import shutil
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)
RENAME_NOREPLACE = 1
FICLONE = 0x40049409
AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400


class Missing(Exception):
    """Why there is no such file system here."""


def shell(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        said = done.stdout.strip().splitlines()
        raise Missing(f"{words[0]}: {said[-1] if said else done.returncode}")


def known(kind):
    with open("/proc/filesystems", encoding="ascii") as kinds:
        return any(line.split()[-1] == kind for line in kinds)


def wants(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Missing(f"{program} is not installed")


def loop(kind, *options):
    """A file system in a file of 512 MB."""

    def mount(folder):
        if not known(kind):
            raise Missing("not in this kernel")
        wants(f"mkfs.{kind}")
        image, place = f"{folder}/image", f"{folder}/mnt"
        os.mkdir(place)
        shell("truncate", "-s", "512M", image)
        shell(f"mkfs.{kind}", *(["-q", "-F"] if kind.startswith("ext") else ["-q", "-f"]), image)
        shell("mount", "-t", kind, "-o", ",".join(["loop", *options]), image, place)
        return place

    return mount


def plain(kind, *options):
    def mount(folder):
        if not known(kind):
            raise Missing("not in this kernel")
        place = f"{folder}/mnt"
        os.mkdir(place)
        shell("mount", "-t", kind, *(["-o", ",".join(options)] if options else []), kind, place)
        return place

    return mount


def overlay(folder):
    if not known("overlay"):
        raise Missing("not in this kernel")
    base = loop("ext4")(folder)
    place = f"{folder}/overlay"
    for name in ("lower", "upper", "work"):
        os.mkdir(f"{base}/{name}")
    os.mkdir(place)
    shell("mount", "-t", "overlay", "-o", f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work", "overlay", place)
    return place


def bindfs(folder):
    """FUSE in front of ext4 that lets no attribute through."""
    wants("bindfs")
    base = loop("ext4")(folder)
    place = f"{folder}/fuse"
    os.mkdir(place)
    shell("bindfs", "--xattr-none", base, place)
    return place


def fuse_exfat(folder):
    """What stands in for vfat: no attributes, no hard links, no owners."""
    wants("mkfs.exfat", "mount.exfat-fuse", "losetup")
    image, place = f"{folder}/image", f"{folder}/mnt"
    os.mkdir(place)
    shell("truncate", "-s", "512M", image)
    shell("mkfs.exfat", image)
    device = subprocess.run(["losetup", "-f", "--show", image], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    try:
        shell("mount.exfat-fuse", device, place)
    finally:
        # It goes when the file system does.
        shell("losetup", "-d", device)
    return place


def absent(kind):
    def mount(_):
        raise Missing("in this kernel, and not tried here" if known(kind) else "not in this kernel")

    return mount


KINDS = {
    "ext4": loop("ext4"),
    "ext2": loop("ext2"),
    "xfs": loop("xfs"),
    "btrfs": loop("btrfs"),
    "tmpfs": plain("tmpfs", "size=512m"),
    "ramfs": plain("ramfs"),
    "overlay over ext4": overlay,
    "bindfs (FUSE) without attributes": bindfs,
    "exfat (FUSE)": fuse_exfat,
    "vfat": absent("vfat"),
    "nfs": absent("nfs"),
    "nfs4": absent("nfs4"),
}


def call(body):
    try:
        body()
        return True
    except OSError:
        return False


def check(code):
    if code < 0:
        raise OSError(ctypes.get_errno(), "")


def features(place):
    """What the file system does when it is asked, in the manner of the cache: by the name of each."""
    one, two = f"{place}/one".encode(), f"{place}/two".encode()

    def unnamed():
        file = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
        try:
            check(LIBC.linkat(AT_FDCWD, f"/proc/self/fd/{file}".encode(), AT_FDCWD, two, AT_SYMLINK_FOLLOW))
        finally:
            os.close(file)

    def attribute():
        os.setxattr(one, "user.prefetch", bytes(64))

    def link():
        os.link(one, two)

    def exclusive():
        check(LIBC.renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_NOREPLACE))

    def clone():
        with open(one, "rb") as source, open(two, "wb") as target:
            fcntl.ioctl(target, FICLONE, source.fileno())

    def lock():
        with open(one, "r+b") as file:
            # F_OFD_SETLK with a struct flock of the first byte.
            fcntl.fcntl(file, 37, b"\x01\0\0\0" + bytes(4) + bytes(8) + (1).to_bytes(8, "little") + bytes(8))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def shared():
        with open(one, "r+b") as file, mmap.mmap(file.fileno(), 4096) as area:
            area[0] = 1

    found = {}
    for name, body in (
        ("unnamed files", unnamed), ("attributes", attribute), ("hard links", link), ("rename without replacing", exclusive),
        ("shared blocks", clone), ("locks", lock), ("shared memory", shared)):  # fmt: skip
        for path in (one, two):
            if os.path.lexists(path):
                os.unlink(path)
        with open(one, "wb") as file:
            file.write(bytes(4096))
        found[name] = call(body)
    for path in (one, two):
        if os.path.lexists(path):
            os.unlink(path)
    return found


def unmount(folder):
    """Everything below a folder, the innermost first."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        places = [line.split()[1] for line in mounts]
    for place in sorted((place for place in places if place.startswith(folder + "/")), key=len, reverse=True):
        done = subprocess.run(["umount", place], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)
