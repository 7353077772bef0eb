"""kdrun's command as tests start it, and waiting for what it does."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KDRUN = str(Path(sys.executable).with_name("kdrun"))
Begin = Callable[..., subprocess.Popen[str]]


def wait_for(what: Callable[[], Any], seconds: float = 600) -> Any:
    """What it finally gives that is not empty."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found
