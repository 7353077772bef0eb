"""Problems that go wrong in one way each, and a fork server that the tests of a file share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from whole_problem import WHOLE

from runner.batch.child import child_process

AT_IMPORT = {
    "segfault": "import ctypes\nctypes.string_at(0)",
    "exit": "import os\nos._exit(5)",
    "silent_exit": "import os\nos._exit(0)",
    "sys_exit": "import sys\nsys.exit(0)",
    "hang": "import time\ntime.sleep(1000)",
    "memory": "x = bytearray(64 << 30)",
    "fork": "import os\nos.fork()",
    "kill_parent": "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(1000)",
}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("hang")`: level1/hang.py, a whole problem that then does what its name says."""

    def written(name: str = "whole", folder: Path | None = None) -> Path:
        path = (folder or tmp_path / "problems") / "level1" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WHOLE + AT_IMPORT.get(name, "") + "\n", encoding="utf-8")
        return path

    return written


@pytest.fixture(scope="module")
def own_fork_server() -> Iterator[None]:
    """One for the file, started in the environment that the file sets, gone after it."""
    child_process.close_fork_server()
    yield
    child_process.close_fork_server()
