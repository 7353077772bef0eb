"""Real decompositions of a few samples, made once: what reports are about."""

import shutil
from pathlib import Path

import pytest
from sample_run import TAKEN_APART, write_run

from runner.batch import local_execution
from runner.batch.child.child_process import close_fork_server
from runner.config import Settings

SAMPLES = Path(__file__).parents[2] / "data/samples"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output directory with a finished run; nobody changes it."""
    output = tmp_path_factory.mktemp("made") / "output"
    settings = Settings(output=output, trials=1)
    for label in TAKEN_APART:
        result = local_execution.decompose(SAMPLES / f"{label}.py", settings).result
        assert result.status == "passed", result.reason
    close_fork_server()
    write_run(output)
    return output


@pytest.fixture
def output(made: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "output"))
