"""Writes a catalogue or census as a Parquet file; the only module that imports pyarrow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.errors import UsageError, unwritable_error


def write_parquet(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a record for each workload.

    Raises:
        UsageError: pyarrow is not installed.
        StoreError: the file cannot be written.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow", hint="pip install pyarrow, or use --json"
        ) from None
    try:
        with path.open("wb") as file:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)
    except OSError as error:
        raise unwritable_error(path, error, "--parquet") from error
