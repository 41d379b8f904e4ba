#!/usr/bin/env python3
"""An origin that breaks its promises, for scripts/acceptance: bad-origin.py PORT GOOD_PICTURE STATE_FILE

/truncated/N.png  announces the whole picture, sends half of it and closes
/html/N.jpg       a page, with 200 and the type of a picture
/reset/N.png      closes with RST after a part of the header
Once STATE_FILE exists the origin is mended: every path serves the whole picture.
"""
import os
import socket
import struct
import sys
import threading

port, picture, state = int(sys.argv[1]), open(sys.argv[2], "rb").read(), sys.argv[3]
page = b"<!DOCTYPE html><html><body>This is no picture.</body></html>"


def reply(kind, length):
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (kind, length)


def serve(client):
    with client:
        request = b""
        while b"\r\n\r\n" not in request:
            piece = client.recv(65536)
            if not piece:
                return
            request += piece
        path = request.split(b" ", 2)[1]
        if os.path.exists(state):
            client.sendall(reply(b"image/png", len(picture)) + picture)
        elif path.startswith(b"/truncated/"):
            client.sendall(reply(b"image/png", len(picture)) + picture[: len(picture) // 2])
        elif path.startswith(b"/html/"):
            client.sendall(reply(b"image/jpeg", len(page)) + page)
        else:
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


listener = socket.create_server(("127.0.0.1", port), backlog=1024)
print("ready", flush=True)
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
