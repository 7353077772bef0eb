"""The image: it is built and run for real where that can be tried, and agrees with the package."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from runner import __version__

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("build_and_run.sh")
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CANNOT = 77


def test_the_image_is_built_and_does_what_readme_says() -> None:
    if not os.environ.get("CONTAINER"):
        pytest.skip("takes minutes and 6 GiB of disk: `make container`, or CONTAINER=1")
    done = subprocess.run(["bash", SCRIPT], capture_output=True, text=True, timeout=3600)
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    parts = dict(part.split("\n", 1) for part in done.stdout.split("\n== ")[1:])
    assert parts["without arguments"].startswith("Usage: kdrun")
    own = parts["its own user, in a folder that belongs to it"]
    assert "output/runs/own/manifest.json" in own
    for problem in ("level1/rms_norm", "level3/vit_block"):
        assert re.search(rf"passed +{problem} ", done.stdout + done.stderr)
    theirs = parts["a user that the image does not know, in a folder of theirs"]
    assert "result.json belongs to 1234" in theirs
    assert 'exit code 130, "state": "interrupted"' in parts["told to stop"]
    assert "zombies: 0" in parts["its first process reaps what others left"]
    assert f"kdrun {__version__}\n/opt/kdrun/bin/ray" in done.stdout


def test_the_image_holds_the_torch_that_kdrun_and_its_makefile_name() -> None:
    (torch,) = re.findall(r"^ARG TORCH=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"{torch}+cpu" in (ROOT / "Makefile").read_text()
    (wanted,) = [each for each in PROJECT["dependencies"] if each.startswith("torch")]
    assert torch.removeprefix("torch==") in Requirement(wanted).specifier


def test_the_lock_has_a_version_of_everything_that_kdrun_needs_beside_torch() -> None:
    lock = (ROOT / "configs/image.lock").read_text()
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", lock, re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *extras["kernelbench"], *extras["cluster"]]:
        wanted = Requirement(line)
        if wanted.name != "torch":
            assert locked[wanted.name] in wanted.specifier, "make lock"
    assert not [name for name in locked if name.startswith(("torch", "nvidia", "triton"))]


def test_the_image_is_labelled_with_the_version_of_kdrun() -> None:
    assert re.findall(r"^ARG VERSION=(\S+)$", DOCKERFILE, re.MULTILINE) == [__version__]
    assert f'description="{PROJECT["description"]}"' in DOCKERFILE
    assert f'licenses="{PROJECT["license"]}"' in DOCKERFILE


def test_all_that_the_dockerfile_copies_is_let_through_and_there() -> None:
    let_through = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = {name for each in copied for name in each.split()}
    assert names == let_through
    assert all((ROOT / name).exists() for name in names)
