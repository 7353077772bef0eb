"""This file knows about working without Ray: one problem, or directories, in a child of our own."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.batch import attempt
from runner.batch.child.task import Record, Task
from runner.batch.cluster import usable_bytes
from runner.batch.machine import cores
from runner.batch.plan import label
from runner.batch.submit import run_options
from runner.config import Settings
from runner.errors import UsageError, unwritable
from runner.problems import identify
from runner.store.directory import DirectoryStore
from runner.store.result import ProblemResult
from runner.tree.document import LEVEL_FOLDER, TREE_FILE, refuse_other_versions
from runner.verify import Power, write_power
from runner.verify.reading_trees import read_mode

_LEVELS = tuple(LEVEL_FOLDER.values())


@dataclass(frozen=True, slots=True)
class Decomposed:
    """One problem, taken apart."""

    result: ProblemResult
    directory: Path
    log: Path | None
    """What its process printed, where it printed anything."""
    earlier_stays: bool = False
    """Whether the directory still holds an earlier decomposition, which passed."""


def decompose(file: Path, settings: Settings, named: str | None = None) -> Decomposed:
    """Take one problem apart and verify it, with all the memory that there is.

    A broken problem file does not replace an earlier decomposition of the same name that passed.
    `named` is what the file was written for, where that is `package.module:Class`.

    Raises:
        UsageError: there is nothing of that name, or no GPU for `--device cuda`.
        StoreError: the output directory cannot be written to.
    """
    problem = identify(file)
    store = DirectoryStore(settings.output)
    name = label(problem)
    directory = store.directory(name)
    most = usable_bytes(settings.memory)
    task = Task(
        problem=problem.path,
        named=named,
        label=name,
        directory=directory.absolute(),
        scratch=(directory.parent / f".{directory.name}.alone").absolute(),
        options=run_options(settings),
        memory_bytes=most,
        most_memory_bytes=most,
        threads=cores(),
        timeout_s=settings.timeout,
        keeps_passed=True,
    )
    log = settings.output / "logs" / f"{name}.log"
    done = attempt.decompose(task, log.absolute())
    if done.record.refused:
        raise UsageError(done.record.refused)
    if named and done.record.missing:
        file.unlink(missing_ok=True)
        package = named.partition(":")[0].partition(".")[0]
        hint = done.record.hint or f"is it spelled so in this version of {package}?"
        raise UsageError(f"{named}: {done.record.missing}", hint=hint)
    if done.result is None:  # no space was left
        done = attempt.give_up(task, done, log.absolute())
    assert done.result is not None
    return Decomposed(
        done.result,
        directory,
        log if log.exists() else None,
        earlier_stays=done.artifact_prefix is None,
    )


@dataclass(frozen=True, slots=True)
class Verified:
    """One directory, judged again."""

    directory: Path
    record: Record
    power: Power | None = None
    """What became of wrong kernels, where they were asked for."""
    power_file: Path | None = None
    """File that lists every wrong kernel; None where none was asked for."""

    def to_json(self) -> dict[str, Any]:
        """For people's programs."""
        return {
            "directory": str(self.directory),
            "status": self.record.status,
            "reason": self.record.reason,
            "advice": (self.record.verification or {}).get("advice", []),
            "verification": self.record.verification,
        }


def verify(directory: Path, settings: Settings, to: Path | None = None) -> Verified:
    """Verify a decomposition directory, whoever wrote it; it is only read.

    `to`: a file for the list of wrong kernels.

    Raises:
        UsageError: it is no decomposition directory at all, or there is no GPU for `--device cuda`.
        DecompositionError: its tree is of another schema version.
        StoreError: `to` cannot be written.
    """
    if not any((directory / part).exists() for part in (TREE_FILE, "original.py", *_LEVELS)):
        raise UsageError(
            f"{directory}: neither {TREE_FILE} nor original.py in it",
            hint="name a decomposition directory",
        )
    refuse_other_versions(directory)
    if to is not None:
        _refuse_unwritable(to)
    mode = read_mode(directory) or settings.mode
    most = usable_bytes(settings.memory)
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        task = Task(
            problem=(directory / "original.py").absolute(),
            label=directory.name,
            directory=directory.absolute(),
            scratch=Path(aside) / "scratch",
            options=run_options(settings).model_copy(update={"mode": mode}),
            memory_bytes=most,
            most_memory_bytes=most,
            threads=cores(),
            timeout_s=settings.timeout,
        )
        record = attempt.verify(task, Path(aside) / "log").record
    if record.refused:
        raise UsageError(record.refused)
    if record.status == "error":
        record = record.model_copy(update={"reason": f"original.py: {record.reason}"})
    found = (record.verification or {}).get("power")
    if found is None:
        return Verified(directory, record)
    power = Power.model_validate(found)
    if to is not None:
        try:
            write_power(to, power)
        except OSError as error:
            raise unwritable(to, error, "--to") from error
    return Verified(directory, record, power, to)


def _refuse_unwritable(file: Path) -> None:
    """Try to write a file before the long work for it; leave it as it was."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        was_there = file.exists()
        with file.open("ab"):
            pass
        if not was_there:
            file.unlink()
    except OSError as error:
        raise unwritable(file, error, "--to") from error
