"""The names of the scripts, from the folder that has them: nobody has to type a list, and nobody can forget a line of it."""

import hashlib
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]


def names():
    """Every script of the project, sorted; what several share has a small name."""
    return sorted(path.stem for path in (ROOT / "Sources" / "Queue" / "Scripts").glob("*.lua") if path.stem.isupper())


class Digests:
    """Which script a digest is: learned from the texts that pass. The second line of each is its name."""

    def __init__(self):
        self.known = {}

    def learn(self, source):
        lines = source.split(b"\n", 2)
        match = re.fullmatch(rb"-- ([A-Z][A-Z0-9]*)", lines[1] if len(lines) > 1 else b"")
        name = match[1].decode() if match else "?" + hashlib.sha1(source).hexdigest()[:8]
        self.known[hashlib.sha1(source).hexdigest().encode()] = name
        return name

    def of(self, words):
        """The script that a command runs; None where it runs none."""
        verb = words[0].upper()
        if verb == b"SCRIPT" and len(words) > 2 and words[1].upper() == b"LOAD":
            self.learn(words[2])
        elif verb == b"EVAL":
            return self.learn(words[1])
        elif verb == b"EVALSHA":
            return self.known.get(words[1].lower(), "?")
        return None
