"""Commands about one problem or one directory need neither Ray nor boto3 installed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
Kdrun = Callable[..., subprocess.CompletedProcess[str]]
LEFT_OUT = ("ray", "boto3", "botocore", "s3transfer")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with everything that is installed here but Ray and boto3."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (target,) = place.glob("lib/python*/site-packages")
    for folder in filter(lambda entry: entry.endswith("-packages"), sys.path):
        for entry in Path(folder).iterdir():
            left_out = entry.suffix == ".pth" or entry.name.split("-")[0] in LEFT_OUT
            if not left_out and not (target / entry.name).exists():
                (target / entry.name).symlink_to(entry)
    return place / "bin/python"


@pytest.fixture(scope="module")
def kdrun(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Kdrun:
    folder = tmp_path_factory.mktemp("work")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-c", "from runner.cli import main; main()", *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run("decompose", "samples/silu")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("passed  level1/silu\n")
    return run


@pytest.mark.parametrize(
    "command",
    [
        "verify output/level1/silu",
        "show output/level1/silu",
        "report output",
        "diff output/level1/silu output/level1/silu",
        "workloads output",
        "prompt samples/silu",
        "data list",
        "status",
        "doctor",
    ],
)
def test_commands_about_a_problem_or_a_directory_work(kdrun: Kdrun, command: str) -> None:
    done = kdrun(*command.split())
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    if command == "doctor":
        assert "ok   ray      not installed; only kdrun submit needs it: pip install" in done.stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("submit --problem samples/silu", "kdrun submit needs ray, {}[cluster]'"),
        ("status --store s3://bucket/results", "s3://bucket/results needs boto3, {}[s3]'"),
    ],
)
def test_what_needs_them_names_the_extra_in_one_line(
    kdrun: Kdrun, python: Path, command: str, said: str
) -> None:
    done = kdrun(*command.split())
    missing = f"which is not installed in {python.parents[1]}; pip install 'kdrun"
    assert (done.returncode, done.stderr) == (2, f"kdrun: {said.format(missing)}\n")
