"""Defines `evaluation.json`: whether solutions are right, and how fast they are."""

from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from runner.errors import DecompositionError
from runner.store.result import Document
from runner.untrusted_files import read_text

EVALUATION_FILE = "evaluation.json"

Judgement = Literal["right", "wrong", "broken"]


class PlaceComparison(Document):
    """One comparison of a solution's outputs with those of the component."""

    place: str
    """`own inputs`, or the id of the node in the tree whose values were used."""
    judgement: Judgement
    """`broken`: it raised an error, ended or took too long, so that nothing was compared."""
    reason: str | None = None
    """The fault in one line; absent exactly if the judgement is `right`."""
    tolerances: float | None = None
    """Largest error against float64, in tolerances of its dtype; absent if nothing was compared."""
    eager_tolerances: float | None = None
    """The same of the component itself."""
    max_diff: float | None = None
    """Largest absolute difference from the component's own output."""

    @model_validator(mode="after")
    def check_reason(self) -> Self:
        if (self.judgement == "right") == (self.reason is not None):
            raise ValueError(f"{self.judgement} with reason={self.reason}")
        return self


class Speed(Document):
    """Times of two programs, measured in turn on the same inputs, in pairs."""

    before_s: list[float]
    """Seconds of one call before the change, one number for each pair."""
    after_s: list[float]
    """Seconds of one call after it."""
    pairs_of_rounds: list[int]
    """Number of pairs in each round; both programs were started anew for it."""
    calls: int
    """Calls of each program in one pair; a time is their mean."""
    before_median_s: float
    after_median_s: float
    speedup: float
    """Geometric mean of the rounds' medians of quotients; above 1 is faster."""
    lowest: float
    """Lower limit of the speed-up at 95% confidence, as the rounds differ from each other."""
    highest: float
    """Upper limit of the speed-up."""
    waiting: float | None = None
    """Part of the time in which the programs could run and no processor was free; absent if the
    system does not tell it."""

    @property
    def is_noise(self) -> bool:
        """Whether the rounds do not show which of the two is faster."""
        return self.lowest <= 1 <= self.highest


class SolutionEvaluation(Document):
    """The verdict on one solution, and its times."""

    name: str
    """Name of the component, and of the solution's file."""
    level: Literal["model", "layer", "fusion", "kernel"]
    file: str
    """Path of the solution, as it was found."""
    sha256: str
    places: int
    """Instances of the workload in the model."""
    judgement: Judgement
    reason: str | None = None
    """The first fault; absent exactly if the judgement is `right`."""
    comparisons: list[PlaceComparison]
    speed: Speed | None = None
    """The component against the solution; absent if the solution is not right."""
    compiled: Speed | None = None
    """The component against `torch.compile` of it."""
    compiled_failure: str | None = None
    """Why the compiled component was not measured."""
    share: float | None = None
    """Part of the model's time that the component takes in its places together."""
    predicted: float | None = None
    """Speed-up of the model that the solution's speed-up and share predict."""
    measured: Speed | None = None
    """The model of parts with the components' own code, against it with this solution alone."""

    @model_validator(mode="after")
    def check_judgement(self) -> Self:
        if (self.judgement == "right") == (self.reason is not None):
            raise ValueError(f"{self.judgement} with reason={self.reason}")
        if self.judgement != "right" and (self.speed or self.measured):
            raise ValueError(f"{self.judgement} with a speed")
        return self


class ModelComparison(Document):
    """The verdict on the whole model with some solutions in it."""

    solutions: list[str]
    """Names of the solutions."""
    judgement: Judgement
    reason: str | None = None
    tolerances: float | None = None
    """Largest error of its output against float64, in tolerances of its dtype."""
    eager_tolerances: float | None = None
    """The same of the original."""
    drift: float | None = None
    """Largest difference from the original's output, relative to the output's largest value."""


class ModelEvaluation(Document):
    """The whole model: the original, the original compiled, and the original with solutions."""

    comparisons: list[ModelComparison]
    """Each solution by itself, then all together."""
    speed: Speed | None = None
    """The original against the model with all right solutions."""
    parts: Speed | None = None
    """The original against the same model with the components' own code instead of solutions."""
    compiled: Speed | None = None
    """The original against `torch.compile` of it."""
    compiled_failure: str | None = None


class Machine(Document):
    """The machine that measured."""

    processor: str
    threads: int
    torch: str


class Evaluation(Document):
    """Describes one `kdrun evaluate` of a decomposition; written into its directory."""

    schema_version: Literal[1] = 1
    problem: str
    """Level and name of the decomposed problem, such as `level3/llama`."""
    source_sha256: str
    """Digest of original.py."""
    kdrun_version: str
    machine: Machine
    started: datetime
    seconds: float
    forward_seconds: float
    """Seconds of all forwards in it: those of the comparisons and of the measurements, and what
    compilers do in them."""
    solutions: list[SolutionEvaluation]
    model: ModelEvaluation | None = None
    """Absent if no solution is right."""
    notes: list[str] = Field(default_factory=list)
    """Remarks for the reader, a sentence each."""

    @property
    def is_all_right(self) -> bool:
        """Whether each solution is right, and so is the model with all of them."""
        comparisons = self.model.comparisons if self.model else []
        judgements = {item.judgement for item in self.solutions}
        judgements |= {item.judgement for item in comparisons}
        return judgements == {"right"}

    def write(self, directory: Path) -> None:
        """Write it into a decomposition directory."""
        (directory / EVALUATION_FILE).write_text(self.to_json(), encoding="utf-8")

    @property
    def is_measured(self) -> bool:
        """Whether it holds any speed."""
        return any(item.speed for item in self.solutions) or bool(self.model and self.model.speed)

    @classmethod
    def read(cls, directory: Path) -> "Evaluation | None":
        """Read a directory's evaluation; None if there is none.

        Raises:
            DecompositionError: the file is no evaluation of this version.
        """
        path = directory / EVALUATION_FILE
        try:
            return cls.model_validate_json(read_text(path))
        except FileNotFoundError:
            return None
        except (OSError, ValidationError, ValueError) as error:
            raise DecompositionError(
                f"{path}: not a readable evaluation", hint="evaluate the directory again"
            ) from error
