"""This file knows about one attempt at a problem, seen from outside its child.

It builds aside, judges how the child ended, and commits. It never raises for what a problem does,
and it alone writes `result.json`: a child's word is taken only for what happened inside it.
"""

import errno
import importlib.metadata
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from runner import __version__
from runner.batch.child import problem_logs
from runner.batch.child.child_process import Outcome, Request, run_child
from runner.batch.child.task import Record, Target, Task, record_of
from runner.batch.decomposer import rounds
from runner.batch.machine import GIB
from runner.errors import KdrunError, StoreError, is_disk_full, unwritable_error
from runner.problems import find_mistake
from runner.store.directory import commit, put_in_place
from runner.store.result import Decomposed, Document, ProblemResult, hash_files, sha256_of
from runner.store.runs import RunStore

Kind = Literal["estimate", "facts", "decompose", "judge", "verify"]
"""What a child is asked for: a function of `runner.batch.child.problem_work`."""


MIB = 1 << 20
_PROBLEM = "problem"
"""Below an attempt's scratch directory: the file that came with the task."""


class Attempt(Document):
    """How an attempt ended: what a worker has to say to who sent the task."""

    record: Record
    started: datetime
    cpu_seconds: float | None = None
    """Processor time of the child."""
    peak_memory_bytes: int | None = None
    """Largest resident set of the child."""
    node: str | None = None
    """Host that it ran on."""
    decomposer: Decomposed | None = None
    """Who took the problem apart, where that was not kdrun."""
    result: ProblemResult | None = None
    """What stands; absent where another attempt is to follow, or none was to be made."""
    result_sha256: str | None = None
    """Of its result.json."""
    artifact_prefix: str | None = None
    """Where its files are, relative to the output directory or to the run's store."""
    differs: list[str] = Field(default_factory=list)
    """In what another writer's result, which stands, is not what was made here."""
    upload_s: float | None = None
    uploaded_bytes: int | None = None
    store_error: str | None = None
    """Why the result could not be stored; it is on this machine."""


def perform(task_json: str, log: str) -> str:
    """Take a problem apart on this machine; JSON in and out, and no exception leaves."""
    task = Task.model_validate_json(task_json)
    try:
        attempt = decompose(task, Path(log))
    except (KdrunError, OSError) as error:  # no child can be started, no space is left
        attempt = Attempt(record=_impossible(error), started=datetime.now(UTC), node=_host())
    return attempt.model_dump_json()


def _impossible(error: KdrunError | OSError) -> Record:
    cause = error.__cause__ or error
    full = isinstance(cause, OSError) and is_disk_full(cause)
    return Record(status="failed", reason=str(error), stage="start", disk_full=full)


def estimate(task: Task, log: Path) -> Attempt:
    """Capture in a child, and say how much memory the problem needs. Commits nothing."""
    with _scratch(task, "TMPDIR") as task:
        return _in_child("estimate", task, log)


def facts(task: Task, log: Path) -> Attempt:
    """Look in a child at what the problem's program does. Commits nothing."""
    with _scratch(task, "TMPDIR") as task:
        return _in_child("facts", task, log)


def decompose(task: Task, log: Path) -> Attempt:
    """Build the decomposition aside, verify it there, put it in place with its result.

    Where the task keeps what passed, a result without `artifact_prefix` was not put in place.

    Raises:
        StoreError: the output directory cannot be written to.
    """
    with _scratch(task, "--output") as task:
        with _writing(task, "--output"):
            task.built.mkdir()
        attempt = rounds.decompose(task, log, _in_child)
        record = attempt.record
        elsewhere = record.asks_for_more or record.disk_full or record.refused
        if elsewhere or (record.out_of_memory and task.may_grow) or (record.missing and task.named):
            return attempt
        if task.keeps_passed and record.status == "error" and _has_passed(task.directory):
            return attempt.model_copy(update={"result": _result(task, attempt, log)})
        return _commit(task, attempt, log)


def verify(task: Task, log: Path) -> Attempt:
    """Verify a directory that stands, without touching it."""
    with _scratch(task, "TMPDIR") as task:
        return _in_child("verify", task, log)


