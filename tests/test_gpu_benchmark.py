"""benchmarks/gpu.py, run as a user would, on the CPU and on the simulated accelerator."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
SAMPLES = ("level1/silu", "level2/residual_rms_norm")


@pytest.mark.parametrize(("device", "samples"), [("cpu", SAMPLES), ("accel", SAMPLES[:1])])
def test_a_dry_run_has_every_part(device: str, samples: tuple[str, ...], tmp_path: Path) -> None:
    chosen = [part for sample in samples for part in ("--problem", f"samples/{sample}")]
    ended = subprocess.run(
        [sys.executable, "benchmarks/gpu.py", "--device", device, "--output", tmp_path, *chosen],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests/accelerator")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert [row["problem"] for row in found["problems"]] == [f"samples/{s}" for s in samples]
    for row in found["problems"]:
        assert row["status"] == "passed"
        assert f"{row['problem']:<44} passed, bitwise" in ended.stdout
        assert {file["status"] for file in row["files"]} == {"right"}
        assert {file["precision"] for file in row["files"]} == {"as written", "bfloat16"}
        assert all(kernel["bytes_per_s"] > 0 for kernel in row["times"])
    assert found["not_done"] == []
    if device == "cpu":
        assert found["sharing"]["status"] == "passed"
        assert found["sharing"]["same_differences_as_alone"]
        return
    assert found["too_large"]["status"] == "too_large"
    (row,) = found["problems"]
    assert row["cpu"]["status"] == "passed"
    assert row["forward_peak_bytes"] == row["estimated_peak_bytes"]


def test_a_device_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "benchmarks/gpu.py", "--device", "nothing", "--output", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("--device nothing: torch finds no such device here")
    assert ended.stderr.count("\n") == 1
