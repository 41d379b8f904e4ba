"""Links of the documents, the list of scripts, long cells of tables, and words that are not used: file:line and what is wrong, exit 1 if
there is something."""

import pathlib
import re
import subprocess
import sys

# docs/GLOSSARY.md has the word in its place.
WORDS = re.compile(r"\b(sign of life|signs of life|left alone|whoever|vouch(es)?|complain(s|t|ts)?)\b", re.IGNORECASE)
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)]*)?\)")
CELL = 200
# Tables that a script writes, from its heads or from what it measured.
WRITTEN = re.compile(r"^\| script \| ARGV |^## .*20\d\d-\d\d-\d\d")


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


def words():
    """The glossary's words in place of their paraphrases. Names of tests are as they are."""
    for path in tracked("Sources/*.swift", "Sources/*.lua", "docs/*.md", "README.md", "CHANGELOG.md", "scripts/README.md"):
        if path.name == "GLOSSARY.md":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := WORDS.search(re.sub(r'Tests "[^"]*"', "", line)):
                yield f"{path}:{number}: '{found[0]}' is not a word of docs/GLOSSARY.md"


if __name__ == "__main__":
    found = [line for part in (links, scripts, cells, words) for line in part()]
    print("\n".join(found))
    sys.exit(bool(found))