def give_up(task: Task, attempt: Attempt, log: Path) -> Attempt:
    """Commit what an attempt that left nothing, or the loss of the worker, said to be the end.

    Raises:
        StoreError: it cannot be written.
    """
    with _scratch(task, "--output") as task:
        with _writing(task, "--output"):
            task.built.mkdir()
        with suppress(OSError):
            shutil.copyfile(task.problem, task.built / "original.py")
        return _commit(task, attempt, log)


def stage_of(task: Task) -> str | None:
    """What the task's child is doing now; None while there is none."""
    try:
        return task.stage_file.read_text(encoding="utf-8") or None
    except OSError:
        return None


def clean_up(task: Task) -> None:
    """Remove what an attempt left that could not clean up itself."""
    shutil.rmtree(task.scratch, ignore_errors=True)


def _has_passed(directory: Path) -> bool:
    try:
        return ProblemResult.from_directory(directory).status == "passed"
    except StoreError:
        return False


def _commit(task: Task, attempt: Attempt, log: Path) -> Attempt:
    """Write the result, let the directory take its place, and store it where that is wanted."""
    with _writing(task, "--output"):
        result = _result(task, attempt, log)
        commit(result, task.built)
        put_in_place(task.built, task.directory)
    if task.target is None:
        done = {"result": result, "artifact_prefix": task.label, "result_sha256": result.sha256}
    else:
        done = _stored(task, task.target, result, log)
    return attempt.model_copy(update=done)


def _result(task: Task, attempt: Attempt, log: Path) -> ProblemResult:
    """Return the result of what was built; its log is kept among the files."""
    record = attempt.record
    problem_logs.keep(log, task.built)
    source_level, _, name = task.label.rpartition("/")
    return ProblemResult(
        problem=name,
        source_level=source_level,
        status=record.status,
        reason=record.reason,
        stage=record.stage,
        figures=record.figures,
        bitwise_equal=record.bitwise_equal,
        max_diff=record.max_diff,
        health=record.health,
        warnings=record.warnings,
        seconds=record.seconds,
        cpu_seconds=attempt.cpu_seconds,
        peak_memory_bytes=attempt.peak_memory_bytes,
        peak_device_bytes=record.peak_device_bytes,
        memory_limit_bytes=task.memory_bytes,
        estimated_memory_bytes=record.forecast.expected_bytes if record.forecast else None,
        started=attempt.started,
        source_sha256=_source_sha256(task.problem),
        kdrun_version=__version__,
        torch_version=importlib.metadata.version("torch"),
        options=task.options
        if attempt.decomposer
        else task.options.model_copy(update={"decomposer": None}),
        decomposer=attempt.decomposer,
        files=hash_files(task.built),
    )


def _stored(task: Task, target: Target, result: ProblemResult, log: Path) -> dict[str, Any]:
    """Put a finished decomposition, and what its process printed, into the run's store."""
    began = time.monotonic()
    try:
        store = RunStore(target.address)
        sent = store.put_log(target.run_id, task.label, log) if log.is_file() else 0
        published = store.publish(target.run_id, result, task.directory, target.supersedes)
        if target.moved:
            shutil.rmtree(task.directory, ignore_errors=True)
            log.unlink(missing_ok=True)
    except (StoreError, OSError) as error:
        return {"result": result, "store_error": str(error)}
    return {
        "result": published.committed.result,
        "result_sha256": published.committed.sha256,
        "artifact_prefix": published.committed.prefix,
        "differs": list(published.differs),
        "upload_s": round(time.monotonic() - began, 3),
        "uploaded_bytes": sent + published.sent_bytes,
    }


def _in_child(kind: Kind, task: Task, log: Path) -> Attempt:
    started = datetime.now(UTC)
    if kind in ("estimate", "facts", "decompose"):
        mistake = find_mistake(task.problem)
        if mistake is not None:  # no child has to import torch to see it
            log.unlink(missing_ok=True)
            return Attempt(record=record_of(mistake, "load"), started=started, node=_host())
    outcome = run_child(
        Request(
            function=f"runner.batch.child.problem_work:{kind}",
            argument=task.model_copy(update={"target": None}).model_dump_json(),
            directory=task.scratch,
            log=log,
            memory_bytes=task.memory_bytes,
            timeout_s=task.timeout_s,
        )
    )
    if log.stat().st_size == 0:
        log.unlink()
    else:
        problem_logs.hide_credentials(log)
    record = _record(task, outcome, "--output" if kind in ("decompose", "judge") else "TMPDIR")
    if outcome.disk_full and record.status != "passed":
        _make_space(task)
    return Attempt(
        record=record,
        started=started,
        cpu_seconds=round(outcome.cpu_seconds, 3),
        peak_memory_bytes=outcome.peak_memory_bytes,
        node=_host(),
    )


