"""Defines `result.json`: how one problem ended, and the sha256 of each file in its directory."""

import hashlib
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runner.errors import StoreError
from runner.problems import ProblemVariant
from runner.statuses import Status
from runner.untrusted_files import read_text

if TYPE_CHECKING:
    from runner.tree.document import Metadata

RESULT_FILE = "result.json"


class Document(BaseModel):
    """Base of all documents: immutable, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_json(self) -> str:
        return self.model_dump_json(indent=1, exclude_none=True) + "\n"


class Decomposer(Document):
    """Describes an external command that takes problems apart."""

    command: str
    """The command as the user gave it; `{problem}`, `{output}` and `{brief}` in it are replaced."""
    on_failure: bool = False
    """Whether the command is used only if the decomposition that kdrun computes does not pass."""
    rounds: int = Field(default=3, ge=1)
    """Most runs of the command for one problem."""
    pass_env: list[str] = Field(default_factory=list)
    """Names of further environment variables that the command gets."""


class RunOptions(Document):
    """The options that decide what a verdict means; a result with other options is not reused.

    Options that were added later have defaults, so that older results can still be read.
    """

    mode: Literal["eval", "train"] = "eval"
    trials: int = Field(default=2, ge=1)
    """Seeds that each comparison is made with."""
    device: str = "cpu"
    """Type of the device to verify on, or `auto`."""
    power: bool = False
    """Whether each kernel was also broken on purpose, to check that a comparison fails."""
    verify: bool = True
    """Whether decompositions are verified; if not, they end as `written`."""
    unverified: bool = False
    """Whether a decomposition that is too large to be verified ends as `written`."""
    decomposer: Decomposer | None = None
    """Absent if kdrun computes the decompositions; in a result: if kdrun computed this one."""

    def accept(self, result_options: "RunOptions") -> bool:
        """Return whether a result that was made with `result_options` answers to these options.

        A decomposer's number of rounds and its environment variables are not compared: they do not
        change what a pass means. Nor does what happens to decompositions that are not verified.
        """
        decomposer = self.decomposer
        if result_options.decomposer is None:
            is_same_decomposer = decomposer is None or decomposer.on_failure
        else:
            is_same_decomposer = (
                decomposer is not None and decomposer.command == result_options.decomposer.command
            )
        return is_same_decomposer and self._for_verdicts() == result_options._for_verdicts()

    def is_final(self, status: Status, result_options: "RunOptions") -> bool:
        """Return whether a problem with this status need not be run again with these options.

        A pass is final. A decomposition that was written without verification is so only where the
        same was asked for.
        """
        if status == "written":
            return (self.verify, self.unverified) == (
                result_options.verify,
                result_options.unverified,
            )
        return status == "passed"

    def _for_verdicts(self) -> "RunOptions":
        return self.model_copy(update={"decomposer": None, "verify": True, "unverified": False})


class Round(Document):
    """One run of a decomposer's command, and the verdict on the decomposition that it wrote."""

    status: Status
    findings: list[str] = Field(default_factory=list)
    """The verification's first findings, a line each; empty exactly if the status is `passed`."""
    ended: str | None = None
    """How the command ended; absent if its exit code was 0."""
    command_s: float
    verify_s: float = 0.0

    @model_validator(mode="after")
    def check_findings(self) -> Self:
        if (self.status == "passed") == bool(self.findings):
            raise ValueError(f"{self.status} with findings={self.findings}")
        return self


class Decomposed(Document):
    """Describes how an external decomposer took a problem apart."""

    command: str
    prompt_version: int
    """Version of the brief that the command was given."""
    rounds: list[Round]
    seconds: float
    """Wall time of all rounds together, verification included."""


class Figures(Document):
    """Figures of a decomposition; present once it is complete."""

    components: int
    """Unique component files."""
    by_level: dict[str, int]
    unique_kernels: int
    kernel_instances: int
    capture: str
    """The capture strategy that worked; see `decomposition_tree.json`."""
    estimated_peak_bytes: int

    @classmethod
    def of_tree(cls, metadata: "Metadata") -> "Figures":
        """Return the figures that the metadata of a tree have."""
        shared_fields = {
            name: getattr(metadata, name) for name in cls.model_fields.keys() - {"components"}
        }
        return cls(components=metadata.total_components, **shared_fields)


