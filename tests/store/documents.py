"""Results, rows and manifests, as small as they can be."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.store.manifest import Manifest, count
from runner.store.manifest_row import Row
from runner.store.result import Figures, ProblemResult
from runner.store.runs import RunStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIGURES = Figures(
    components=3,
    by_level={"fusion": 1, "kernel": 2},
    unique_kernels=2,
    kernel_instances=2,
    capture="fake",
    estimated_peak_bytes=1024,
)
LARGE = "steps/step_1/weights.txt"
FILES = {
    "original.py": "class Model: ...\n",
    "decomposition_tree.json": "{}",
    "level_0_kernel/relu_2x3_fp32.py": "print('PASS')\n",
    "level_0_kernel/größe.py": "# a name beyond ASCII, and an empty line\n\n",
    "level_1_fusion/empty.py": "",
    "steps/step_1/refactored.py": "import torch\n",
    "steps/step_1/children/relu_2x3_fp32.py": "print('PASS')\n",
    "steps/step_1/coverage_report.json": "{}",
    "verification/test_results.json": "{}",
    LARGE: "0.125\n" * 100,
}
COPIED = {name for name in FILES if not name.startswith("steps/")}
"""What is an object of its own, for people, besides being in the zip."""

Make = Callable[..., tuple[ProblemResult, Path]]


def manifest(*rows: Row, **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "run_id": "one",
        "state": "finished",
        "arguments": {},
        "versions": {"kdrun": "0.1.0"},
        "driver_host": "here",
        "driver_pid": 1,
        "data": "data/samples",
        "started": NOW,
        "finished": NOW,
        "selected": len(rows),
        "counts": count(list(rows)),
        "rows": list(rows),
    }
    return Manifest.model_validate(fields | changes)


def row(label: str, sha256: str | None = None, **changes: Any) -> Row:
    level, _, name = label.rpartition("/")
    fields = {"problem": name, "source_level": level, "status": "passed", "attempts": 1}
    return Row.model_validate(fields | {"result_sha256": sha256} | changes)


def save(store: RunStore, written: Manifest) -> Manifest:
    """Write a manifest as it is, as the only driver of its run does."""
    return store.update_manifest(written.run_id, lambda theirs: written)[0]
