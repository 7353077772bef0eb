"""Models written where a test runs, decomposed into a directory."""

from pathlib import Path
from textwrap import dedent

import pytest
from models import Decomposed

from runner.emit import decompose
from runner.problems import read_problem

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


@pytest.fixture
def decomposed(tmp_path: Path) -> Decomposed:
    """Write a problem file of a level, and decompose it into a folder of its own."""

    def run(
        source: str,
        level: str = "level3",
        *,
        name: str = "some_model",
        into: str = "out",
        mode: str = "eval",
    ) -> Path:
        folder = tmp_path / level
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.py"
        file.write_text(HEAD + dedent(source), encoding="utf-8")
        directory = tmp_path / into
        decompose(read_problem(file), directory, mode=mode)
        return directory

    return run
