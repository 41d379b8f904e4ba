"""The protocol of Redis, as far as it takes to ask a server something."""

import socket


class Away(Exception):
    """Redis did not answer."""


class Refused(Away):
    """An error reply."""


def encoded(words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Client:
    """Commands over a Unix socket, connected anew after every failure. Bytes come as text with a letter for each byte (Latin-1), fields of a
    hash as a dictionary."""

    def __init__(self, path, wait_limit=1.0):
        self.path, self.wait_limit, self.file, self.socket = path, wait_limit, None, None

    def __call__(self, *words):
        return self.many([words])[0]

    def many(self, commands):
        """The replies; of those that are errors the first is raised."""
        try:
            if self.file is None:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.settimeout(self.wait_limit)
                self.socket.connect(self.path)
                self.file = self.socket.makefile("rb")
            self.socket.sendall(b"".join(map(encoded, commands)))
            replies = [self.reply() for _ in commands]
        except (OSError, ValueError) as error:
            self.close()
            raise Away(str(error)) from error
        for number, (words, reply) in enumerate(zip(commands, replies)):
            if isinstance(reply, Refused):
                raise reply
            if words[0] == "HGETALL" and isinstance(reply, list):
                replies[number] = dict(zip(reply[::2], reply[1::2]))
        return replies

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection ended")
        kind, text = line[:1], line[1:-2].decode("latin-1")
        if kind == b"-":
            return Refused(text)
        if kind == b":":
            return int(text)
        if kind == b"$":
            if int(text) < 0:
                return None
            value = self.file.read(int(text) + 2)
            if len(value) != int(text) + 2:
                raise OSError("the connection ended")
            return value[:-2].decode("latin-1")
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        return text

    def close(self):
        for thing in (self.file, self.socket):
            if thing is not None:
                thing.close()
        self.file = self.socket = None
