"""Judges a written decomposition from its files alone, gate by gate.

It shares no code with the part of kdrun that writes decompositions. Importing this package does not
import torch.
"""

from collections.abc import Callable
from pathlib import Path

from runner.verify.gates.power_report import Power
from runner.verify.options import VerifyOptions
from runner.verify.reports import write_power, write_reports
from runner.verify.results import GATES, Check, GateResult, Verdict, Verification

__all__ = [
    "GATES",
    "Check",
    "GateResult",
    "Power",
    "Verdict",
    "Verification",
    "VerifyOptions",
    "verify",
    "write_power",
    "write_reports",
]


def verify(
    directory: Path,
    options: VerifyOptions,
    on_gate: Callable[[str], None] | None = None,
    *,
    trusted: bool = False,
) -> Verification:
    """Judge a decomposition directory; `on_gate` is called with a gate's name when its work begins.

    Reads the directory and never writes into it. The code in it runs in worker processes; `trusted`
    code, which kdrun has just written, runs in this process, which takes half the time. A bad
    decomposition is a verdict, never an exception. MemoryError says something about the machine and
    nothing about the decomposition.

    Raises:
        ProblemError: original.py imports a missing package, and nothing else is wrong.
        MemoryError: there is too little memory to judge.
    """
    from runner.verify.judge import judge

    return judge(directory, options, on_gate or (lambda gate: None), trusted=trusted)
