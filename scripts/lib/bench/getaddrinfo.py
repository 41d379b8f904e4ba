"""Resolves names with getaddrinfo(3) on a pool of threads: COUNT names hostN.DOMAIN, THREADS at once, a failure again until RETRIES are used up.
Called by names.py under a resolv.conf of its own; prints how many were resolved, and seconds."""

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor


def resolve(name, retries):
    for _ in range(retries + 1):
        try:
            socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)
            return True
        except socket.gaierror as error:
            # Only EAI_AGAIN says that another try may be answered.
            if error.errno != socket.EAI_AGAIN:
                return False
    return False


def main():
    domain, count, threads, retries = sys.argv[1], *map(int, sys.argv[2:])
    began = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        resolved = sum(pool.map(lambda number: resolve(f"host{number}.{domain}", retries), range(count)))
    print(resolved, f"{time.monotonic() - began:.2f}")


if __name__ == "__main__":
    main()
