"""Hand-written decompositions, and verifying one as quickly as possible."""

from collections.abc import Callable
from pathlib import Path

import decompositions
import pytest
from decompositions import Decomposition

from runner.verify import Check, Verification, VerifyOptions, verify
from runner.verify.results import GateName

Verify = Callable[..., Verification]


@pytest.fixture
def softmax(tmp_path: Path) -> Decomposition:
    return decompositions.lone_kernel(tmp_path / "softmax")


@pytest.fixture
def fusion(tmp_path: Path) -> Decomposition:
    return decompositions.conv_relu(tmp_path / "conv_relu")


@pytest.fixture
def model(tmp_path: Path) -> Decomposition:
    return decompositions.small_model(tmp_path / "model")


@pytest.fixture
def judged(request: pytest.FixtureRequest) -> Verify:
    """Judge as a stranger's directory; a test file that says IN_THIS_PROCESS is about gates alone.

    The gates are the same, and take a fifth of the time where no worker runs the files.
    """
    here = getattr(request.module, "IN_THIS_PROCESS", False)

    def judge(made: Decomposition, *, own: bool = here, **options: object) -> Verification:
        return verify(made.directory, VerifyOptions(**options), trusted=own)  # type: ignore[arg-type]

    return judge


@pytest.fixture
def complaints() -> Callable[[Verification, GateName], dict[str, str]]:
    """What a gate says against which component."""

    def of(verification: Verification, gate: GateName) -> dict[str, str]:
        checks: list[Check] = verification.gate(gate).checks
        return {
            check.component: f"{check.verdict}: {check.reason}" for check in checks if check.reason
        }

    return of
