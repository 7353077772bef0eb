"""Makes one attempt at a problem: starts its child, judges how the child ended, commits the result.

The decomposition is built in a scratch directory and moved into place when it is complete. Nothing
that a problem does raises an exception here. Only this module writes `result.json`; of the child's
answer it uses only what happened inside the child.
"""

import importlib.metadata
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from runner import __version__
from runner.batch.child import problem_logs
from runner.batch.child.answer import (
    Answer,
    FailureAnswer,
    FailureCause,
    VerdictAnswer,
    describe_problem_error,
    failure_cause,
)
from runner.batch.child.child_process import Outcome, Request, run_child
from runner.batch.child.task import Task, TaskTarget
from runner.batch.decomposer import rounds
from runner.batch.machine import GIB
from runner.errors import KdrunError, StoreError, comes_from_full_disk, unwritable_error
from runner.problems import read_variant
from runner.problems.problem import find_mistake
from runner.quantities import size
from runner.statuses import Status
from runner.store.directory import commit, put_in_place
from runner.store.result import Decomposed, Document, ProblemResult, hash_files, sha256_of
from runner.store.runs import RunStore
from runner.tree.document import TREE_FILE
from runner.zoo import find_shared_modules, read_zoo_origin

Kind = Literal["estimate", "facts", "decompose", "judge", "verify"]
"""Name of the function of `runner.batch.child.problem_work` that a child runs."""


_ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)
_PROBLEM_FOLDER = "problem"
"""Folder in an attempt's scratch directory for a problem file that came with its task."""


class Attempt(Document):
    """Outcome of an attempt, which a worker returns to the driver."""

    answer: Answer
    started: datetime
    cpu_seconds: float | None = None
    """CPU seconds of the child."""
    peak_memory_bytes: int | None = None
    """Largest resident set of the child in bytes."""
    node: str | None = None
    """Host that the attempt ran on."""
    decomposer: Decomposed | None = None
    """Command and rounds of the decomposer; None if kdrun itself decomposed the problem."""
    result: ProblemResult | None = None
    """Committed result; None if another attempt follows or the task asks for no result."""
    result_sha256: str | None = None
    """SHA-256 of the result's `result.json`."""
    artifact_prefix: str | None = None
    """Location of the result's files, relative to the output directory or to the run's store."""
    differs: list[str] = Field(default_factory=list)
    """Fields in which the committed result, if another worker's, differs from this attempt's."""
    upload_s: float | None = None
    uploaded_bytes: int | None = None
    store_error: str | None = None
    """Reason why the result could not be stored; it is still on this machine."""


def run_task(task_json: str, log: str) -> str:
    """Decompose the task's problem and return the attempt as JSON; never raises for a problem."""
    task = Task.model_validate_json(task_json)
    try:
        attempt = decompose(task, Path(log))
    except (KdrunError, OSError) as error:  # The child cannot start, or the disk is full.
        attempt = Attempt(
            answer=FailureAnswer(
                status="failed",
                reason=str(error),
                stage="start",
                cause=FailureCause.DISK_FULL if comes_from_full_disk(error) else None,
            ),
            started=datetime.now(UTC),
            node=socket.gethostname(),
        )
    return attempt.model_dump_json()


def run_without_commit(
    kind: Literal["estimate", "facts", "verify"], task: Task, log: Path
) -> Attempt:
    """Run a function of `problem_work` that writes no decomposition in a child."""
    with _scratch_directory(task, "TMPDIR") as task:
        return _run_in_child(kind, task, log)


def decompose(task: Task, log: Path) -> Attempt:
    """Build and verify the decomposition in a scratch directory, then move it into place.

    If the task keeps an earlier result that passed, the result of a broken problem, or of a
    decomposer that delivered nothing, is returned without `artifact_prefix` and nothing is moved.

    Raises:
        StoreError: the output directory cannot be written to.
    """
    with _scratch_directory(task, "--output") as task:
        with _raise_store_errors(task, "--output"):
            task.build_directory.mkdir()
        attempt = rounds.decompose(task, log, _run_in_child)
        has_no_result = {
            FailureCause.NEEDS_MORE: True,
            FailureCause.DISK_FULL: True,
            FailureCause.REFUSED: True,
            FailureCause.OUT_OF_MEMORY: task.may_grow,
            FailureCause.MISSING: task.import_name is not None,
            None: False,
        }
        if has_no_result[failure_cause(attempt.answer)]:
            return attempt
        is_empty = attempt.answer.status == "error" or (
            attempt.decomposer is not None and not (task.build_directory / TREE_FILE).exists()
        )
        earlier = ProblemResult.find(task.directory) if task.keeps_passed and is_empty else None
        if earlier is not None and earlier.status == "passed":
            return attempt.model_copy(update={"result": _build_result(task, attempt, log)})
        return _commit(task, attempt, log)


