"""kdrun's command as tests start it, and waiting for what it does."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

KDRUN = str(Path(sys.executable).with_name("kdrun"))
Begin = Callable[..., subprocess.Popen[str]]


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """Mount an empty file system in memory on a new folder, for as long as a test wants it."""
    place.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def wait_for(what: Callable[[], Any], seconds: float = 600) -> Any:
    """What it finally gives that is not empty."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found
