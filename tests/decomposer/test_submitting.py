"""A decomposer on a real Ray: its rounds are in the manifest, and what passed stays done."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from commands import KDRUN
from scripted import command

pytestmark = pytest.mark.cluster


def kdrun(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [KDRUN, "submit", "--data", ".", "--memory", "3GiB", "--trials", "1", *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        env=os.environ | {"MODEL_API_KEY": "key-of-the-model"},
        check=False,
    )


def test_rounds_are_in_the_manifest_and_what_passed_stands(place: Path, good: Path) -> None:
    agent = ("--decomposer", command("tells_its_environment", good), "--pass-env", "MODEL_API_KEY")

    done = kdrun(place, *agent, "--json")

    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["status"] == "passed"
    assert [one["status"] for one in row["decomposer"]["rounds"]] == ["passed"]
    assert "tells_its_environment" in row["decomposer"]["command"]
    assert row["decomposer"]["seconds"] > 0
    assert "key-of-the-model" not in done.stdout + done.stderr
    seen = json.loads((place / "output/level2/conv_relu/seen.json").read_text())
    assert seen["MODEL_API_KEY"] == "key-of-the-model"

    assert "1 passed before, 0 to run" in kdrun(place, *agent, "--rounds", "7").stderr
    computed = kdrun(place, "--dry-run", "--json")
    assert json.loads(computed.stdout)["problems"][0]["why"] == "other options", computed.stdout
