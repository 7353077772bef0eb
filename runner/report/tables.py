"""Makes the tables that commands print."""

from collections.abc import Collection, Sequence

from rich import box
from rich.table import Table


def new_table(columns: Sequence[str], right_aligned: Collection[str] = ()) -> Table:
    """Return an empty table in the style of all tables."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right_aligned else "left")
    return table