class ResultSummary(Document):
    """Says in short how one problem ended; a result and a row of a manifest begin with it."""

    problem: str
    source_level: str
    variant: ProblemVariant | None = None
    """Original file, constants and dtype; absent if the problem is a file of its own."""
    status: Status
    reason: str | None = None
    """One line for people that says why; present exactly if the status is not `passed`."""
    source_line: int | None = None
    """Line of the problem file that the reason is about; absent if it is about no line."""
    figures: Figures | None = None
    """Present if the problem passed, or if its decomposition was complete when it ended."""
    bitwise_equal: bool | None = None
    """Whether the composed model's outputs equal the original's bit by bit, if compared."""
    health: list[str] = Field(default_factory=list)
    """Why the model's own output may hide errors (constant, zero, not finite), a sentence each."""
    peak_memory_bytes: int | None = None
    """Largest resident set of the child process."""
    decomposer: Decomposed | None = None
    """Present exactly if an external decomposer took the problem apart; with all its rounds."""

    @property
    def label(self) -> str:
        """Level and name, such as `level3/vit_block`; also the path in an output directory."""
        return f"{self.source_level}/{self.problem}"


class ProblemResult(ResultSummary):
    """Describes how one problem ended; the status decides which fields are present."""

    stage: str | None = None
    """Stage in which the problem ended, such as `load` or `verify: step`; absent if it passed."""
    max_diff: float | None = None
    warnings: list[str] = Field(default_factory=list)
    """The sentences of `health` that a user can act on."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall time of each stage."""
    cpu_seconds: float | None = None
    """Processor time of the child process and of the processes that it waited for."""
    peak_device_bytes: int | None = None
    """Largest amount of the accelerator's memory that tensors took; absent on the CPU."""
    memory_limit_bytes: int | None = None
    """Memory that the child process was allowed to allocate."""
    estimated_memory_bytes: int | None = None
    """Largest resident set that was estimated before the run; absent if nothing was estimated."""
    started: datetime
    source_sha256: str
    kdrun_version: str
    torch_version: str
    options: RunOptions
    files: dict[str, str] = Field(default_factory=dict)
    """sha256 of every other file in the directory, by relative path."""

    @model_validator(mode="after")
    def check_fields_of_status(self) -> Self:
        passed = self.status == "passed"
        if passed and (self.figures is None or not self.files or self.bitwise_equal is None):
            raise ValueError("passed without figures, files or a comparison")
        if self.status == "written" and (self.figures is None or not self.files):
            raise ValueError("written without figures or files")
        if passed == (self.reason is not None):
            raise ValueError(f"{self.status} with reason={self.reason!r}")
        if passed and self.stage is not None:
            raise ValueError(f"passed, yet it ended in stage {self.stage!r}")
        return self

    @property
    def total_s(self) -> float:
        return sum(self.seconds.values())

    def is_pass_of_another(self, source_sha256: str | None) -> bool:
        """Return whether it passed, and is of a file with another digest than this one."""
        return self.status == "passed" and source_sha256 not in (None, self.source_sha256)

    @property
    def sha256(self) -> str:
        """sha256 of the result.json that holds this result."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_directory(cls, directory: Path) -> "ProblemResult":
        """Read the `result.json` of a decomposition directory.

        Raises:
            StoreError: the file is missing, or this version cannot read it.
        """
        path = directory / RESULT_FILE
        try:
            return cls.model_validate_json(read_text(path))
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            raise StoreError(f"{path}: not a result", hint="run the problem again") from error

    @classmethod
    def find(cls, directory: Path) -> "ProblemResult | None":
        """Return the result of a directory, or None if it has none that can be read."""
        with suppress(StoreError):
            return cls.from_directory(directory)
        return None


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(directory: Path) -> dict[str, str]:
    """Return the sha256 of every file below, by relative path, without caches and `result.json`."""
    return {
        path.relative_to(directory).as_posix(): sha256_of(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.relative_to(directory).as_posix() != RESULT_FILE
    }


def first_mismatch(directory: Path, files: dict[str, str]) -> str | None:
    """Return the first file that is missing or differs from its sha256 in `files`, or None."""
    for name, digest in files.items():
        path = directory / name
        if not path.is_file() or sha256_of(path) != digest:
            return name
    return None
