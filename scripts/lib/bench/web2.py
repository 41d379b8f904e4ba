"""The benchmark `web2`: what makes runs over real lists fail, in one table: names, certificates, and the number of transfers. Called by scripts/bench."""

import sys

import auto
import names
import rig


def main():
    parser = rig.parser("web2", "Runs the cases of names and auto, and puts what they have to reach into one table.")
    names.add_options(parser)
    auto.add_options(parser)
    options = parser.parse_args()
    with rig.Rig(options) as bench:
        rows, failed = names.measure(bench, options, names.CASES)
        table, more, too = auto.measure(bench, options, auto.CASES)
    lines = rig.heading("web2", "names, an untrusted certificate, and transfers that find their number")
    lines += ["| case | figure | bound | measured | kept |", "|---|---|---|---|---|", *rows, *more]
    lines += ["", f"### {auto.title(options)}", "", *auto.tabulate(table)]
    rig.publish(options, "web2", lines)
    return 1 if failed or too else 0


if __name__ == "__main__":
    sys.exit(main())
