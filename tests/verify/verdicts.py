"""What a verdict says: that a directory passed, or everything that somebody has to act on."""

from runner.verify import Check, Verification
from runner.verify.results import GOOD


def complaints_of(verification: Verification) -> list[Check]:
    """Every check that somebody has to act on."""
    checks = [check for gate in verification.gates for check in gate.checks]
    return [check for check in checks if check.verdict not in GOOD and check.reason]


def assert_passes(verification: Verification) -> None:
    """The verdict is `passed`; where it is not, the complaints are shown."""
    faults = [f"{c.gate}: {c.component}: {c.reason}" for c in complaints_of(verification)]
    assert verification.status == "passed", faults
