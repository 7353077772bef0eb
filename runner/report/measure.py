"""Measures the time of a catalogue's workloads, each in a child process of its own."""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from runner.batch.child.child_process import Request, close_fork_server, run_child
from runner.batch.child.device import look_for_device
from runner.batch.cluster import usable_bytes
from runner.batch.machine import GIB, cores
from runner.errors import UsageError
from runner.report.catalogue import (
    Catalogue,
    CatalogueWorkload,
    Roofs,
    Timing,
    add_times,
    source_of,
)
from runner.report.subject import Subject

TIMEOUT_S = 120.0
MEMORY_FACTOR = 2.5
"""Memory of a run relative to its tensors: operators copy them, and drawing them needs more."""
PROCESS_BYTES = GIB
MATRIX_DTYPES = {"float16", "bfloat16", "float32", "float64"}
"""Dtypes in which a matrix product is measured."""


def measure(
    catalogue: Catalogue,
    subject: Subject,
    chosen: Sequence[CatalogueWorkload],
    *,
    device: str,
    memory_bytes: int | None,
    on_done: Callable[[CatalogueWorkload], None],
) -> Catalogue:
    """Time the chosen workloads, one after the other, and sort the catalogue by time.

    Raises:
        UsageError: this machine has no such device.
        ClusterError: there is not enough free memory.
    """
    limit = usable_bytes(memory_bytes)
    timed: dict[tuple[str, str], CatalogueWorkload] = {}
    with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
        try:
            found_device = look_for_device(device)
            roofs = _measure_roofs(chosen, found_device.type, Path(folder), limit)
            for row in chosen:
                timed_row = _time_workload(
                    row, source_of(row, subject), found_device.type, Path(folder), limit
                )
                timed[(row.mode, row.id)] = timed_row
                on_done(timed_row)
        finally:
            close_fork_server()
    rows = [timed.get((row.mode, row.id), row) for row in catalogue.workloads]
    untimed = [row for row in timed.values() if row.untimed]
    notes = list(catalogue.notes)
    if len(chosen) < len(rows):
        notes.append(f"Only {len(chosen)} of {len(rows)} workloads were measured.")
    if untimed:
        notes.append(
            f"{len(untimed)} could not be measured: {untimed[0].name}: {untimed[0].untimed}."
        )
    noisy = [row for row in timed.values() if row.timing and row.timing.outliers]
    if noisy:
        notes.append(f"{len(noisy)} had runs far slower than their median.")
    with_notes = catalogue.model_copy(update={"notes": notes})
    return add_times(with_notes, rows, found_device.name, roofs)


def _time_workload(
    row: CatalogueWorkload, file: Path, device: str, folder: Path, limit: int
) -> CatalogueWorkload:
    needed_bytes = int(row.bytes * MEMORY_FACTOR) + PROCESS_BYTES
    if needed_bytes > limit and device == "cpu":
        reason = f"needs about {needed_bytes / GIB:.1f} GiB, there are {limit / GIB:.1f}"
        return row.model_copy(update={"untimed": reason})
    argument = json.dumps(
        {"file": str(file.absolute()), "mode": row.mode, "device": device, "threads": cores()}
    )
    outcome = run_child(_request("time_file", argument, folder, limit))
    if outcome.answer is None:
        failure = (
            f"no end within {TIMEOUT_S:.0f} s" if outcome.timed_out else outcome.describe_end()
        )
        return row.model_copy(update={"untimed": failure})
    answer = json.loads(outcome.answer)
    if "error" in answer:
        return row.model_copy(update={"untimed": answer["error"]})
    return row.model_copy(update={"timing": Timing.model_validate(answer)})


def _measure_roofs(
    chosen: Sequence[CatalogueWorkload], device: str, folder: Path, limit: int
) -> Roofs:
    """Measure what this device reaches at best, in each floating-point dtype of the workloads.

    Raises:
        UsageError: the measurement ends without a result.
    """
    used = {
        code for row in chosen for code in (*row.input_dtypes.values(), *row.weight_dtypes.values())
    }
    dtypes = sorted(used & MATRIX_DTYPES) or ["float32"]
    argument = json.dumps({"device": device, "dtypes": dtypes, "threads": cores()})
    outcome = run_child(_request("measure_roofs", argument, folder, limit))
    if outcome.answer is None:
        raise UsageError(f"--measure: the device's own speed: {outcome.describe_end()}")
    return Roofs.model_validate_json(outcome.answer)


def _request(function: str, argument: str, aside: Path, limit: int) -> Request:
    return Request(
        function=f"runner.report.stopwatch:{function}",
        argument=argument,
        directory=aside,
        log=aside / "log",
        memory_bytes=limit,
        timeout_s=TIMEOUT_S,
    )
