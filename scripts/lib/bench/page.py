"""Pages with tables that scripts write: each between two marks with the name of its script."""


def put(path, script, text):
    """Puts text between the marks of its script in a page, at its end where there are none yet."""
    begin, end = f"<!-- from {script} -->", f"<!-- end of {script} -->"
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    head, found, rest = whole.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        head, tail = whole.rstrip("\n") + "\n\n", "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{head}{begin}\n{text}\n{end}{tail}")


def publish(path, script, lines):
    """Prints lines, and puts them into a page if one is named."""
    text = "\n".join(lines)
    print(text, flush=True)
    if path is not None:
        put(path, script, text)
