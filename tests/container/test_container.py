"""The image is built for real and takes two samples apart, where that can be tried at all."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("build_and_run.sh")
CANNOT = 77


def test_the_image_is_built_and_two_samples_pass_in_it() -> None:
    if not os.environ.get("CONTAINER"):
        pytest.skip("takes minutes and 6 GiB of disk: `make container`, or CONTAINER=1")
    done = subprocess.run(["bash", SCRIPT], capture_output=True, text=True, timeout=3600)
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    for problem in ("level1/rms_norm", "level3/vit_block"):
        assert re.search(rf"passed +{problem} ", done.stdout + done.stderr)
    assert re.search(r"uid=10001\(kdrun\)", done.stdout)
    sealed = done.stdout.partition("root: touch: cannot touch '/here': Read-only file system")[2]
    assert "output/runs/sealed/manifest.json" in sealed


def test_the_image_holds_the_torch_that_kdrun_and_its_makefile_name() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    (torch,) = re.findall(r"^ARG TORCH=(\S+)$", dockerfile, re.MULTILINE)
    assert f"{torch}+cpu" in (ROOT / "Makefile").read_text()
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (range_,) = [each for each in wanted if each.startswith("torch")]
    assert range_.startswith("torch>=" + torch.removeprefix("torch==").rpartition(".")[0])


def test_all_that_the_dockerfile_copies_is_let_through_and_there() -> None:
    let_through = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    names = {name for each in copied for name in each.split()}
    assert names == let_through
    assert all((ROOT / name).exists() for name in names)
