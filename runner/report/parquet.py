"""This file knows about writing the catalogue as Parquet; the one place that imports pyarrow."""

from collections.abc import Sequence
from pathlib import Path

from runner.errors import UsageError, unwritable
from runner.report.catalogue import Workload, to_rows


def write(workloads: Sequence[Workload], path: Path) -> None:
    """One row a workload; its uses are a list of records.

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
        raise unwritable(path, error, "--parquet") from error
