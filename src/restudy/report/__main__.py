"""`python -m restudy.report PRESET`: write the index of the site."""

from __future__ import annotations

import sys

from restudy.errors import RestudyError
from restudy.report.index import write


def main(arguments: list[str]) -> int:
    """Write `report/<preset>/index.html`; 0, or 1 with one line on stderr."""
    if len(arguments) != 1:
        print("usage: python -m restudy.report PRESET", file=sys.stderr)
        return 2
    try:
        write(arguments[0])
    except RestudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
