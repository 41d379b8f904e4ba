"""nginx over the corpus, on a loopback port of its own."""

import os
import resource
import socket
import subprocess
import time

import machine
import rig

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
    server {{ {listens} root {root};{certificate} }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificate(folder, addresses):
    """A server's certificate for addresses, and its key, signed by an authority of its own: the three files."""
    authority, key = f"{folder}/authority.pem", f"{folder}/key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ",".join(f"IP:{address}" for address in addresses)
    for command in (
        [*words, "-subj", "/CN=Benchmark", "-keyout", f"{folder}/authority.key", "-out", authority],
        [*words, "-CA", authority, "-CAkey", f"{folder}/authority.key", "-subj", "/CN=Server", "-addext", f"subjectAltName={names}"]
        + ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", f"{folder}/server.pem"],
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return authority, f"{folder}/server.pem", key


class Server:
    """`hosts`: as many addresses; `tls`: HTTPS, with HTTP/2."""

    def __init__(self, folder, root, workers, keeps_times=False, address="127.0.0.1", hosts=1, tls=False):
        os.makedirs(folder)
        self.hosts = [address] if hosts == 1 else [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(hosts)]
        self.scheme, self.authority, certificates = "https" if tls else "http", None, ""
        if tls:
            self.authority, chain, key = certificate(folder, self.hosts)
            certificates = f" ssl_certificate {chain}; ssl_certificate_key {key};"
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        files = min(20_000, hard if hard != resource.RLIM_INFINITY else 20_000)
        self.port = free_port()
        self.workers = workers
        reuse = " reuseport" if workers > 1 else ""
        configuration = CONFIGURATION.format(
            # Its workers have to be able to read what this user wrote.
            user="user root;" if os.geteuid() == 0 else "",
            workers=workers,
            access=f"{folder}/times.log times" if keeps_times else "off",
            files=files,
            cached=files // 3,
            folder=folder,
            listens=" ".join(f"listen {host}:{self.port}{' ssl http2' if tls else ''} backlog=4096{reuse};" for host in self.hosts),
            certificate=certificates,
            root=root,
        )
        with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as file:
            file.write(configuration)
        self.process = rig.start(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], f"{folder}/start.log")
        self.log = f"{folder}/error.log"
        for _ in range(500):
            try:
                socket.create_connection((self.hosts[0], self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.01)
        with open(self.log, encoding="utf-8", errors="replace") as log:
            rig.fail("nginx did not start", f"it says: {log.read().strip()}", 69)

    @property
    def base(self):
        return self.bases[0]

    @property
    def bases(self):
        """The address of each host."""
        return [f"{self.scheme}://{host}:{self.port}" for host in self.hosts]

    def seconds(self):
        """Processor time of the server so far."""
        pids = [self.process.pid] + machine.children(self.process.pid)
        return sum(machine.process_seconds(pid) for pid in pids)

    def stop(self):
        self.process.terminate()
        self.process.wait()
