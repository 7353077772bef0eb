"""Every sample's decomposition, proved in a process that cannot see the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.emit import decompose
from runner.problems import read_problem

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]
SAMPLES = TESTS.parent / "data" / "samples"


@pytest.mark.parametrize("level", ["level1", "level2", "level3"])
def test_the_samples_keep_rules_1_to_7(level: str, decomposed_samples: Path) -> None:
    directories = sorted((decomposed_samples / level).iterdir())

    ran = checked(directories)

    told = [line.removeprefix(f"{decomposed_samples}/") for line in ran.stdout.splitlines()]
    assert told == [f"{level}/{d.name}: rules 1 to 7 hold" for d in directories], ran.stderr
    assert ran.returncode == 0


def test_a_directory_that_needs_the_package_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    decompose(read_problem(SAMPLES / "level1" / "silu.py"), directory)
    (file,) = directory.glob("level_0_kernel/*.py")
    file.write_text(file.read_text().replace("import torch\n", "import runner\nimport torch\n", 1))

    ran = checked([directory])

    assert "No module named 'runner'" in ran.stdout
    assert ran.returncode == 1


def checked(directories: list[Path]) -> subprocess.CompletedProcess[str]:
    """The checker's own process, with nothing of this one's settings or paths."""
    return subprocess.run(
        [sys.executable, "-m", "checker", *map(str, directories)],
        cwd=TESTS,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
