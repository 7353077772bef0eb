"""Attacks: functions that spoil a decomposition written by hand, and the file to be blamed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import decompositions
from changing_files import RIGHT, at_import, in_forward
from decompositions import Decomposition
from verdicts import complaints_of

from runner.batch import local_execution
from runner.config import Settings
from runner.verify import Verification

WRONG = "return F.relu(x) * 1.5"

HERE = "lambda y: type(y) is torch.Tensor and y.is_cpu"
"""Whether a tensor has memory: attacks spare those that a judge makes of shapes alone."""

Spoil = Callable[[Decomposition], None]
Make = Callable[[Path], Decomposition]


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to get a wrong decomposition past the judge."""

    name: str
    spoil: Spoil
    make: Make
    blamed: tuple[str, ...]
    """Files, of which a complaint has to name one; `model` is the composed model."""

    def __str__(self) -> str:
        return self.name

    def on(self, directory: Path) -> Decomposition:
        """Write the decomposition that this attack spoils, and spoil it."""
        made = self.make(directory / "attacked")
        self.spoil(made)
        return made


class Attacks(list[Attack]):
    """The attacks of one group, in the order in which they are written down."""

    def blame(
        self, *blamed: str, make: Make = decompositions.conv_relu
    ) -> Callable[[Spoil], Spoil]:
        """Add the function below as an attack, for which one of these files is to be blamed."""

        def added(spoil: Spoil) -> Spoil:
            self.append(Attack(spoil.__name__, spoil, make, blamed))
            return spoil

        return added


def assert_caught(verification: Verification, attack: Attack) -> None:
    """The verdict is not `passed`, and a complaint names the file with a reason."""
    assert verification.status != "passed", "it passed"
    faults = complaints_of(verification)
    texts = [f"{check.component}: {check.reason}" for check in faults]
    blamed = [path if path == "model" else Path(path).name for path in attack.blamed]
    assert any(name in text for name in blamed for text in texts), texts


def judged_apart(made: Decomposition) -> Verification:
    """Return the verdict of `kdrun verify`, whose judge is a process of its own.

    For attacks that end processes: those of the tests are not the judge's to lose.
    """
    outcome = local_execution.verify(made.directory, Settings(trials=1, memory="4GiB"))
    assert outcome.verification, f"the judge ended without a verdict: {outcome.answer.reason}"
    return Verification.model_validate(outcome.verification)


# --- ways to spoil a file -------------------------------------------------------------------------


def wrong_relu(made: Decomposition, text: str = "") -> None:
    """Make the ReLU wrong by half, and put statements before its class."""
    if text:
        at_import(made, text)
    in_forward(made, WRONG)


def right_where(made: Decomposition, condition: str, text: str = "") -> None:
    """Make the ReLU right where the condition holds when it runs, and wrong by half elsewhere."""
    if text:
        at_import(made, text)
    in_forward(made, f"if {condition}:\n    {RIGHT}\n{WRONG}")


def doubled_and_halved(made: Decomposition, scale: str) -> None:
    """Make two wrong kernels whose product is right.

    `scale`: statements at import that define `scale(y, by)`, which changes what y holds and leaves
    no operation to see.
    """
    text = f"HERE = {HERE}\n{scale}"
    at_import(made, text, "conv2d.py")
    at_import(made, text)
    scaled = "y = {}\nif HERE(y):\n    scale(y, {})\nreturn y"
    in_forward(made, scaled.format("self.conv(x)", 2.0), "conv2d.py")
    in_forward(made, scaled.format("F.relu(x)", 0.5))
