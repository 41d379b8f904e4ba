"""Pages with tables that scripts write: each between two marks with the name of its script."""


def publish(path, script, lines):
    """Prints lines, and puts them between the marks of their script in a page; only prints them without one."""
    text = "\n".join(lines)
    print(text)
    if path is None:
        return
    begin, end = f"<!-- from {script} -->", f"<!-- end of {script} -->"
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    head, found, rest = whole.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        head, tail = whole.rstrip("\n") + "\n\n", "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{head}{begin}\n{text}\n{end}{tail}")
