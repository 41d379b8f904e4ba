"""Markdown of what was measured."""


class Section:
    """One run: a title, a sentence about it, its rows, and whether every target was met."""

    def __init__(self, title, about):
        self.title, self.about, self.rows, self.notes = title, about, [], []

    def row(self, what, target, measured, met=None):
        """`met`: None where there is no target."""
        self.rows.append((what, target, measured, met))

    def exact(self, what, wanted, found):
        self.row(what, f"exactly {wanted:,}" if isinstance(wanted, int) else f"`{wanted}`",
                 f"{found:,}" if isinstance(found, int) else f"`{found}`", wanted == found)  # fmt: skip

    def at_most(self, what, limit, found, unit, digits=1):
        self.row(what, f"< {limit:,} {unit}", f"{found:,.{digits}f} {unit}", found < limit)

    @property
    def missed(self):
        return [row for row in self.rows if row[3] is False]

    def lines(self):
        text = [f"## {self.title}", "", self.about, "", "| what | target | measured | verdict |", "|---|---|---|---|"]
        for what, target, measured, met in self.rows:
            verdict = "" if met is None else "met" if met else "**missed**"
            text.append(f"| {what} | {target} | {measured} | {verdict} |")
        for note in self.notes:
            text += ["", note]
        return text + [""]


def mebibytes(count):
    return count / 2**20


def microseconds(seconds, count):
    return seconds / max(1, count) * 1e6
