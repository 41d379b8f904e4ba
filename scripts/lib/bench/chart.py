"""The chart of scripts/bench sets as SVG: text and rectangles only, readable on a light and on a dark page."""

WIDTH, ROW, LEFT, RIGHT = 760, 18, 190, 90
OURS, OTHER = "#2f7ed8", "#9aa5b1"
# What a reader of the README wants to see, in this order; the page has all.
SHOWN = ("trusted", "mix", "web", "https", "latency")


def bars(path, sets):
    """A bar for each tool of the sets that are shown: URLs a second, the longest of a set as wide as the chart."""
    parts, y = [], 10
    shown = [next(each for each in sets if each.name == name) for name in SHOWN if any(each.name == name for each in sets)]
    for each in shown:
        tools = [tool for tool in each.rows if not any(row.get("failed") for row in each.rows[tool])]
        if len(tools) < 2:
            continue
        y += 16
        about = f"{each.about.split(':')[0]}, {each.hosts} host{'s' if each.hosts > 1 else ''}"
        parts.append(f'<text class="t" x="8" y="{y}">{each.name}</text>')
        parts.append(f'<text x="{LEFT}" y="{y}">{about}</text>')
        most = max(each.rate(tool) for tool in tools)
        for tool in tools:
            y += ROW
            colour = OURS if tool.startswith("prefetch") else OTHER
            width = max(1, (WIDTH - LEFT - RIGHT) * each.rate(tool) / most)
            parts.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{tool}</text>')
            parts.append(f'<rect x="{LEFT}" y="{y - 11}" width="{width:.1f}" height="13" fill="{colour}"/>')
            parts.append(f'<text x="{LEFT + width + 6:.1f}" y="{y}">{each.rate(tool):,.0f}/s</text>')
        y += 12
    size = f'viewBox="0 0 {WIDTH} {y + 8}" width="{WIDTH}" height="{y + 8}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="URLs a second of each tool, by set">']
    head.append("<style>text{font:12px sans-serif;fill:#57606a}.t{font-weight:bold}</style>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*head, *parts, "</svg>", ""]))
