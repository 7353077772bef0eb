"""Stores of each kind, and results to put in them."""

import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import FIGURES, FILES, LARGE, NOW, Make
from faulty_proxy import Asked, Fault, FaultyProxy
from object_server import BUCKET, Server

from runner.store.objects import Address
from runner.store.result import ProblemResult, RunOptions, hash_files
from runner.store.runs import RunStore


def unlucky(asked: Asked) -> Fault | None:
    """Each kind of fault now and then, and none twice in a row."""
    return {3: "slow_down", 7: "reset", 12: "lost_answer", 18: "truncate"}.get(asked.number % 23)


@pytest.fixture(autouse=True)
def one_file_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """LARGE, and none of the others that results consist of here."""
    monkeypatch.setattr("runner.store.result_objects.SMALL_BYTES", len(FILES[LARGE]) - 1)


@pytest.fixture(params=["directory", "server", "unlucky"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What boto3 waits after a fault is a hundredth of what it would be."""
    clock = types.SimpleNamespace(time=time.time, sleep=lambda s: time.sleep(s / 100))
    monkeypatch.setattr("botocore.endpoint.time", clock)
    monkeypatch.setattr("botocore.retries.bucket.TokenBucket.__init__.__defaults__", (50.0,))


@pytest.fixture
def store(
    kind: str,
    request: pytest.FixtureRequest,
    somewhere: str,
    tmp_path: Path,
) -> Iterator[RunStore]:
    """An empty store: a directory, the server, or the server behind a bad connection."""
    if kind == "directory":
        yield RunStore(Address(uri=str(tmp_path / "store")))
        return
    request.getfixturevalue("credentials")
    if kind == "server":
        url = request.getfixturevalue("server").url
    else:
        proxy: FaultyProxy = request.getfixturevalue("proxy")
        proxy.decide = unlucky
        request.getfixturevalue("quick")
        url = proxy.url
    yield RunStore(Address(uri=f"s3://{BUCKET}/{somewhere}", endpoint_url=url))


@pytest.fixture
def bucket(credentials: None, server: Server, somewhere: str) -> RunStore:
    """An empty store on the server."""
    return RunStore(Address(uri=f"s3://{BUCKET}/{somewhere}", endpoint_url=server.url))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """`make("level1/relu")`: a decomposition on disk, and its result."""

    def made(
        label: str = "level1/relu", *, folder: str = "built", files: Any = None, **changes: Any
    ) -> tuple[ProblemResult, Path]:
        directory = tmp_path / folder / label
        for name, text in (FILES if files is None else files).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        level, _, name = label.rpartition("/")
        fields: dict[str, Any] = {
            "problem": name,
            "source_level": level,
            "status": "passed",
            "figures": FIGURES,
            "bitwise_equal": True,
            "started": NOW,
            "source_sha256": "abc",
            "kdrun_version": "1",
            "torch_version": "2",
            "options": RunOptions(),
            "files": hash_files(directory),
        }
        return ProblemResult.model_validate(fields | changes), directory

    return made
