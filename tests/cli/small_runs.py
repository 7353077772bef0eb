"""Runs over problems as small as can be, written where a test runs."""

import os
import subprocess
from pathlib import Path

from commands import KDRUN
from whole_problem import WHOLE

MEMORY = ("--memory", "5GiB")
HANGS = "import time\ntime.sleep(1000)"


def write(folder: Path, name: str, more: str = "") -> Path:
    path = folder / "level1" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WHOLE + more + "\n")
    return path


def kdrun(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [KDRUN, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
