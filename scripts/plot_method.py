"""Computes and draws the figures of docs/method.md and fills in its tables: `make figures`.

Takes about three minutes of one core with numba; --drawn draws and tabulates what
docs/figures/method.json holds.
"""

import json
import sys
from pathlib import Path

from plotted.document import with_tables
from plotted.figures import draw

DOCS = Path(__file__).parents[1] / "docs"
NUMBERS = DOCS / "figures" / "method.json"


def main() -> None:
    """Computes, writes the numbers, draws."""
    if "--drawn" not in sys.argv:
        from plotted.studies import studies

        NUMBERS.write_text(json.dumps(studies(), indent=1) + "\n")
    tree = json.loads(NUMBERS.read_text())
    method = DOCS / "method.md"
    method.write_text(with_tables(method.read_text(), tree))
    for path in [NUMBERS, method, *draw(tree, NUMBERS.parent)]:
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
