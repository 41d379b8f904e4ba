"""What a measurement was made on, and what else ran meanwhile."""

import glob
import mmap
import os
import platform
import re
import subprocess

TICK = os.sysconf("SC_CLK_TCK")


def version(command):
    """The first number with dots a program prints about itself."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    except OSError:
        return "missing"
    found = re.search(r"\d+(\.\d+)+[\w.-]*", done.stdout)
    return found.group(0) if found else "unknown"


def file_system(path):
    """Of a folder. Of ext4 whether it has a journal: without one it searches past all inodes that were freed in the last minutes for each new file."""
    best = ("", "unknown", "")
    real = os.path.realpath(path)
    with open("/proc/mounts", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            device, point, kind = line.split()[:3]
            inside = real == point or real.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best[0]):
                best = (point, kind, os.path.basename(os.path.realpath(device)))
    _, kind, device = best
    journals = os.listdir("/proc/fs/jbd2") if os.path.isdir("/proc/fs/jbd2") else []
    has_none = kind == "ext4" and os.path.exists(f"/sys/class/block/{device}") and not any(name.startswith(f"{device}-") for name in journals)
    return kind + (" without a journal" if has_none else "")


def processor():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        found = re.search(r"model name\s*:\s*(.*)", info.read())
    return found.group(1).strip() if found else platform.machine()


def memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def busy_seconds():
    """Processor time of everything on the machine."""
    with open("/proc/stat", encoding="ascii") as stat:
        fields = [int(word) for word in stat.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK


def process_seconds(pid):
    """Processor time of one process so far."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def children(pid):
    """Of all threads: each has those that it started."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as names:
                found += [int(word) for word in names.read().split()]
        except OSError:
            continue
    return found


def touch_memory(size):
    """Uses so much memory once and gives it back.

    A virtual machine may have handed its free pages back to the host; the first use of such a page costs several times the
    rest of what a download does with it, and would be charged to whoever runs after a pause.
    """
    with open("/proc/meminfo", encoding="ascii") as info:
        free = int(re.search(r"MemAvailable:\s*(\d+)", info.read()).group(1)) * 1024
    size = min(size, free // 2) // mmap.PAGESIZE * mmap.PAGESIZE
    if size <= 0:
        return
    with mmap.mmap(-1, size) as memory:
        page = bytes(1 << 20)
        for start in range(0, size - len(page) + 1, len(page)):
            memory[start : start + len(page)] = page


def accepted_connections():
    """TCP connections that programs of this machine have accepted since its start (PassiveOpens, RFC 4022)."""
    with open("/proc/net/snmp", encoding="ascii") as file:
        names, values = (line.split() for line in file if line.startswith("Tcp:"))
    return int(values[names.index("PassiveOpens")])
