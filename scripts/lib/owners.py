"""Which types have no private state, because they lie in too many files, or because others may write to their variables: a line for each, exit 1."""

import collections
import pathlib
import re
import sys

from arrows import ROOT, code

MOST_FILES = 3
MOST_MEMBERS = 15
# Faces of the library, whose members are SDWebImage's; and options of a command, which are members by their nature.
FACES = ("ImageCache", "ImageManager", "ImageDownloader", "ImagePrefetcher", "DistributedImagePrefetcher", "OriginServer")
# What is known of one download, of one cached image: a record has as many members as there are facts.
RECORDS = ("DownloadOperation", "CacheEntry")
HEAD = re.compile(
    r"^(?:@\w+(?:\([^)]*\))? )*(?:(?:public|package|internal|private|fileprivate|final|indirect|nonisolated) )*"
    r"(struct|class|enum|actor|protocol|extension) (\w+)")
MEMBER = re.compile(
    r"^    (?:@\w+(?:\([^)]*\))? )*((?:(?:public|package|internal|private|fileprivate|final|static|override|convenience|required|weak|unowned|lazy|mutating|nonisolated"
    r"|private\(set\)|fileprivate\(set\)|nonisolated\(nonsending\)|nonisolated\(unsafe\)|unowned\(unsafe\)) )*)(var|let|func|init|subscript)\b *([^\s(<:]*)(.*)")


def types():
    """name -> its kind, its files, and its members as (file, words before, keyword, name, rest of the line)."""
    found = {}
    for path in sorted((ROOT / "Sources").glob("*/**/*.swift")):
        module = path.relative_to(ROOT / "Sources").parts[0]
        current = None
        for line in code(path).splitlines():
            head = HEAD.match(line)
            if head:
                current = found.setdefault((module, head[2]), {"kind": None, "files": set(), "members": []})
                if head[1] != "extension":
                    current["kind"] = head[1]
                current["files"].add(path.relative_to(ROOT))
                current["private"] = "private extension" in line
            elif line[:1] not in ("", " ", "}", "#", "/", ")", ">"):
                current = None
            elif current and (member := MEMBER.match(line)):
                current["members"].append((path.name, *member.groups()))
    return {name: info for (_, name), info in found.items() if info["kind"]}


def is_private(words):
    return "private " in words or "fileprivate " in words


def is_stored(keyword, rest):
    """Whether a `var` line declares a place to keep a value: it has no body, or one of observers."""
    return keyword == "var" and ("{" not in rest or "=" in rest.split("{")[0])


def open_members(info):
    """Members that other files may use; the names alone, since an overload is no new thing to know."""
    names = {name or keyword for _, words, keyword, name, _ in info["members"] if not is_private(words)}
    return names - {"init"}


def main():
    found = types()
    owners = {name: info for name, info in found.items() if info["kind"] in ("class", "actor")}
    wrong = []
    for name, info in sorted(found.items()):
        if len(info["files"]) > MOST_FILES:
            wrong.append(f"{name} lies in {len(info['files'])} files, and {MOST_FILES} are the most")
    for name, info in sorted(owners.items()):
        count = len(open_members(info))
        if count > MOST_MEMBERS and name not in FACES + RECORDS:
            wrong.append(f"{name} has {count} members that are not private, and {MOST_MEMBERS} are the most")
        for file, words, keyword, member, rest in info["members"]:
            if is_stored(keyword, rest) and "private" not in words and "weak" not in words:
                wrong.append(f"{file}: {name}.{member} may be written from other files: private(set), or let")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
