"""Writes the catalogue as a Parquet file; the only module that imports pyarrow."""

from collections.abc import Sequence
from pathlib import Path

from runner.errors import UsageError, unwritable_error
from runner.report.catalogue import CatalogueWorkload, to_rows


def write_parquet(workloads: Sequence[CatalogueWorkload], path: Path) -> None:
    """Write one row for each workload; its uses are a list of records.

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
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(to_rows(workloads)), file)
    except OSError as error:
        raise unwritable_error(path, error, "--parquet") from error
