"""Decomposes or verifies one problem without Ray, in a child of this process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.batch import attempt
from runner.batch.child.answer import Answer, FailureAnswer, FailureCause, VerdictAnswer
from runner.batch.submit import local_task, run_locally
from runner.config import Settings
from runner.errors import UsageError, unwritable_error
from runner.problems import identify_problem
from runner.store.directory import DirectoryStore, refuse_unwritable
from runner.store.result import ProblemResult
from runner.tree.document import LEVEL_FOLDER, TREE_FILE, refuse_other_versions
from runner.verify import Power, write_power
from runner.verify.reading_trees import read_mode

_LEVELS = tuple(LEVEL_FOLDER.values())


@dataclass(frozen=True, slots=True)
class LocalDecomposition:
    """Outcome of decomposing one problem without Ray."""

    result: ProblemResult
    directory: Path
    log: Path | None
    """Log of the child's output; None if it printed nothing."""
    replaces_another: bool = False
    """Whether an earlier decomposition of another file, which passed, was replaced."""
    earlier_stays: bool = False
    """Whether `directory` still holds an earlier decomposition that passed, and not this result."""


def decompose(
    file: Path, settings: Settings, import_name: str | None = None, *, keeps_values: bool = False
) -> LocalDecomposition:
    """Decompose and verify one problem, with all the memory that is free.

    A broken problem file does not replace an earlier decomposition of the same name that passed.
    `import_name` is the `package.module:Class` that the file was generated from, if any.
    `keeps_values`: the caller will store values beside the files.

    Raises:
        UsageError: `import_name` does not exist, or there is no GPU for `--device cuda`.
        StoreError: the output directory cannot be written to.
    """
    problem = identify_problem(file)
    store = DirectoryStore(settings.output)
    name = problem.label
    directory = store.directory(name)
    scratch = directory.parent / f".{directory.name}.alone"
    facts = {"import_name": import_name, "keeps_passed": True, "keeps_values": keeps_values}
    task = local_task(problem.path, name, directory, scratch, settings).model_copy(update=facts)
    log = settings.output / "logs" / f"{name}.log"
    earlier = store.result(name)
    outcome = attempt.decompose(task, log.absolute())
    answer = outcome.answer
    _raise_if_refused(answer)
    if import_name and isinstance(answer, FailureAnswer) and answer.missing:
        file.unlink(missing_ok=True)
        package = import_name.partition(":")[0].partition(".")[0]
        hint = answer.hint or f"is it spelled so in this version of {package}?"
        raise UsageError(f"{import_name}: {answer.missing}", hint=hint)
    if outcome.result is None:  # The disk was full.
        outcome = attempt.commit_failure(task, outcome, log.absolute())
    assert outcome.result is not None
    return LocalDecomposition(
        outcome.result,
        directory,
        log if log.exists() else None,
        replaces_another=earlier is not None and earlier.is_pass_of_another(problem.sha256),
        earlier_stays=outcome.artifact_prefix is None,
    )


@dataclass(frozen=True, slots=True)
class LocalVerification:
    """Outcome of verifying one directory without Ray."""

    directory: Path
    answer: VerdictAnswer | FailureAnswer
    power: Power | None = None
    """Verdicts on deliberately wrong kernels; None unless the settings ask for them."""
    power_file: Path | None = None
    """File with the list of wrong kernels; None if none was requested."""

    def to_json(self) -> dict[str, Any]:
        """Return the outcome for users' programs."""
        return {
            "directory": str(self.directory),
            "status": self.answer.status,
            "reason": self.answer.reason,
            "advice": self.verification.get("advice", []),
            "verification": self.verification or None,
        }

    @property
    def verification(self) -> dict[str, Any]:
        """Full verdicts as JSON; empty if there is none."""
        return (isinstance(self.answer, VerdictAnswer) and self.answer.verification) or {}


def verify(
    directory: Path, settings: Settings, power_file: Path | None = None
) -> LocalVerification:
    """Verify a decomposition directory, by whomever it was written, without writing to it.

    `power_file` receives the list of wrong kernels.

    Raises:
        UsageError: it is no decomposition directory, or there is no GPU for `--device cuda`.
        DecompositionError: its tree has another schema version.
        StoreError: `power_file` cannot be written.
    """
    if not any((directory / part).exists() for part in (TREE_FILE, "original.py", *_LEVELS)):
        raise UsageError(
            f"{directory}: neither {TREE_FILE} nor original.py in it",
            hint="name a decomposition directory",
        )
    refuse_other_versions(directory)
    if power_file is not None:
        refuse_unwritable(power_file, "--to")
    mode = read_mode(directory) or settings.mode
    original = directory / "original.py"
    answer = run_locally(
        "verify", original, directory.name, settings, directory=directory, mode=mode
    )
    _raise_if_refused(answer)
    assert isinstance(answer, VerdictAnswer | FailureAnswer)
    if answer.status == "error":
        answer = answer.model_copy(update={"reason": f"original.py: {answer.reason}"})
    verified = LocalVerification(directory, answer)
    power_document = verified.verification.get("power")
    if power_document is None:
        return verified
    power = Power.model_validate(power_document)
    if power_file is not None:
        try:
            write_power(power_file, power)
        except OSError as error:
            raise unwritable_error(power_file, error, "--to") from error
    return LocalVerification(directory, answer, power, power_file)


def _raise_if_refused(answer: Answer) -> None:
    """Raise UsageError if this machine cannot do the task."""
    if isinstance(answer, FailureAnswer) and answer.cause is FailureCause.REFUSED:
        raise UsageError(answer.reason)
