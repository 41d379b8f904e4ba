"""An origin that breaks its promises: bad_origin.py GOOD_PICTURE POISON_PICTURE. Prints its port, on 127.0.0.1 to 127.0.0.3, then a line for each poison it served.

/missing/…     404, robots.txt too          /down/…   503, always
/truncated/…   announces all, sends half    /flap/…   503 and the picture in turn
/html/…        a page, as image/jpeg        /slow/…   the picture in pieces, over a second
/reset/…       RST inside the header        /hang/…   no answer
/gone/…        404, after a second
/poison/…      a picture that takes the decoder long: time enough to kill the worker that has it
"""

import collections
import os
import socket
import struct
import sys
import threading
import time

picture, poison = (open(path, "rb").read() for path in sys.argv[1:3])
page = b"<!DOCTYPE html><html><body>This is no picture.</body></html>"
turns = collections.Counter()
lock = threading.Lock()


def reply(status, kind, length):
    return b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, kind, length)


def tell(path, request):
    for line in request.split(b"\r\n"):
        if line.lower().startswith(b"x-worker:"):
            # One write: print writes its words one by one, and those of two threads mix.
            os.write(1, b"poison %s %s\n" % (path, line.split(b":", 1)[1].strip()))


def answer(client, path, request):
    kind = path.split(b"/")[1]
    if kind in (b"missing", b"robots.txt"):
        client.sendall(reply(b"404 Not Found", b"text/plain", 0))
    elif kind == b"gone":
        time.sleep(1)
        client.sendall(reply(b"404 Not Found", b"text/plain", 0))
    elif kind == b"truncated":
        client.sendall(reply(b"200 OK", b"image/png", len(picture)) + picture[: len(picture) // 2])
    elif kind == b"html":
        client.sendall(reply(b"200 OK", b"image/jpeg", len(page)) + page)
    elif kind == b"reset":
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif kind == b"hang":
        while client.recv(65536):
            pass
    elif kind == b"slow":
        client.sendall(reply(b"200 OK", b"image/png", len(picture)))
        step = len(picture) // 5 + 1
        for at in range(0, len(picture), step):
            time.sleep(0.2)
            client.sendall(picture[at : at + step])
    elif kind == b"poison":
        client.sendall(reply(b"200 OK", b"image/png", len(poison)) + poison)
        tell(path, request)
    else:
        with lock:
            turns[path] += 1
            isDown = kind == b"down" or turns[path] % 2 == 1
        if isDown:
            client.sendall(reply(b"503 Service Unavailable", b"text/plain", 0))
        else:
            client.sendall(reply(b"200 OK", b"image/png", len(picture)) + picture)


def serve(client):
    with client:
        try:
            request = b""
            while b"\r\n\r\n" not in request:
                piece = client.recv(65536)
                if not piece:
                    return
                request += piece
            answer(client, request.split(b" ", 2)[1], request)
        except OSError:
            # Whoever asked was killed.
            pass


def accept(listener):
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=serve, args=(accepted,), daemon=True).start()


first = socket.create_server(("127.0.0.1", 0), backlog=1024)
port = first.getsockname()[1]
# /down and /poison have hosts of their own: the URLs of a host that answers 503 for too long end together, as httpError.
others = [socket.create_server((address, port), backlog=1024) for address in ("127.0.0.2", "127.0.0.3")]
print(port, flush=True)
for other in others:
    threading.Thread(target=accept, args=(other,), daemon=True).start()
accept(first)
