"""A wheel and an sdist: README's first commands, and Python's, work where there is no checkout."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, as pip would put it into site-packages."""
    pytest.importorskip("hatchling", reason="pip install hatchling")
    place = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = place.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(place / "site")
    return place / "site"


def kdrun(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", "from runner.cli import main; main()", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_its_samples_are_decomposed_by_name(installed: Path, tmp_path: Path) -> None:
    done = kdrun(installed, tmp_path, "decompose", "silu")
    assert done.stdout.startswith("passed  level1/silu\n")
    assert done.stderr == f"silu: {installed / 'runner/_data/samples/level1/silu.py'}\n"


def test_it_brings_its_samples_and_the_manifest(installed: Path, tmp_path: Path) -> None:
    listed = kdrun(installed, tmp_path, "data", "list")
    assert "vit_block" in listed.stdout
    assert listed.stderr == f"the samples in {installed / 'runner/_data/samples'}\n"
    manifest = installed / "runner/_data/manifest.txt"
    assert manifest.read_bytes() == (ROOT / "data/manifest.txt").read_bytes()


def test_its_brief_takes_the_same_names(installed: Path, tmp_path: Path) -> None:
    assert "level1" in kdrun(installed, tmp_path, "prompt", "SiLU").stdout


FROM_PYTHON = """
import torch, kdrun
parts = kdrun.decompose(torch.nn.Linear(4, 2), (torch.ones(3, 4),), name="tiny")
print(parts.verification.passed, kdrun.__file__)
"""


@pytest.mark.long
def test_its_functions_take_a_model_in_memory_apart(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FROM_PYTHON],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"True {installed / 'kdrun/__init__.py'}\n", done.stderr
    assert (installed / "kdrun/py.typed").exists()


def test_it_runs_as_a_module(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kdrun", "--help"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert "Usage: kdrun" in done.stdout, done.stderr


def test_an_sdist_gives_the_same_wheel(installed: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, capture_output=True, check=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    subprocess.run([*build, "-t", "wheel"], cwd=source, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    (built,) = installed.parent.glob("*.whl")
    assert zipfile.ZipFile(wheel).namelist() == zipfile.ZipFile(built).namelist()
