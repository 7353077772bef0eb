"""Attacks: functions that spoil a decomposition written by hand, and the file to be blamed."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import decompositions
from changing_files import RIGHT, at_import, in_forward
from decompositions import Decomposition
from verdicts import complaints_of

from runner.verify import Verification

WRONG = "return F.relu(x) * 1.5"

HERE = "lambda y: type(y) is torch.Tensor and y.is_cpu"
"""Whether a tensor has memory: attacks spare those that a judge makes of shapes alone."""

Spoil = Callable[[Decomposition], None]
Make = Callable[[Path], Decomposition]

_VERIFY = """\
import sys
from pathlib import Path
from runner.verify import VerifyOptions, verify
verdict = verify(Path(sys.argv[1]), VerifyOptions(trials=1))
Path(sys.argv[2]).write_text(verdict.model_dump_json(), encoding="utf-8")
"""


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
    """Return the verdict of a judge that is a process of its own, with a parent of its own.

    For attacks that end processes: those of the tests are not the judge's to lose.
    """
    result = made.directory.parent / "verdict.json"
    judge = [sys.executable, "-c", _VERIFY, str(made.directory), str(result)]
    ended = subprocess.run(
        ["sh", "-c", '"$@"; exit 0', "sh", *judge],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=200,
        start_new_session=True,
        check=False,
    )
    said = f"{ended.stdout[-500:]}{ended.stderr[-1500:]}"
    assert result.exists(), f"the judge ended without a verdict: {said}"
    return Verification.model_validate_json(result.read_text(encoding="utf-8"))


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
