"""The chart of scripts/bench sets as SVG: text and rectangles only, readable on a light and on a dark page."""

WIDTH, ROW, LEFT, RIGHT = 760, 18, 190, 90
COLOURS = {"prefetch": "#2f7ed8", "prefetch, defaults": "#2f7ed8"}
OTHER = "#9aa5b1"


def bars(path, sets):
    """A bar for each tool of each set: URLs a second, the longest of a set as wide as the chart."""
    parts, y = [], 10
    for each in sets:
        tools = [tool for tool in each.rows if not any(row.get("failed") for row in each.rows[tool])]
        if len(tools) < 2:
            continue
        y += 16
        parts.append(f'<text class="t" x="8" y="{y}">{each.name}</text>')
        parts.append(f'<text x="{LEFT}" y="{y}">{each.about}{f", {each.hosts} hosts" if each.hosts > 1 else ""}</text>')
        most = max(each.rate(tool) for tool in tools)
        for tool in tools:
            y += ROW
            width = max(1, (WIDTH - LEFT - RIGHT) * each.rate(tool) / most)
            parts.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{tool}</text>')
            parts.append(f'<rect x="{LEFT}" y="{y - 11}" width="{width:.1f}" height="13" fill="{COLOURS.get(tool, OTHER)}"/>')
            parts.append(f'<text x="{LEFT + width + 6:.1f}" y="{y}">{each.rate(tool):,.0f}/s</text>')
        y += 12
    size = f'viewBox="0 0 {WIDTH} {y + 8}" width="{WIDTH}" height="{y + 8}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="URLs a second of each tool, by set">']
    head.append("<style>text{font:12px sans-serif;fill:#57606a}.t{font-weight:bold}</style>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*head, *parts, "</svg>", ""]))
