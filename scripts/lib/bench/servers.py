"""The benchmark `servers`: the same run against several web servers, which must have the same result. Called by scripts/bench."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

import left
import rig
from corpus import QUERIES, Corpus
from server import free_port

NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log error; {user}
events {{ worker_connections 1024; }}
http {{ log_format spoken '$server_protocol'; access_log {folder}/spoken.log spoken; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; types {{ image/jpeg jpg; image/png png; image/gif gif; image/webp webp; }}
  server {{ listen 127.0.0.1:{port}{tls}; root {root}; {certificate} }} }}
"""
APACHE = """ServerRoot {folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {folder}/httpd.pid
ErrorLog {folder}/error.log
User www-data
Group www-data
<IfModule !unixd_module>
LoadModule unixd_module {modules}/mod_unixd.so
</IfModule>
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule mime_module {modules}/mod_mime.so
TypesConfig /etc/mime.types
DocumentRoot {root}
<Directory {root}>
Require all granted
</Directory>
"""
MODULES = "/usr/lib/apache2/modules"


def nginx(bench, root, port, tls):
    folder = bench.path("nginx-tls" if tls else "nginx")
    os.makedirs(folder)
    certificate = ""
    if tls:
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
        words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
        subprocess.run(words, check=True, capture_output=True)
        certificate = f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;"
    text = NGINX.format(
        folder=folder, port=port, root=root, tls=" ssl http2" if tls else "", certificate=certificate,
        user="user root;" if os.geteuid() == 0 else "",
    )
    with open(f"{folder}/nginx.conf", "w", encoding="ascii") as file:
        file.write(text)
    return ["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], ["--http2", "--ca-file", f"{folder}/cert.pem"] if tls else []


def apache(bench, root, port):
    folder = bench.path("apache")
    os.makedirs(folder)
    # Its workers are another user's.
    os.chmod(bench.folder, 0o755)
    with open(f"{folder}/httpd.conf", "w", encoding="ascii") as file:
        file.write(APACHE.format(folder=folder, port=port, root=root, modules=MODULES))
    return ["apache2", "-X", "-f", f"{folder}/httpd.conf"], []


def caddy(bench, root, port):
    words = ["caddy", "file-server", "--listen", f"127.0.0.1:{port}", "--root", root]
    bench.environment.setdefault("XDG_DATA_HOME", bench.path("caddy"))
    return words, []


def python(_, root, port):
    return [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", root], []


SERVERS = {
    "nginx, HTTP/1.1": ("nginx", lambda *place: nginx(*place, False)),
    "nginx, HTTP/2 over TLS": ("nginx", lambda *place: nginx(*place, True)),
    "caddy": ("caddy", caddy),
    "Apache": ("apache2", apache),
    "Python's http.server": ("python3", python),
}


def spoken(bench, name):
    """What version the requests were of, where the server notes it."""
    path = bench.path("nginx-tls" if "TLS" in name else "nginx") + "/spoken.log"
    if not name.startswith("nginx"):
        return "-"
    with open(path, encoding="ascii") as log:
        return ", ".join(sorted(set(log.read().split("\n")) - {""}))


def wait_for(port, child):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if child.poll() is not None:
                break
            time.sleep(0.02)
    rig.fail(f"{child.args[0]} did not start", "start it by hand: " + " ".join(child.args), 69)


def main():
    parser = rig.parser("servers", "Fetches one list from each server: every result must be the same, image by image.")
    parser.add_argument("--count", type=rig.positive, default=1600, help="requests (1600)")
    options = parser.parse_args()
    results = {}
    with rig.Rig(options) as bench:
        corpus = Corpus(bench.path("corpus"), bench.program("prefetch-origin"), max(40, options.count // QUERIES), 1, True)
        for number, (name, (program, make)) in enumerate(SERVERS.items()):
            if shutil.which(program) is None and not os.path.exists(f"/usr/sbin/{program}"):
                rig.fail(f"{program} is not installed", f"apt-get install {program}", 69)
            port = free_port()
            words, extra = make(bench, corpus.folder, port)
            server = bench.start(words)
            wait_for(port, server)
            scheme = "https" if extra else "http"
            list_path = bench.write(f"list-{number}.txt", corpus.urls(f"{scheme}://127.0.0.1:{port}"))
            cache = bench.path(f"{number}")
            words = [bench.program("prefetch-coord"), "run", list_path, "--cache", f"{cache}/cache", "-n", "2", "--json", "--quiet"]
            words += ["--max-per-host", "0", "--allow-net", "127.0.0.0/8", *extra]
            wall, _, text = bench.run(words, codes=(0, 3))
            outcomes = json.loads(text.strip().splitlines()[-1])["outcomes"]
            found = left.count(cache, corpus, QUERIES, thoroughly=True)
            server.terminate()
            server.wait()
            results[name] = (wall, spoken(bench, name), {key: value for key, value in outcomes.items() if value}, found)
            rig.say(f"{name}: {wall:.2f} s, {results[name][1:3]}")
    lines = rig.heading("servers", f"{corpus.images * QUERIES:,} requests to each of {len(results)} servers")
    lines += [
        "| server | as its log says | wall s | outcomes | left: good / broken kept / other / missing |",
        "|---|---|---|---|---|",
    ]
    for name, (wall, version, outcomes, found) in results.items():
        words = ", ".join(f"{key} {value:,}" for key, value in outcomes.items())
        kept = f"{found['good']:,} / {found['broken']:,} / {found['other']:,} / {found['missing']:,}"
        lines.append(f"| {name} | {version} | {wall:.2f} | {words} | {kept} |")
    same = {json.dumps([outcomes, found["good"], found["broken"], found["other"]], sort_keys=True) for *_, outcomes, found in results.values()}
    lines += ["", "All have the same result." if len(same) == 1 else "The results differ."]
    rig.publish(options, "servers", lines)
    return 0 if len(same) == 1 and results["nginx, HTTP/2 over TLS"][1] == "HTTP/2.0" else 1


if __name__ == "__main__":
    sys.exit(main())
