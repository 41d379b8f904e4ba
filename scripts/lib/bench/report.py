"""Markdown of the measured rows."""

import statistics

import tools as catalogue


def summary(rows):
    """Medians of one tool's runs."""

    def middle(key):
        return statistics.median(row[key] for row in rows)

    walls = [row["wall_seconds"] for row in rows]
    return {
        "wall": statistics.median(walls),
        "fastest": min(walls),
        "slowest": max(walls),
        "rate": rows[0]["requests"] / statistics.median(walls),
        "cpu_us": middle("client_cpu_seconds") / rows[0]["requests"] * 1e6,
        "rss": max(row["largest_process_bytes"] for row in rows),
    }


def left(rows):
    """Of the run whose files were read; what the others left differs where it is said."""
    read = next((row["left"] for row in rows if "good" in row["left"]), None)
    if read is None:
        return "not read"
    text = f"{read['good']:,} / {read['broken']:,} / {read['other']:,} / {read['missing']:,}"
    different = sum(row["left"]["files"] != read["files"] or row["left"]["bytes"] != read["bytes"] for row in rows)
    return text + (f" (another number of files or bytes in {different} runs)" if different else "")


def table(title, tools, rows):
    baseline = catalogue.BASELINES[title]
    results = {tool.name: summary(rows[tool.name]) for tool in tools if rows.get(tool.name)}
    floor = results.get(baseline)
    lines = [
        f"### {title}",
        "",
        "| tool | settings | wall s, median (min-max) | requests/s | ratio to "
        + baseline
        + " | client CPU us/request | largest process MB | left: good / broken kept / other / missing |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for tool in tools:
        result = results.get(tool.name)
        if result is None:
            continue
        ratio = f"{result['rate'] / floor['rate']:.2f}" if floor else "-"
        lines.append(
            f"| {tool.name} | {tool.settings} | {result['wall']:.2f} ({result['fastest']:.2f}-{result['slowest']:.2f}) | "
            f"{result['rate']:,.0f} | {ratio} | {result['cpu_us']:.0f} | {result['rss'] / 1e6:.0f} | {left(rows[tool.name])} |"
        )
    return lines


def markdown(facts, corpus, all_tools, rows):
    lines = [f"## web: {facts['requests']:,} requests, {facts['date']}", ""]
    place = facts["machine"]
    lines += [
        f"{place['cores']} cores ({place['processor']}), {place['memory_gib']} GiB, kernel {place['kernel']}, "
        f"{place['file_system']}; client and server share the cores. nginx {place['nginx']} ({facts['server_workers']} workers), "
        f"curl {place['curl']}, wget2 {place['wget2']}, libjpeg-turbo {place['libjpeg-turbo']}, libpng {place['libpng']}, "
        f"redis {place['redis']}.",
        "",
        f"{corpus['images']:,} generated images ({', '.join(f'{count:,} {kind}' for kind, count in corpus['kinds'].items())}; "
        f"seed {corpus['seed']}), {corpus['bytes'] / 1e6:,.1f} MB, under {corpus['queries']} query strings each; "
        f"{corpus['broken']:,} bodies are broken and {corpus['missing']:,} answered with 404. {facts['repetitions']} repetitions, "
        "the order of the tools rotated, a fresh folder for each run, no file deleted in between"
        f"{', those of earlier runs emptied' if facts['truncated'] else ''}. HTTP/1.1 on loopback from a "
        "warm page cache; client CPU is user + sys of all its processes, its private Redis included.",
        "",
    ]
    for title in catalogue.BASELINES:
        chosen = [tool for tool in all_tools if tool.table == title and rows.get(tool.name)]
        if chosen:
            lines += table(title, chosen, rows) + [""]
    noise = max(row["noise_cores"] for runs in rows.values() for row in runs)
    first = " Client and server went before them (--priority)." if facts["priority"] else ""
    lines.append(f"Other programs used at most {noise:.2f} cores during a run.{first}")
    if facts["complaints"]:
        lines += ["", "Not as it should be: " + "; ".join(facts["complaints"]) + "."]
    lines += ["", f"`{facts['command']}`"]
    return "\n".join(lines)


def short(facts, all_tools, rows):
    """The few columns a newcomer reads."""
    lines = [
        "| tool | what it checks | requests/s | CPU a request | broken files kept |",
        "|---|---|---:|---:|---:|",
    ]
    for title in catalogue.BASELINES:
        for tool in (tool for tool in all_tools if tool.table == title and rows.get(tool.name)):
            result = summary(rows[tool.name])
            read = next((row["left"] for row in rows[tool.name] if "good" in row["left"]), {"broken": "?"})
            lines.append(
                f"| {tool.title} | {tool.checks} | {result['rate']:,.0f} | {result['cpu_us']:,.0f} us | {read['broken']} |"
            )
    place = facts["machine"]
    lines += [
        "",
        f"Medians of {facts['repetitions']} runs of {facts['requests']:,} requests, {place['cores']} cores shared with the server, "
        f"{facts['date'].split()[0]}; `scripts/bench web` measures it again, [docs/BENCHMARK.md](docs/BENCHMARK.md) has the settings.",
    ]
    return "\n".join(lines)
