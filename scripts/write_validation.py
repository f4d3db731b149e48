"""Computes docs/validation.md and its figures: `make validation`.

Needs the extras `silicon` and `plots`. What ships is read where no file is named:
`python scripts/write_validation.py --serving CSV --points YAML --reports YAML`. Rows of files that
may not ship are summed up, not listed.
"""

import argparse
from pathlib import Path

from validated import curves, curves_figure
from validated.document import document
from validated.figures import draw
from validated.tried import tried

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = DOCS / "figures" / "validation"


def main() -> None:
    """Predicts, writes, draws."""
    options = argparse.ArgumentParser(description=__doc__)
    for name in ("serving", "points", "reports"):
        options.add_argument(f"--{name}", type=Path)
    given = options.parse_args()
    found = tried(given.serving, given.points, given.reports)
    composed = curves.curves()
    target = DOCS / "validation.md"
    target.write_text(document(found, curves.section(composed)), encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    drawn = (*draw(found, FIGURES), curves_figure.draw(composed, FIGURES))
    for path in (target, *drawn):
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
