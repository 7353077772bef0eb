"""This file knows about `result.json`: how one problem ended, and a sha256 for all it left."""

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runner.errors import StoreError
from runner.statuses import Status
from runner.untrusted_files import read_text

RESULT_FILE = "result.json"


class Document(BaseModel):
    """Strict and immutable: an unknown field is an error, a document is never edited in place."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Decomposer(Document):
    """Somebody else's command that takes problems apart."""

    command: str
    """As it was given; `{problem}`, `{output}` and `{brief}` in it are replaced."""
    on_failure: bool = False
    """Only where the computed decomposition does not pass."""
    rounds: int = Field(default=3, ge=1)
    """Most runs of the command for one problem."""
    pass_env: list[str] = Field(default_factory=list)
    """Names of the environment variables that it gets besides the usual few."""


class RunOptions(Document):
    """The options that decide what a verdict means; a result with others is not reused.

    What came later is absent where it says nothing, so that results without it read as before.
    """

    mode: Literal["eval", "train"] = "eval"
    trials: int = Field(default=2, ge=1)
    """Seeds that each comparison is made with."""
    device: str = "cpu"
    """Type of the device that it was verified on, or `auto`."""
    power: bool = False
    """Each kernel was made wrong, too, to see a comparison fail."""
    decomposer: Decomposer | None = None
    """Absent where kdrun computes the decomposition; in a result: where it computed this one."""

    def accept(self, made: "RunOptions") -> bool:
        """Whether a result with those options is what these ask for.

        How many rounds the same command had, and with which variables, means nothing for a pass.
        """
        wanted = self.decomposer
        if made.decomposer is None:
            right = wanted is None or wanted.on_failure
        else:
            right = wanted is not None and wanted.command == made.decomposer.command
        return right and self._judging() == made._judging()

    def _judging(self) -> "RunOptions":
        return self.model_copy(update={"decomposer": None})


class Round(Document):
    """One run of a decomposer's command, and the verdict on what it delivered."""

    status: Status
    findings: list[str] = Field(default_factory=list)
    """The first of them, a line each; empty exactly when the status is `passed`."""
    ended: str | None = None
    """How the command ended, where that was not with exit code 0."""
    command_s: float
    verify_s: float = 0.0

    @model_validator(mode="after")
    def says_why(self) -> Self:
        if (self.status == "passed") == bool(self.findings):
            raise ValueError(f"{self.status} with findings={self.findings}")
        return self


class Decomposed(Document):
    """Who took a problem apart, where that was not kdrun."""

    command: str
    prompt_version: int
    """Of the brief that it was given."""
    rounds: list[Round]
    seconds: float
    """Of all rounds together, verification included."""


class Figures(Document):
    """What came out of a decomposition; present once there is one."""

    components: int
    """Unique component files."""
    by_level: dict[str, int]
    unique_kernels: int
    kernel_instances: int
    capture: str
    """The rung of capture that worked; see `decomposition_tree.json`."""
    estimated_peak_bytes: int


class ProblemResult(Document):
    """How one problem ended. The status decides which fields exist."""

    problem: str
    source_level: str
    status: Status
    reason: str | None = None
    """One line for people; present exactly when the status is not `passed`."""
    stage: str | None = None
    """Where it ended, such as `load`, `decompose`, `verify: step`; absent when passed."""
    figures: Figures | None = None
    """Present when passed, and otherwise where the decomposition was finished."""
    bitwise_equal: bool | None = None
    """Whether the composed model gives the original's very bits; absent if not compared."""
    max_diff: float | None = None
    health: list[str] = Field(default_factory=list)
    """What makes the problem's own output a weak witness, a sentence each."""
    warnings: list[str] = Field(default_factory=list)
    """Those sentences of `health` that a user can act on."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall time by stage."""
    cpu_seconds: float | None = None
    """Processor time of the child process and of what it waited for."""
    peak_memory_bytes: int | None = None
    """Largest resident set of the child process."""
    peak_device_bytes: int | None = None
    """Most memory of the accelerator that tensors took; absent on the CPU."""
    memory_limit_bytes: int | None = None
    """What the child could allocate."""
    estimated_memory_bytes: int | None = None
    """The largest resident set that was expected before it ran; absent where nobody asked."""
    started: datetime
    source_sha256: str
    kdrun_version: str
    torch_version: str
    options: RunOptions
    decomposer: Decomposed | None = None
    """Present exactly where a decomposer was at work."""
    files: dict[str, str] = Field(default_factory=dict)
    """Relative path -> sha256 of every other file in the directory."""

    @model_validator(mode="after")
    def status_decides(self) -> Self:
        passed = self.status == "passed"
        if passed and (self.figures is None or not self.files or self.bitwise_equal is None):
            raise ValueError("passed without figures, files or a comparison")
        if passed == (self.reason is not None):
            raise ValueError(f"{self.status} with reason={self.reason!r}")
        if passed and self.stage is not None:
            raise ValueError(f"passed, yet it ended in stage {self.stage!r}")
        return self

    @property
    def label(self) -> str:
        """`level3/vit_block`: what people call it, and its place under an output directory."""
        return f"{self.source_level}/{self.problem}"

    @property
    def total_s(self) -> float:
        return sum(self.seconds.values())

    def to_json(self) -> str:
        return self.model_dump_json(indent=1, exclude_none=True) + "\n"

    @property
    def sha256(self) -> str:
        """Of its result.json."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def read(cls, directory: Path) -> "ProblemResult":
        """Read a decomposition directory's result.

        Raises:
            StoreError: there is none, or it is not one that this version understands.
        """
        path = directory / RESULT_FILE
        try:
            return cls.model_validate_json(read_text(path))
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            raise StoreError(f"{path}: not a result", hint="run the problem again") from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(directory: Path) -> dict[str, str]:
    """Relative POSIX path -> sha256 of every file below, save caches and `result.json` itself."""
    return {
        path.relative_to(directory).as_posix(): sha256_of(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.relative_to(directory).as_posix() != RESULT_FILE
    }


def first_mismatch(directory: Path, files: dict[str, str]) -> str | None:
    """The first listed file that is missing or changed, or None."""
    for name, digest in files.items():
        path = directory / name
        if not path.is_file() or sha256_of(path) != digest:
            return name
    return None