def commit_failure(task: Task, attempt: Attempt, log: Path) -> Attempt:
    """Commit a final result for an attempt that committed none, such as one whose worker died.

    Raises:
        StoreError: the result cannot be written.
    """
    with _scratch_directory(task, "--output") as task:
        with _raise_store_errors(task, "--output"):
            task.build_directory.mkdir()
        with suppress(OSError):
            shutil.copyfile(task.problem, task.build_directory / "original.py")
        return _commit(task, attempt, log)


def read_stage(task: Task) -> str | None:
    """Return the stage that the task's child is in; None if no child has started."""
    try:
        return task.stage_file.read_text(encoding="utf-8") or None
    except OSError:
        return None


def remove_scratch(task: Task) -> None:
    """Remove an attempt's scratch directory."""
    shutil.rmtree(task.scratch, ignore_errors=True)


def _commit(task: Task, attempt: Attempt, log: Path) -> Attempt:
    """Write the result, move the directory into place, and store both if the task has a target."""
    with _raise_store_errors(task, "--output"):
        result = _build_result(task, attempt, log)
        commit(result, task.build_directory)
        put_in_place(task.build_directory, task.directory)
    if task.target is None:
        storage_fields = {
            "result": result,
            "artifact_prefix": task.label,
            "result_sha256": result.sha256,
        }
    else:
        storage_fields = _store_result(task, task.target, result, log)
    return attempt.model_copy(update=storage_fields)


def _build_result(task: Task, attempt: Attempt, log: Path) -> ProblemResult:
    """Copy the log into the built directory and return the result that describes it."""
    answer = attempt.answer
    problem_logs.copy_log(log, task.build_directory)
    source_level, _, name = task.label.rpartition("/")
    compared = {"bitwise_equal", "max_diff", "health", "warnings", "peak_device_bytes"}
    return ProblemResult(
        problem=name,
        source_level=source_level,
        status=answer.status,
        reason=answer.reason,
        source_line=answer.source_line if isinstance(answer, FailureAnswer) else None,
        stage=answer.stage,
        figures=answer.figures,
        **(answer.model_dump(include=compared) if isinstance(answer, VerdictAnswer) else {}),
        seconds=answer.seconds,
        cpu_seconds=attempt.cpu_seconds,
        peak_memory_bytes=attempt.peak_memory_bytes,
        memory_limit_bytes=task.memory_bytes,
        estimated_memory_bytes=answer.forecast.expected_bytes if answer.forecast else None,
        started=attempt.started,
        source_sha256=_hash_source(task.problem),
        variant=read_variant(task.problem),
        kdrun_version=__version__,
        torch_version=importlib.metadata.version("torch"),
        options=task.options
        if attempt.decomposer
        else task.options.model_copy(update={"decomposer": None}),
        decomposer=attempt.decomposer,
        files=hash_files(task.build_directory),
    )


def _store_result(
    task: Task, target: TaskTarget, result: ProblemResult, log: Path
) -> dict[str, Any]:
    """Upload a finished decomposition and its log; return the attempt's fields about storage."""
    started_s = time.monotonic()
    try:
        store = RunStore(target.address)
        log_bytes = store.put_log(target.run_id, task.label, log) if log.is_file() else 0
        publication = store.publish(target.run_id, result, task.directory, target.supersedes)
        if target.moved:
            shutil.rmtree(task.directory, ignore_errors=True)
            log.unlink(missing_ok=True)
    except (StoreError, OSError) as error:
        return {"result": result, "store_error": str(error)}
    return {
        "result": publication.committed.result,
        "result_sha256": publication.committed.sha256,
        "artifact_prefix": publication.committed.prefix,
        "differs": list(publication.differs),
        "upload_s": round(time.monotonic() - started_s, 3),
        "uploaded_bytes": log_bytes + publication.sent_bytes,
    }


def _run_in_child(kind: Kind, task: Task, log: Path) -> Attempt:
    started = datetime.now(UTC)
    if kind in ("estimate", "facts", "decompose"):
        mistake = find_mistake(task.problem)
        if mistake is not None:  # Found by reading the file, so no child is needed.
            log.unlink(missing_ok=True)
            failure = describe_problem_error(mistake, "load")
            return Attempt(answer=failure, started=started, node=socket.gethostname())
    origin = read_zoo_origin(task.problem)
    outcome = run_child(
        Request(
            function=f"runner.batch.child.problem_work:{kind}",
            argument=task.model_copy(update={"target": None}).model_dump_json(),
            directory=task.scratch,
            log=log,
            memory_bytes=task.memory_bytes,
            timeout_s=task.timeout_s,
            imports=find_shared_modules(origin.package) if origin else (),
        )
    )
    with suppress(FileNotFoundError):  # Another command with this output may have removed it.
        if log.stat().st_size == 0:
            log.unlink()
        else:
            problem_logs.hide_credentials(log)
    setting = "--output" if kind in ("decompose", "judge") else "TMPDIR"
    answer = _read_answer(task, outcome, setting)
    if outcome.disk_full and answer.status != "passed":
        _free_space(task)
    return Attempt(
        answer=answer,
        started=started,
        cpu_seconds=round(outcome.cpu_seconds, 3),
        peak_memory_bytes=outcome.peak_memory_bytes,
        node=socket.gethostname(),
    )


