"""nginx over the corpus, on a loopback port of its own."""

import os
import resource
import socket
import subprocess
import time

import machine

CONFIGURATION = """
daemon off;
{user}
worker_processes {workers};
worker_rlimit_nofile {files};
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 4096; multi_accept on; }}
http {{
    log_format times '$msec $uri';
    access_log {access};
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 100000000;
    keepalive_timeout 300s;
    # Fewer than there are descriptors: otherwise accept(2) fails and clients hang.
    open_file_cache max={cached} inactive=600s;
    open_file_cache_valid 600s;
    open_file_cache_min_uses 1;
    log_not_found off;
    client_body_temp_path {folder}/t1;
    proxy_temp_path {folder}/t2;
    fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4;
    scgi_temp_path {folder}/t5;
    types {{ image/jpeg jpg; image/png png; image/gif gif; image/webp webp; }}
    server {{ listen {address}:{port} backlog=4096{reuse}; root {root};{limit} }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`rate` limits each answer, in bytes a second; 0: no limit."""

    def __init__(self, folder, root, workers, priority, keeps_times=False, address="127.0.0.1", rate=0):
        os.makedirs(folder)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        files = min(20_000, hard if hard != resource.RLIM_INFINITY else 20_000)
        self.port = free_port()
        self.workers = workers
        configuration = CONFIGURATION.format(
            # Its workers have to be able to read what this user wrote.
            user="user root;" if os.geteuid() == 0 else "",
            workers=workers,
            access=f"{folder}/times.log times" if keeps_times else "off",
            files=files,
            cached=files // 3,
            folder=folder,
            address=address,
            port=self.port,
            reuse=" reuseport" if workers > 1 else "",
            root=root,
            limit=f" limit_rate {rate};" if rate else "",
        )
        with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as file:
            file.write(configuration)
        self.process = subprocess.Popen(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], start_new_session=True)
        if priority:
            machine.prefer(self.process.pid)
        self.log = f"{folder}/error.log"
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.01)
        self.stop()
        with open(self.log, encoding="utf-8", errors="replace") as log:
            raise SystemExit("error: nginx did not start\nhint: it says: " + log.read().strip())

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"

    def seconds(self):
        """Processor time of the server so far."""
        pids = [self.process.pid] + machine.children(self.process.pid)
        return sum(machine.process_seconds(pid) for pid in pids)

    def complaints(self):
        """Lines of the error log: a server out of descriptors makes every figure worthless."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read().splitlines()

    def stop(self):
        self.process.terminate()
        self.process.wait()
