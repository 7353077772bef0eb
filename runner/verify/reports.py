"""Writes the reports of a verification into the decomposition directory.

Only files in verification/ hold times and durations; all other files are the same on every run.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.errors import DecompositionError
from runner.quantities import pluralize
from runner.tree.document import Tree
from runner.tree.verification_section import ANALYSIS_FILE, with_section
from runner.verify.gates.power_report import Power
from runner.verify.results import COMPARED, Check, Coverage, Verification

POWER_FILE = "verification/power.json"


def write_reports(directory: Path, verification: Verification) -> None:
    """Write verification/*.json, each step's reports, the tree's status and the page's section."""
    document = verification.model_dump(mode="json")
    steps = sorted(path for path in directory.glob("steps/*") if path.is_dir())
    timestamp = {"verified_at": datetime.now(UTC).isoformat(timespec="seconds")}
    _write(directory / "verification" / "test_results.json", timestamp | document)
    of_steps = {path.name: _step_report(path.name, verification) for path in steps}
    summary = {
        "status": verification.status,
        "steps_total": len(steps),
        "steps_passed": sum(report["status"] == "passed" for report in of_steps.values()),
        "steps": list(of_steps.values()),
    }
    _write(directory / "verification" / "step_verification_summary.json", timestamp | summary)
    coverage = {
        "equal": bool(verification.coverage) and all(c.equal for c in verification.coverage),
        "components": [_coverage_document(item) for item in verification.coverage],
    }
    _write(directory / "verification" / "coverage_summary.json", timestamp | coverage)
    if verification.power is not None:
        write_power(directory / POWER_FILE, verification.power)
    for path in steps:
        _write(path / "verification_result.json", of_steps[path.name])
        coverages = [c for c in verification.coverage if c.component == f"steps/{path.name}"]
        report = _coverage_document(coverages[0]) if coverages else {"verdict": "not_run"}
        _write(path / "coverage_report.json", report)
    _write_status(directory, verification.status)
    _write_section(directory, verification)


def section_lines(verification: Verification) -> list[str]:
    """Return the verdict and the remarks on it as lines of Markdown."""
    if verification.status == "passed":
        difference = f"within {verification.max_diff:.2g}" if verification.max_diff else "exactly"
        equal = "to the last bit" if verification.bitwise_equal else difference
        outcome = f"the kernels put together equal the original {equal}"
    else:
        outcome = verification.first_failure or "a gate did not pass"
    draws = pluralize(verification.trials, "draw")
    conditions = (
        f"{verification.mode} mode, {draws} of weights and inputs, on {verification.device}"
    )
    not_examined = (f"not examined: {effect}" for effect in verification.not_examined)
    remarks = [*verification.health, *not_examined]
    bullets = ["", *(f"- {remark}" for remark in remarks)] if remarks else []
    return [f"Verification **{verification.status}**: {outcome} ({conditions}).", *bullets]


def write_power(path: Path, power: Power) -> None:
    """Write the report on mutated kernels as JSON.

    Raises:
        OSError: the file cannot be written.
    """
    _write(path, power.model_dump(mode="json"))


def _step_report(name: str, verification: Verification) -> dict[str, Any]:
    """Return the report on one step; it passed if it was compared and no check has a reason."""
    folder = f"steps/{name}"
    checks = [
        check
        for gate in verification.gates
        for check in gate.checks
        if check.component == folder or check.component.startswith(f"{folder}/")
    ]
    comparisons = [c for c in checks if c.gate == "step" and c.verdict in COMPARED]
    passed = bool(comparisons) and all(check.reason is None for check in checks)
    return {
        "step": name,
        "status": "passed" if passed else "failed",
        "max_diff": comparisons[0].max_diff if comparisons else None,
        "bitwise_equal": comparisons[0].bitwise_equal if comparisons else None,
        "trials": verification.trials,
        "mode": verification.mode,
        "torch_version": verification.torch_version,
        "checks": [_check_document(check) for check in checks],
    }


def _check_document(check: Check) -> dict[str, Any]:
    document: dict[str, Any] = check.model_dump(mode="json", exclude_none=True)
    return document


def _coverage_document(coverage: Coverage) -> dict[str, Any]:
    verdict = {"verdict": "passed" if coverage.equal else "failed"}
    return verdict | coverage.model_dump(mode="json")


def _replace_infinity(value: Any) -> Any:
    """Replace infinity, which JSON cannot hold, by a word; it means that shapes differ."""
    if isinstance(value, dict):
        return {key: _replace_infinity(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_infinity(item) for item in value]
    return "Infinity" if value == float("inf") else value


def _write_status(directory: Path, status: str) -> None:
    try:
        tree = Tree.read(directory)
    except (DecompositionError, OSError):
        return  # the verdict names this fault already
    metadata = tree.metadata.model_copy(update={"verification_status": status})
    tree.model_copy(update={"metadata": metadata}).write(directory)


def _write_section(directory: Path, verification: Verification) -> None:
    page = directory / ANALYSIS_FILE
    if page.is_file():
        text = page.read_text(encoding="utf-8")
        page.write_text(with_section(text, section_lines(verification)), encoding="utf-8")


def _write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_replace_infinity(document), indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
