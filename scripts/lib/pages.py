"""Links of the documents, the list of scripts, and words that are not used: file:line and what is wrong, exit 1 if there is something."""

import pathlib
import re
import subprocess
import sys

# docs/GLOSSARY.md has the word in its place.
WORDS = re.compile(r"\b(sign of life|signs of life|left alone|whoever|complain(s|t|ts)?)\b", re.IGNORECASE)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], capture_output=True, text=True, check=True).stdout
    return [pathlib.Path(name) for name in names.splitlines() if pathlib.Path(name).is_file()]


def links():
    """Each relative link leads to a file of the repository."""
    for page in tracked("*.md"):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for target, _ in LINK.findall(line):
                if "://" not in target and not (page.parent / target).exists():
                    yield f"{page}:{number}: there is no {target}"


def scripts():
    """scripts/README.md names each script and no other."""
    page = pathlib.Path("scripts/README.md")
    named = set(re.findall(r"^\| `([a-z-]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE))
    there = {path.name for path in tracked("scripts/*") if path.parent == page.parent and path.suffix == ""}
    for name in sorted(there - named):
        yield f"{page}:1: does not name {name}"
    for name in sorted(named - there):
        yield f"{page}:1: names {name}, which is not there"


def words():
    """The glossary's words in place of their paraphrases."""
    for path in tracked("Sources/*.swift", "Sources/*.lua", "docs/*.md", "README.md", "CHANGELOG.md", "scripts/README.md"):
        if path.name == "GLOSSARY.md":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := WORDS.search(line):
                yield f"{path}:{number}: '{found[0]}' is not a word of docs/GLOSSARY.md"


if __name__ == "__main__":
    found = [line for part in (links, scripts, words) for line in part()]
    print("\n".join(found))
    sys.exit(bool(found))