def _make_space(task: Task) -> None:
    """Remove what a child wrote: it is worth nothing, and the space is wanted."""
    for path in task.scratch.iterdir():
        if path.is_dir() and not path.is_symlink():
            if path.name != _PROBLEM:
                shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    task.built.mkdir(exist_ok=True)
    with suppress(OSError):
        shutil.copyfile(task.problem, task.built / "original.py")


def _host() -> str:
    return socket.gethostname()


def _record(task: Task, outcome: Outcome, setting: str) -> Record:
    """Return the child's own record, or one that tells how a child ended that left none.

    The setting decides where the child works; a reason that names a full disk names it, too.
    """
    if outcome.answer is not None:
        try:
            record = Record.model_validate_json(outcome.answer)
            if record.status == "passed" or not outcome.filled_bytes:
                if outcome.disk_full and os.strerror(errno.ENOSPC) in (record.reason or ""):
                    reason = f"no space left on the disk of {_space(task, setting)}"
                    return record.model_copy(update={"disk_full": True, "reason": reason})
                return record
        except ValidationError as error:
            what = f"the child's record is not one: {error.errors()[0]['msg']}"
            return Record(status="crashed", reason=what, stage="record")
    stage = stage_of(task) or "start"
    seconds = {stage.split(":")[0]: round(outcome.seconds, 3)}
    if outcome.timed_out:
        reason = f"not finished after {task.timeout_s:g} s, in {stage!r}"
        return Record(status="timeout", reason=reason, stage=stage, seconds=seconds)
    if outcome.filled_bytes:
        wrote = f"wrote {_size(outcome.filled_bytes)} in {stage!r}"
        reason = f"{wrote}, which filled the disk of {_space(task, setting)}"
        return Record(status="crashed", reason=reason, stage=stage, seconds=seconds)
    if outcome.disk_full:
        reason = f"no space left in {stage!r} on the disk of {_space(task, setting)}"
        return Record(status="crashed", reason=reason, stage=stage, disk_full=True, seconds=seconds)
    # Native code that meets the limit aborts or segfaults where Python would raise MemoryError.
    full = outcome.signal is not None and outcome.peak_memory_bytes > 0.9 * task.memory_bytes
    reason = f"its process {outcome.how()} in {stage!r}"
    if full:
        reason += f", having used {outcome.peak_memory_bytes / GIB:.1f} GiB"
    return Record(status="crashed", reason=reason, stage=stage, out_of_memory=full, seconds=seconds)


def _space(task: Task, setting: str) -> str:
    """Name the folder on a full disk, with the space there and what to do about it."""
    folder = task.scratch.parent
    space = shutil.disk_usage(folder)
    free = f"{_size(space.free)} of {_size(space.total)} free"
    return f"{folder} ({free}); free some space there, or choose another {setting}"


def _size(count_bytes: int) -> str:
    if count_bytes >= GIB:
        return f"{count_bytes / GIB:.1f} GiB"
    return f"{count_bytes / MIB:.1f} MiB"


def _source_sha256(problem: Path) -> str:
    try:
        return sha256_of(problem)
    except OSError:
        return ""


@contextmanager
def _scratch(task: Task, setting: str) -> Iterator[Task]:
    """Make a folder for the attempt; the problem is put there if it came with the task.

    Raises:
        StoreError: the folder, or the problem in it, cannot be written.
    """
    clean_up(task)
    try:
        with _writing(task, setting):
            task.scratch.mkdir(parents=True)
            if task.source is not None:
                problem = task.scratch / _PROBLEM / f"{task.label}.py"
                problem.parent.mkdir(parents=True)
                problem.write_bytes(task.source)
                task = task.model_copy(update={"problem": problem, "source": None})
        yield task
    finally:
        clean_up(task)


@contextmanager
def _writing(task: Task, setting: str) -> Iterator[None]:
    """Raise a StoreError that names the task's folder and its setting for an OSError."""
    try:
        yield
    except KdrunError:
        raise
    except OSError as error:
        raise unwritable_error(task.scratch.parent, error, setting) from error
