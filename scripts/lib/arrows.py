"""Which folder of a module uses which: from the types that a folder declares and the names that another one mentions.

scripts/lib/arrows.py            compares with the table of folders in docs/ARCHITECTURE.md; prints what it does not draw, exit code 1
scripts/lib/arrows.py --why A B  the names of folder B (as Prefetch/Working) that folder A uses, with the files
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "ARCHITECTURE.md"
MODULES = ("WebImage", "Queue", "Prefetch", "PrefetchCommands", "Tools/Origin", "Tools/Demonstration")
DECLARED = re.compile(
    r"^(?:@\w+(?:\([^)]*\))? )*(?:(?:public|package|internal|final|indirect|nonisolated) )*"
    r"(?:struct|class|enum|actor|protocol|typealias) (\w+)", re.M)
NAME = re.compile(r"(?<![.\w])[A-Z]\w+")
NOISE = re.compile(r'#*"""(?:.|\n)*?"""#*|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*(?:.|\n)*?\*/')


def code(path):
    """The text of a file without comments and strings."""
    return NOISE.sub('""', path.read_text())


def uses(module):
    """(folder, folder it uses) -> {name: files}; and the folders of the module."""
    home, texts = {}, {}
    for path in sorted((ROOT / "Sources" / module).glob("*/*.swift")):
        text = texts[path] = code(path)
        for name in DECLARED.findall(text):
            # A private type of the same name in two folders belongs to neither.
            home[name] = path.parent.name if home.get(name, path.parent.name) == path.parent.name else None
    found = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, text in texts.items():
        for name in set(NAME.findall(text)):
            folder = home.get(name)
            if folder and folder != path.parent.name:
                found[path.parent.name, folder][name].add(path.name)
    return found, sorted({path.parent.name for path in texts})


def cycles(folders, arrows):
    """Sets of folders that use each other, however indirectly."""
    reach = {a: {a} for a in folders}
    changed = True
    while changed:
        changed = False
        for a, b in arrows:
            more = reach[b] - reach[a]
            if more:
                reach[a] |= more
                changed = True
    return {frozenset(b for b in folders if b in reach[a] and a in reach[b]) for a in folders if any(
        b != a and b in reach[a] and a in reach[b] for b in folders)}


def drawn():
    """The first two columns of the table: `Module/Folder`, and what it uses."""
    rows = {}
    for line in TABLE.read_text().splitlines():
        match = re.match(r"\| `((?:\w+/)+\w+)` \| ([^|]*) \|", line)
        if match:
            rows[match[1]] = set(re.findall(r"\w+", match[2])) - {"-"}
    return rows


def main(arguments):
    if arguments[:1] == ["--why"]:
        (module, a), (_, b) = (name.rsplit("/", 1) for name in arguments[1:3])
        for name, files in sorted(uses(module)[0][a, b].items()):
            print(f"{name}: {', '.join(sorted(files))}")
        return 0
    table, wrong = drawn(), []
    for module in MODULES:
        found, folders = uses(module)
        for folder in folders:
            actual = {b for a, b in found if a == folder}
            known = table.get(f"{module}/{folder}", set())
            for other in sorted(actual - known):
                names = ", ".join(f"{name} in {sorted(files)[0]}" for name, files in sorted(found[folder, other].items())[:3])
                wrong.append(f"Sources/{module}/{folder}: uses {other} ({names}), which the table of docs/ARCHITECTURE.md does not draw")
            for other in sorted(known - actual):
                wrong.append(f"docs/ARCHITECTURE.md: {module}/{folder} does not use {other} any more")
        for cycle in cycles(folders, found):
            wrong.append(f"Sources/{module}: {', '.join(sorted(cycle))} use each other")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
