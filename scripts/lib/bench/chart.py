"""Charts of scripts/bench sets as SVG: text and rectangles only, readable on a light and on a dark page."""

WIDTH, ROW, LEFT, RIGHT = 760, 18, 190, 90
COLOURS = {"prefetch": "#2f7ed8", "prefetch, defaults": "#2f7ed8"}
OTHER = "#9aa5b1"


def head(width, height, label):
    style = "text{font:12px sans-serif;fill:#57606a}.t{font-weight:bold}"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{label}">',
        f"<style>{style}</style>",
    ]


def write(path, parts):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*parts, "</svg>", ""]))


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
    write(path, head(WIDTH, y + 8, "URLs a second of each tool, by set") + parts)


def curve(path, each):
    """How many good images were there after how many seconds."""
    lines = {tool: runs[0]["times"] for tool, runs in each.rows.items() if runs and runs[0].get("times")}
    if not lines:
        return
    height, bottom = 280, 240
    most = max(len(times) for times in lines.values())
    end = max(times[-1] for times in lines.values())
    shades = ["#2f7ed8", "#d1495b", "#7a8793", "#b08900", "#6f42c1", "#1b7c83"]
    parts = [f'<text x="{LEFT}" y="{height - 8}">seconds since the start; good images of {most:,}</text>']
    for mark in range(6):
        x = 60 + (WIDTH - 180) * mark / 5
        parts.append(f'<text x="{x:.0f}" y="{bottom + 18}" text-anchor="middle">{end * mark / 5:.0f}</text>')
    for number, (tool, times) in enumerate(lines.items()):
        step = max(1, len(times) // 300)
        points = [(0.0, 0), *((time, count + 1) for count, time in enumerate(times) if count % step == 0 or count == len(times) - 1)]
        text = " ".join(f"{60 + (WIDTH - 180) * time / end:.1f},{bottom - 220 * count / most:.1f}" for time, count in points)
        parts.append(f'<polyline fill="none" stroke="{shades[number % len(shades)]}" stroke-width="2" points="{text}"/>')
        parts.append(f'<text x="{WIDTH - 112}" y="{30 + 16 * number}" style="fill:{shades[number % len(shades)]}">{tool}: {times[-1]:.1f} s</text>')
    write(path, head(WIDTH, height, "Good images over time on the hostile set") + parts)
