"""Real decompositions of a few samples, made once: what reports are about."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.batch import alone
from runner.batch.child import close_zygote
from runner.config import Settings
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest, Row, count
from runner.store.result import RESULT_FILE, ProblemResult, sha256_of

SAMPLES = Path(__file__).parents[2] / "data/samples"
TAKEN_APART = ("level1/softmax", "level2/linear_gelu", "level3/mlp", "level3/attention_block")
RUN = "some-run"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output directory with a finished run; nobody changes it."""
    output = tmp_path_factory.mktemp("made") / "output"
    settings = Settings(output=output, trials=1)
    for label in TAKEN_APART:
        result = alone.decompose(SAMPLES / f"{label}.py", settings).result
        assert result.status == "passed", result.reason
    close_zygote()
    write_run(output)
    return output


@pytest.fixture
def output(made: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "output"))


def write_run(output: Path, *, state: str = "finished", **changed: object) -> Manifest:
    """A manifest over what is there."""
    rows = []
    for label in TAKEN_APART:
        result = ProblemResult.read(output / label)
        digest = sha256_of(output / label / RESULT_FILE)
        rows.append(Row.of(result, attempts=1, result_sha256=digest, node="here"))
    now = datetime.now(UTC)
    about = {
        "run_id": RUN,
        "state": state,
        "arguments": {"level": [1, 2, 3]},
        "versions": {"kdrun": "0"},
        "driver_host": "another",
        "driver_pid": 1,
        "data": "data/samples",
        "started": now,
        "finished": None if state == "running" else now,
        "selected": len(rows),
        "rows": rows,
    } | changed
    about["counts"] = count(about["rows"])  # type: ignore[arg-type]
    manifest = Manifest.model_validate(about)
    DirectoryStore(output).write_manifest(manifest)
    return manifest
