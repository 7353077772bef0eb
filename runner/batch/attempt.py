"""This file knows about one attempt at a problem, seen from outside its child.

It builds aside, judges how the child ended, and commits.

This is what runs on a worker. It never raises for what a problem does, and it alone writes
`result.json`: a child's word is taken only for what happened inside it.
"""

import importlib.metadata
import shutil
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from runner import __version__
from runner.batch.child import Outcome, Request, run_child
from runner.batch.machine import GIB
from runner.batch.work import STAGE_FILE, Record, Task
from runner.store.directory import commit, put_in_place
from runner.store.result import ProblemResult, hash_files, sha256_of


def estimate(task: Task, log: Path) -> Record:
    """Capture in a child, and say how much memory the problem needs."""
    scratch = building(task.directory)
    _empty(scratch)
    try:
        return _in_child("estimate", task.model_copy(update={"directory": scratch / "x"}), log)[0]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def decompose(task: Task, log: Path) -> tuple[ProblemResult, bool]:
    """Build the decomposition aside, verify it there, put it in place with its result.

    Returns the result, and whether a higher memory limit might give another one.
    """
    started = datetime.now(UTC)
    scratch = building(task.directory)
    _empty(scratch)
    built = scratch / task.directory.name
    built.mkdir()
    try:
        inside = task.model_copy(update={"directory": built})
        record, outcome = _in_child("decompose", inside, log)
        result = conclude(task, record, outcome, started, hash_files(built))
        commit(result, built)
        put_in_place(built, task.directory)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return result, record.out_of_memory


def verify(task: Task, log: Path) -> Record:
    """Verify a directory that stands, without touching it."""
    scratch = log.parent / f".{task.directory.name}.verifying"
    _empty(scratch)
    try:
        return _in_child("verify", task, log, scratch)[0]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def conclude(
    task: Task, record: Record, outcome: Outcome | None, started: datetime, files: dict[str, str]
) -> ProblemResult:
    """The result of a problem, from what its child said and how it ended."""
    return ProblemResult(
        problem=task.label.rpartition("/")[2],
        source_level=task.label.rpartition("/")[0],
        status=record.status,
        reason=record.reason,
        stage=record.stage,
        figures=record.figures,
        bitwise_equal=record.bitwise_equal,
        max_diff=record.max_diff,
        health=record.health,
        seconds=record.seconds,
        peak_memory_bytes=outcome.peak_memory_bytes if outcome else None,
        memory_limit_bytes=task.memory_bytes,
        started=started,
        source_sha256=_source_sha256(task.problem),
        kdrun_version=__version__,
        torch_version=importlib.metadata.version("torch"),
        options=task.options,
        files=files,
    )


def building(directory: Path) -> Path:
    """Where a decomposition is built before it takes its place, on the same file system."""
    return directory.parent / f".{directory.name}.building"


def stage_of(directory: Path) -> str | None:
    """What the child that builds this directory is doing now; None while there is none."""
    try:
        return (building(directory) / STAGE_FILE).read_text(encoding="utf-8")
    except OSError:
        return None


def _in_child(
    function: str, task: Task, log: Path, scratch: Path | None = None
) -> tuple[Record, Outcome]:
    scratch = scratch or task.directory.parent
    outcome = run_child(
        Request(
            function=f"runner.batch.work:{function}",
            argument=task.model_copy(update={"stage_file": scratch / STAGE_FILE}).model_dump_json(),
            directory=scratch,
            log=log,
            memory_bytes=task.memory_bytes,
            timeout_s=task.timeout_s,
        )
    )
    if outcome.answer is not None:
        try:
            return Record.model_validate_json(outcome.answer), outcome
        except ValidationError as error:
            what = f"the child's record is not one: {error.errors()[0]['msg']}"
            return Record(status="crashed", reason=what, stage="record"), outcome
    return _from_outside(task, outcome, scratch), outcome


def _from_outside(task: Task, outcome: Outcome, scratch: Path) -> Record:
    """The record of a child that left none."""
    try:
        stage = (scratch / STAGE_FILE).read_text(encoding="utf-8")
    except OSError:
        stage = "start"
    seconds = {stage: round(outcome.seconds, 3)}
    if outcome.timed_out:
        reason = f"no end after {task.timeout_s:g} s, in {stage!r}"
        return Record(status="timeout", reason=reason, stage=stage, seconds=seconds)
    # Native code that meets the limit aborts or segfaults where Python would raise MemoryError.
    full = outcome.signal is not None and outcome.peak_memory_bytes > 0.9 * task.memory_bytes
    reason = f"the child {outcome.how()} in {stage!r}"
    if full:
        reason += f", having used {outcome.peak_memory_bytes / GIB:.1f} GiB"
    return Record(status="crashed", reason=reason, stage=stage, out_of_memory=full, seconds=seconds)


def _source_sha256(problem: Path) -> str:
    try:
        return sha256_of(problem)
    except OSError:
        return ""


def _empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
