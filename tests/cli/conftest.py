"""The command, run in this process; and one run into a bucket, for all who look at it."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from object_server import BUCKET, Server
from stored_runs import MEMORY, write
from stored_runs import kdrun as kdrun_of_its_own

from runner.cli import main

PRYING = """
import os, pathlib, sys
seen = [*os.environ.items(), *sys.argv]
for file in ("environ", "cmdline"):
    seen.append(pathlib.Path(f"/proc/self/{file}").read_bytes())
    seen.append(pathlib.Path(f"/proc/{os.getppid()}/{file}").read_bytes())
print("seen:", seen)
print("working in:", {p.name: p.read_text() for p in pathlib.Path().iterdir() if p.is_file()})
"""


@pytest.fixture(scope="session")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stored")


@pytest.fixture(scope="session")
def first(where: Path, server: Server) -> subprocess.CompletedProcess[str]:
    """One run into a bucket: two problems that pass, one that pries, one that is broken."""
    write(where / "data", "1_whole")
    write(where / "data", "2_whole", level=1)
    write(where / "data", "3_prying", PRYING)
    (where / "data/level1/4_broken.py").write_text("x = 1\n")
    return kdrun_of_its_own(
        *("submit", "--data", "data", "--run-id", "first", "--json", *MEMORY),
        *("--store", f"s3://{BUCKET}/cli"),
        cwd=where,
        server=server,
        SOME_PASSWORD="not for models",
    )


@pytest.fixture(scope="session")
def manifest(first: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert first.returncode == 1, first.stderr
    document: dict[str, Any] = json.loads(first.stdout)
    return document


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Kdrun = Callable[..., Ended]


@pytest.fixture
def kdrun(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Kdrun:
    """The command, run here and now in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["kdrun", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Ended(end.value.code, captured.out, captured.err)

    return run
