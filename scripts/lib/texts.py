"""Dictionaries and sets keyed by String, which takes canonically equivalent texts for one (docs/ARCHITECTURE.md, "Texts are bytes").

scripts/lib/texts.py  prints each file with more of them than texts.txt has a reason for, one line each; exit code 1
"""

import re
import sys

from arrows import ROOT, code

KEYED = re.compile(r"\[String *:|\bSet<String>|\bDictionary<String\b")
# What keys by bytes is written in terms of String.
OWN = "Sources/PrefetchModel/ByteText.swift"


def main():
    known = {}
    for number, line in enumerate((ROOT / "scripts/lib/texts.txt").read_text().splitlines(), 1):
        for file in [] if line.startswith("#") else line.split(" | ")[1].split(", "):
            path, count = file.split()
            known[f"Sources/{path}.swift"] = (int(count), number)
    found = {}
    for path in sorted((ROOT / "Sources").glob("**/*.swift")):
        name = str(path.relative_to(ROOT))
        lines = [at for at, line in enumerate(code(path).splitlines(), 1) for _ in KEYED.findall(line)]
        if lines and name != OWN:
            found[name] = lines
    bad = []
    for name, lines in found.items():
        count, _ = known.get(name, (0, 0))
        if len(lines) > count:
            bad.append(f"{name}:{lines[-1]}: {len(lines)} keyed by String, and {count} with a reason in scripts/lib/texts.txt: "
                       "ByteText is the key of a text from outside")
    bad += [f"scripts/lib/texts.txt:{number}: {name} has none" for name, (_, number) in known.items() if name not in found]
    print(*bad, sep="\n", end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