def _free_space(task: Task) -> None:
    """Remove the child's unfinished files, because the disk is full."""
    for path in task.scratch.iterdir():
        if path.is_dir() and not path.is_symlink():
            if path.name != _PROBLEM_FOLDER:
                shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    task.build_directory.mkdir(exist_ok=True)
    with suppress(OSError):
        shutil.copyfile(task.problem, task.build_directory / "original.py")


def _read_answer(task: Task, outcome: Outcome, setting: str) -> Answer:
    """Return the child's own answer, or one about how the child ended without leaving any.

    `setting` decides which disk the child works on; the reason for a full disk names it.
    """
    if outcome.answer is not None:
        try:
            answer = _ANSWERS.validate_json(outcome.answer)
        except ValidationError as error:
            mismatch = f"the child's answer is none: {error.errors()[0]['msg']}"
            return FailureAnswer(status="crashed", reason=mismatch, stage="answer")
        if answer.status == "passed" or not outcome.filled_bytes:
            if failure_cause(answer) is not FailureCause.DISK_FULL:
                return answer
            if not outcome.disk_full:  # The disk has room.
                return answer.model_copy(update={"cause": None})
            reason = f"no space left on the disk of {_describe_disk(task, setting)}"
            return answer.model_copy(update={"reason": reason})
    stage = read_stage(task) or "start"
    cause = None
    status: Status = "crashed"
    if outcome.timed_out:
        status, reason = "timeout", f"not finished after {task.timeout_s:g} s, in {stage!r}"
    elif outcome.filled_bytes:
        written_amount = f"wrote {size(outcome.filled_bytes)} in {stage!r}"
        reason = f"{written_amount}, which filled the disk of {_describe_disk(task, setting)}"
    elif outcome.disk_full:
        cause = FailureCause.DISK_FULL
        reason = f"no space left in {stage!r} on the disk of {_describe_disk(task, setting)}"
    else:
        # Native code that reaches the memory limit aborts or segfaults instead of raising.
        reason = f"its process {outcome.describe_end()} in {stage!r}"
        if outcome.signal is not None and outcome.peak_memory_bytes > 0.9 * task.memory_bytes:
            cause = FailureCause.OUT_OF_MEMORY
            reason += f", having used {outcome.peak_memory_bytes / GIB:.1f} GiB"
    seconds = {stage.split(":")[0]: round(outcome.seconds, 3)}
    return FailureAnswer(status=status, reason=reason, stage=stage, cause=cause, seconds=seconds)


def _describe_disk(task: Task, setting: str) -> str:
    """Return a phrase that names the task's folder, the free space there and what to do."""
    folder = task.scratch.parent
    space = shutil.disk_usage(folder)
    free = f"{size(space.free)} of {size(space.total)} free"
    return f"{folder} ({free}); free some space there, or choose another {setting}"


def _hash_source(problem: Path) -> str:
    try:
        return sha256_of(problem)
    except OSError:
        return ""


@contextmanager
def _scratch_directory(task: Task, setting: str) -> Iterator[Task]:
    """Make the scratch directory, yield the task, and remove the directory afterwards.

    If the problem file came with the task, it is written there and the yielded task names it.

    Raises:
        StoreError: the directory, or the problem file in it, cannot be written.
    """
    remove_scratch(task)
    try:
        with _raise_store_errors(task, setting):
            task.scratch.mkdir(parents=True)
            if task.source is not None:
                problem = task.scratch / _PROBLEM_FOLDER / f"{task.label}.py"
                problem.parent.mkdir(parents=True)
                problem.write_bytes(task.source)
                task = task.model_copy(update={"problem": problem, "source": None})
        yield task
    finally:
        remove_scratch(task)


@contextmanager
def _raise_store_errors(task: Task, setting: str) -> Iterator[None]:
    """Turn an OSError into a StoreError that names the task's folder and `setting`."""
    try:
        yield
    except KdrunError:
        raise
    except OSError as error:
        raise unwritable_error(task.scratch.parent, error, setting) from error
