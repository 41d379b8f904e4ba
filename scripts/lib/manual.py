"""Manual pages from what a program says of its own options (--experimental-dump-help of swift-argument-parser), one for the program
and one for each of its commands: manual.py HELP.json VERSION FOLDER
Exit codes and variables of the environment come from the tables of docs/COMMANDS.md and docs/SETTINGS.md."""
import json
import os
import re
import sys
import time
from pathlib import Path

# Of the pages; the variable is for builds that have to give the same bytes again (reproducible-builds.org).
DATE = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())))


DOCS = Path(__file__).resolve().parents[2] / "docs"
FILES = [
    ("./cache", "The cache folder, unless an option or a variable names another: verified images and nothing else."),
    ("~/.local/state/prefetch", "What runs keep: the private Redis of each cache, and copies of lists ($XDG_STATE_HOME/prefetch)."),
    ("/etc/prefetch/worker.env", "Variables of the workers that systemd starts (prefetch-worker@.service)."),
]


def rows(page, head):
    """The rows of the table with this head in a page of docs/, without its marks; links are their words."""
    lines = iter((DOCS / page).read_text(encoding="utf-8").splitlines())
    if not any(line.startswith(head) for line in lines):
        sys.exit(f"docs/{page} has no table that begins with {head}")
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            break
        yield [re.sub(r"\[([^]]*)\]\([^)]*\)|`([^`]*)`", lambda m: m[1] or m[2], cell.strip()) for cell in line.strip("|").split("|")]


def listed(title, pairs):
    """A section of names and what they are."""
    return [f".SH {title}"] + [line for name, words in pairs for line in (".TP", f"\\fB{text(name)}\\fR", text(words))]


def text(words):
    """Plain text of roff: no line begins a request, no dash becomes a hyphen."""
    words = words.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in words.splitlines())


def name(argument):
    """How an option is typed: -n, --workers <workers>."""
    words = ", ".join(f"\\fB{text(('--' if one['kind'] == 'long' else '-') + one['name'])}\\fR" for one in argument.get("names") or [])
    value = f"\\fI{text(argument.get('valueName') or '')}\\fR"
    return {"option": f"{words} {value}", "flag": words}.get(argument["kind"], value)


def options(command):
    """The arguments by their sections, in the order of the help."""
    sections = {}
    for argument in command.get("arguments") or []:
        if not argument.get("shouldDisplay", True):
            continue
        default = "ARGUMENTS" if argument["kind"] == "positional" else "OPTIONS"
        sections.setdefault((argument.get("sectionTitle") or default).upper(), []).append(argument)
    lines = []
    for title, arguments in sections.items():
        lines.append(f".SH {text(title)}")
        for argument in arguments:
            lines += [".TP", name(argument)]
            words = [argument.get("abstract") or "", argument.get("discussion") or ""]
            if argument.get("defaultValue") and argument["kind"] != "flag":
                words.append(f"Default: {argument['defaultValue']}.")
            lines.append(text(" ".join(word for word in words if word)) or "\\&")
    return lines


def pages(command, path, version):
    """(name, roff) of a command and all below it."""
    full = path + [command["commandName"]]
    below = [one for one in command.get("subcommands") or [] if one["commandName"] != "help" and one.get("shouldDisplay", True)]
    lines = [
        f'.TH "{text("-".join(full)).upper()}" 1 "{DATE}" "{text(version)}"',
        ".SH NAME",
        f"{text('-'.join(full))} \\- {text((command.get('abstract') or '').rstrip('.'))}",
        ".SH SYNOPSIS",
        f"\\fB{text(' '.join(full))}\\fR " + ("\\fIcommand\\fR [\\fIoptions\\fR]" if below else "")
        + " ".join(name(one) if not one.get("isOptional") else f"[{name(one)}]"
                   for one in command.get("arguments") or [] if not below and one["kind"] == "positional")
        + ("" if below else " [\\fIoptions\\fR]"),
    ]
    # As they are written, lines of text and typed ones.
    examples = re.search(r"^Examples?:\n((?:  .*\n?)+)\n*", command.get("discussion") or "", re.MULTILINE)
    described = (command.get("discussion") or "").replace(examples[0], "") if examples else command.get("discussion") or ""
    if described.strip():
        lines += [".SH DESCRIPTION", ".nf", text(described.strip()), ".fi"]
    if below:
        lines.append(".SH COMMANDS")
        for one in below:
            lines += [".TP", f"\\fB{text(one['commandName'])}\\fR", text(one.get("abstract") or "") or "\\&"]
    lines += options(command)
    if examples:
        lines += [".SH EXAMPLES", ".nf", text(examples[1].rstrip()), ".fi"]
    if path:
        lines += [".SH EXIT STATUS", f"As of \\fB{text(path[0])}\\fR(1).", ".SH SEE ALSO", f"\\fB{text('-'.join(path))}\\fR(1)"]
    else:
        lines += listed("EXIT STATUS", rows("COMMANDS.md", "| code | meaning |"))
        lines += listed("ENVIRONMENT", ((name, f"{about} ({option})" if option else about) for name, about, option in rows("SETTINGS.md", "| variable | meaning | option |")))
        lines += listed("FILES", FILES)
    if not path and below:
        lines += [".SH SEE ALSO", ", ".join(f"\\fB{text('-'.join(full + [one['commandName']]))}\\fR(1)" for one in below)]
    yield "-".join(full), "\n".join(lines) + "\n"
    for one in below:
        yield from pages(one, full, version)


if __name__ == "__main__":
    source, version, folder = sys.argv[1:]
    for title, page in pages(json.loads(Path(source).read_text())["command"], [], version):
        (Path(folder) / f"{title}.1").write_text(page)
