"""Links of the documents, the list of scripts, long cells of tables, the length of docs/, what the READMEs say, and words that are not used: file:line and what is wrong, exit 1 if
there is something."""

import itertools
import pathlib
import re
import subprocess
import sys

GLOSSARY = pathlib.Path("docs/GLOSSARY.md")
# Not of a thing, so that no row of the glossary has it.
ALSO = {"whoever": "who"}
# Where a word of the column *not* is right: the word, the files, the text around it, whose word it is.
RIGHT = [
    ("metadata", r"^Sources/(CImageCodec|PrefetchModel/ImageVariant|Tools/Origin/Generating|WebImage/(Coding|Transforming))", r"", "Exif data and profiles of an image file"),
    ("metadata", r"^(README|docs/(HOSTILE|TROUBLESHOOTING))\.md", r"metadata( address|$)", "the address of a cloud's metadata service"),
    ("metadata", r"^Sources/Prefetch/Lists/ParquetProgram", r"file\.metadata", "pyarrow"),
    ("metadata", r"", r"parquet-metadata", "the field's name of the tables beside archives"),
    ("parked", r"^docs/ARCHITECTURE\.md", r"parked domain", "a domain without a site"),
    ("nameserver", r"^Sources/PrefetchCommands/Diagnosing/MachineDiagnostics", r'"nameserver "', "resolv.conf(5)"),
    ("metadata", r"^docs/PERFORMANCE\.md", r"img2dataset", "what img2dataset writes beside its images"),
    ("name server", r"^docs/HOSTILE\.md", r"", "the servers of a domain (RFC 1034), which only a resolver asks"),
    ("agent", r"", r"user[-_ ]?agent", "HTTP"),
    ("agent", r"/(Robots\w*|PAGES|ROBOTS|PrefetchKeys|QueueHosts|CurlHandle|ImageDownloader\+Configuration)\.(swift|lua)$", r"", "robots.txt (RFC 9309)"),
    ("agent", r"^docs/PROTOCOL\.md", r"robots|PAGES", "robots.txt (RFC 9309)"),
]
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)]*)?\)")
CELL = 200
# Of docs/, without what scripts and tests write. Who adds a page says what another one says no more.
MOST_WORDS = 30_000
# Tables that a script writes, from its heads or from what it measured.
WRITTEN = re.compile(r"^\| script \| what it does |^## .*20\d\d-\d\d-\d\d")


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], capture_output=True, text=True, check=True).stdout
    return [pathlib.Path(name) for name in names.splitlines() if pathlib.Path(name).is_file()]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for line in re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL).splitlines():
        if heading := re.match(r"#+ (.*)", line):
            found.add(re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-"))
    return found


def links():
    """Each relative link leads to a file of the repository, and to a heading of it."""
    for page in tracked("*.md"):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for target, anchor in LINK.findall(line):
                file = page.parent / target if target else page
                if "://" in target:
                    continue
                if not file.exists():
                    yield f"{page}:{number}: there is no {target}"
                elif anchor and file.suffix == ".md" and anchor[1:] not in anchors(file):
                    yield f"{page}:{number}: {file} has no heading {anchor}"


def scripts():
    """scripts/README.md names each script and no other."""
    page = pathlib.Path("scripts/README.md")
    named = set(re.findall(r"^\| `([a-z-]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE))
    there = {path.name for path in tracked("scripts/*") if path.parent == page.parent and path.suffix == ""}
    for name in sorted(there - named):
        yield f"{page}:1: does not name {name}"
    for name in sorted(named - there):
        yield f"{page}:1: names {name}, which is not there"


def cells():
    """No cell of a table is a paragraph. Names of tests do not count."""
    for page in tracked("*.md"):
        is_written = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            is_written = bool(WRITTEN.match(line)) or is_written and line.startswith("|")
            if line.startswith("|") and not is_written:
                for cell in line.replace("\\|", "/").split("|"):
                    length = len(re.sub(r'[A-Z]\w+Tests(\.\w+| "[^"]*")(; )?', "", cell).strip())
                    if length > CELL:
                        yield f"{page}:{number}: a cell has {length} characters, {CELL} at most"


def length():
    """docs/ is read by people: it has a size."""
    texts = [re.sub(r"<!-- from .*?-->.*?<!-- end.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL) for page in tracked("docs/*.md")]
    written = sum(len(re.findall(r"\S*\w\S*", text)) for text in texts)
    if written > MOST_WORDS:
        yield f"docs: {written:,} words are written by hand, {MOST_WORDS:,} at most"


def parts(page):
    """The page as (kind, line, what it has that no language changes): commands without their comments, figures, code and links of all else."""
    lines, at = page.read_text(encoding="utf-8").splitlines(), 0
    while at < len(lines):
        begun, line = at, lines[at]
        at += 1
        if line.startswith("```"):
            while not lines[at].startswith("```"):
                at += 1
            at += 1
            yield "block", begun, [re.sub(r"\s+# .*", "", text) for text in lines[begun:at]]
            continue
        kind = re.match(r"#+ |\||- |!\[|<!--|", line)[0].strip() or "text"
        if not line.strip() or kind == "<!--":
            continue
        # A paragraph or an item goes on.
        while kind in ("text", "-") and at < len(lines) and lines[at] and not re.match(r"#|\||<!|!\[|- |```", lines[at]):
            at += 1
        text = " ".join(lines[begun:at])
        found = re.findall(r"\]\([^)]*\)|`[^`]*`|\d+(?:[.,]\d+)*", re.sub(r"README(\.zh-CN)?\.md", "README", text))
        yield kind, begun, sorted(found) + ([f"{text.count('|')} cells"] if kind == "|" else [])


def twins():
    """The README of each language says the same: the same parts in the same order, with the same figures, commands and links."""
    english, chinese = pathlib.Path("README.md"), pathlib.Path("README.zh-CN.md")
    for one, other in itertools.zip_longest(parts(english), parts(chinese)):
        if not one or not other or (one[0], one[2]) != (other[0], other[2]):
            where = f"{english}:{one[1] + 1}" if one else f"{chinese}:{other[1] + 1}"
            differ = f": {one[2]}, {other[2]} in line {other[1] + 1}" if one and other else ""
            yield f"{where}: {english} and {chinese} differ from here on{differ}"
            return


def forbidden():
    """The words of the glossary's last column that are wrong everywhere, each with the word of its row. Those in parentheses are not."""
    found = dict(ALSO)
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[3] not in ("", "not", "---"):
            for word in re.sub(r"\([^)]*\)[^,]*", "", cells[3]).split(","):
                if word.strip():
                    found[word.strip().lower()] = re.sub(r"[`]|\s*\(.*", "", cells[0])
    return found


def spaced(text):
    """The text with the words of its names apart: `maxAttempts` and `MAX_ATTEMPTS` have `attempts`. Lines stay lines, of comments too."""
    text = re.sub(r"(?<=\n)[ \t]*(///?|--|#)[ \t]*", "", text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z](?![A-Z]|\b))|_", " ", text)
    return text.lower()


def words():
    """The glossary's words in names, comments and texts, in place of those that it does not use. Names of tests are as they are."""
    instead = forbidden()
    pattern = re.compile(r"\b(" + "|".join(re.escape(word).replace(r"\ ", r"[\s-]+") for word in sorted(instead, key=len, reverse=True)) + r")(e?s)?\b(?!-up)")
    right = [(word, re.compile(files), re.compile(around, re.IGNORECASE)) for word, files, around, _ in RIGHT]
    used = set()
    for path in tracked("Sources/*.swift", "Sources/*.lua", "docs/*.md", "docs/*.json", "docs/*.yaml", "README.md", "CHANGELOG.md", "scripts/README.md"):
        if path == GLOSSARY:
            continue
        text = re.sub(r'Tests "[^"]*"', "Tests", path.read_text(encoding="utf-8"))
        lines = [path.stem, *text.splitlines()]
        for found in pattern.finditer(spaced(f"{path.stem}\n{text}")):
            number = found.string.count("\n", 0, found.start())
            word = re.sub(r"[\s-]+", " ", found[1])
            rows = [i for i, (of, files, around) in enumerate(right) if of == word and files.search(str(path)) and around.search(lines[number])]
            used.update(rows)
            if not rows:
                yield f"{path}:{max(1, number)}: '{word}' is not a word of {GLOSSARY}: {instead[word]}"
    for i in sorted(set(range(len(RIGHT))) - used):
        yield f"scripts/lib/pages.py:1: nothing needs the exception for '{RIGHT[i][0]}', {RIGHT[i][3]}"


if __name__ == "__main__":
    found = [line for part in (links, scripts, cells, length, twins, words) for line in part()]
    print("\n".join(found))
    sys.exit(bool(found))
