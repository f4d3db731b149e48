"""Report to rich tables on a console."""

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from capplan.report.layout import Note, Report, Table


def show(report: Report, console: Console) -> None:
    """Prints tables first, then notes; wraps to the console's width."""
    console.print(Text(report.title, style="bold"))
    for line in report.subtitle:
        if line:
            console.print(Text(line))
    for table in report.tables:
        console.print()
        console.print(_rich(table))
    for note in report.notes:
        _print_note(note, console)


def _rich(table: Table) -> RichTable:
    rich = RichTable(
        title=Text(table.title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )
    for place, column in enumerate(table.columns):
        rich.add_column(column, justify="right" if place else "left", no_wrap=place > 0)
    for row in table.rows:
        heading = len(row) > 1 and not any(row[1:])
        rich.add_row(*(Text(cell) for cell in row), style="bold" if heading else None)
    return rich


def _print_note(note: Note, console: Console) -> None:
    if not note.lines:
        return
    console.print()
    console.print(Text(note.heading, style="bold"))
    for line in note.lines:
        console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))
