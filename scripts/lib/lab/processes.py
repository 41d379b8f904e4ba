"""Processes that end with this one, and only those: every signal goes to a pid that was started here and not waited for yet."""

import os
import signal
import subprocess

CLEAN = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
for name in ("REDIS_URL", "PREFETCH_REDIS_URL", "PREFETCH_CACHE", "REDISCLI_AUTH"):
    CLEAN.pop(name, None)
BOUND = ["setpriv", "--pdeathsig", "KILL"]
started = []


def start(words, log=None, output=None, environment=None, joins=False, **more):
    """Starts a program that ends with this one; `joins`: its errors are part of its output. Only from the main thread: the kernel sends the death
    signal when the thread that forked ends (prctl(2))."""
    file = open(log, "ab") if log else subprocess.DEVNULL
    child = subprocess.Popen(
        [*BOUND, *words],
        stdin=subprocess.DEVNULL,
        stdout=output if output is not None else file,
        stderr=subprocess.STDOUT if joins else file,
        env=CLEAN if environment is None else environment,
        start_new_session=True,
        **more,
    )
    if log:
        file.close()
    started.append(child)
    return child


def reap():
    """Forgets those that have ended."""
    started[:] = [child for child in started if child.poll() is None]


def end_all():
    """Each with what it started in its group."""
    reap()
    for child in reversed(started):
        try:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            pass
    reap()
