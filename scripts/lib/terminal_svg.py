"""Text with SGR sequences (ECMA-48) from standard input as an SVG picture of a terminal, light or dark as the reader's page is.

terminal_svg.py COLUMNS TITLE
"""

import html
import re
import sys
import unicodedata

CELL, LINE, PAD, BAR = 8.4, 18, 16, 30
LIGHT = ["#24292f", "#cf222e", "#116329", "#7d4e00", "#0550ae", "#8250df", "#1b7c83", "#57606a"]
DARK = ["#e6edf3", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#9198a1"]


def runs(line, style):
    """The line's pieces with the same style: (column, cells, classes, text); and the style that the next line begins with."""
    column, result = 0, []
    for piece in re.split(r"(\x1b\[[0-9;:]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;:]*)m", piece)
        if code is None:
            if piece:
                cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in piece)
                result.append((column, cells, " ".join(sorted(style)), piece))
                column += cells
            continue
        for number in code[1].replace(":", ";").split(";"):
            number = int(number or 0)
            if number == 0:
                style = set()
            elif number in (1, 2, 4, 7):
                style = style | {{1: "b", 2: "d", 4: "u", 7: "r"}[number]}
            elif number == 22:
                style = style - {"b", "d"}
            elif number == 27:
                style = style - {"r"}
            elif 30 <= number <= 37 or 90 <= number <= 97:
                style = {c for c in style if not c.startswith("c")} | {f"c{number % 10}"}
            elif number == 39:
                style = {c for c in style if not c.startswith("c")}
    return result, style


def main():
    columns, title = int(sys.argv[1]), sys.argv[2]
    lines = [re.sub(r"\x1b[()][A-Z0-9]|\x0e|\x0f", "", line) for line in sys.stdin.read().split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    width, height = columns * CELL + 2 * PAD, len(lines) * LINE + BAR + 2 * PAD
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">',
        f"<title>{html.escape(title)}</title>",
        "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;"
        f"fill:{LIGHT[0]}}}.w{{fill:#f6f8fa;stroke:#d0d7de}}.s{{fill:#d0d7de}}.b{{font-weight:700}}.d{{opacity:.65}}.u{{text-decoration:underline}}"
        + "".join(f".c{n}{{fill:{c}}}" for n, c in enumerate(LIGHT))
        + f"@media(prefers-color-scheme:dark){{text{{fill:{DARK[0]}}}.w{{fill:#0d1117;stroke:#30363d}}.s{{fill:#30363d}}"
        + "".join(f".c{n}{{fill:{c}}}" for n, c in enumerate(DARK))
        + "}</style>",
        f'<rect class="w" x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="8"/>',
    ]
    for index, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        out.append(f'<circle cx="{PAD + 6 + index * 20}" cy="18" r="6" fill="{colour}"/>')
    style = set()
    for row, line in enumerate(lines):
        pieces, style = runs(line, style)
        y = BAR + PAD + (row + 0.75) * LINE
        for column, cells, classes, text in pieces:
            if "r" in classes.split():
                out.append(
                    f'<rect class="s" x="{PAD + column * CELL:.1f}" y="{y - 0.75 * LINE:.1f}" width="{cells * CELL:.1f}" height="{LINE}"/>'
                )
            if not text.strip():
                continue
            indent = len(text) - len(text.lstrip(" "))
            text, column, cells = text[indent:].rstrip(), column + indent, 0
            cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
            name = f' class="{classes}"' if classes else ""
            out.append(
                f'<text{name} x="{PAD + column * CELL:.1f}" y="{y:.1f}" textLength="{cells * CELL:.1f}" '
                f'lengthAdjust="spacingAndGlyphs">{html.escape(text)}</text>'
            )
    print("\n".join(out) + "\n</svg>")


main()
