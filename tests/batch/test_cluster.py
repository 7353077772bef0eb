"""A Ray to join, and one whose node goes away while it works."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import KDRUN, wait_for

from runner.batch import cluster
from runner.batch.cluster import usable_bytes
from runner.batch.machine import GIB
from runner.config import Settings
from runner.errors import ClusterError

pytestmark = pytest.mark.cluster


def test_problems_may_take_85_percent_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "available_bytes", lambda: 20 * GIB)
    assert usable_bytes() == 17 * GIB


def test_more_than_there_is_cannot_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "available_bytes", lambda: 10 * GIB)
    assert usable_bytes(4 * GIB) == 4 * GIB
    assert usable_bytes(400 * GIB) == 10 * GIB


def test_the_folder_of_a_killed_driver_is_removed_and_that_of_a_living_one_is_not() -> None:
    program = (
        "import time\nfrom runner.batch.cluster import _ray_directory\n"
        "with _ray_directory() as folder:\n    print(folder, flush=True)\n    time.sleep(1000)"
    )
    command = [sys.executable, "-c", program]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    left = Path(driver.stdout.readline().strip())
    with cluster._ray_directory() as own:
        assert left.is_dir()
        assert Path(own).is_dir()
    driver.kill()
    driver.wait()
    assert left.is_dir()
    with cluster._ray_directory():
        assert not left.exists()
    assert not Path(own).exists()


def test_a_full_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "available_bytes", lambda: GIB // 4)
    with pytest.raises(ClusterError, match=r"only 0\.2 GiB of memory are free here"):
        usable_bytes()


def has(**changes: Any) -> cluster.Cluster:
    fields = {"address": "10.0.0.5:6379", "nodes": 1, "cores": 4, "memory_bytes": 8 * GIB}
    fields |= {"node_memory_bytes": 8 * GIB, "node_cores": 4, "gpus": 0, "node_gpus": 0}
    return cluster.Cluster(**(fields | {"ray_version": "2"} | changes))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"num_gpus": 0.5},
            "--num-gpus 0.5: the largest node has 0; ask for fewer, or --wait",
        ),
        ({"num_cpus": 5}, "--num-cpus 5: the largest node has 4; ask for fewer, or --wait"),
        (
            {"device": "cuda"},
            "--device cuda: no node has a GPU; --device auto takes one where",
        ),
    ],
)
def test_what_a_cluster_has_not_is_refused_unless_nodes_may_come(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClusterError, match=f"^{message}"):
        cluster._refuse_missing_resources(has(), Settings(**asked))
    cluster._refuse_missing_resources(has(), Settings(**asked, wait_for_nodes=True))


@pytest.mark.parametrize(("fails", "starts"), [(1, True), (2, False)])
def test_a_ray_of_our_own_that_is_not_up_in_time_is_started_once_more(
    monkeypatch: pytest.MonkeyPatch, fails: int, starts: bool
) -> None:
    import ray

    tries: list[str] = []

    def late(**options: Any) -> None:
        tries.append(options["address"])
        if len(tries) <= fails:
            raise RuntimeError("The current node timed out during startup.\nAnd more.")

    monkeypatch.setattr(ray, "init", late)
    monkeypatch.setattr(cluster, "_RAY_ENVIRONMENT", {})  # this process' own
    here = {"Alive": True, "Resources": {"CPU": 2, "memory": GIB}}
    monkeypatch.setattr(cluster, "list_nodes", lambda: [here])
    with ExitStack() as stack:
        if starts:
            assert stack.enter_context(cluster.connect(Settings())).nodes == 1
        else:
            with pytest.raises(ClusterError, match=r"^Ray does not start: .* during startup; try"):
                stack.enter_context(cluster.connect(Settings()))
    assert tries == ["local", "local"]


def test_a_ray_without_the_private_parts_that_ask_early_is_joined_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray

    def moved(address: str) -> None:
        raise ModuleNotFoundError("No module named 'ray._private.grpc_utils'")

    monkeypatch.setattr(cluster, "_probe_address", moved)
    monkeypatch.setattr(cluster, "refuse_unreachable", lambda address: None)
    monkeypatch.setattr(cluster, "_RAY_ENVIRONMENT", {})  # this process' own
    monkeypatch.setattr(ray, "init", lambda **options: None)
    here = {"Alive": True, "Resources": {"CPU": 2, "memory": GIB}}
    monkeypatch.setattr(cluster, "list_nodes", lambda: [here])
    with cluster.connect(Settings(address="10.0.0.5:6379")) as joined:
        assert joined.nodes == 1


def test_parts_of_a_gpu_are_enough() -> None:
    some = has(gpus=1.0, node_gpus=1.0)
    cluster._refuse_missing_resources(some, Settings(num_gpus=0.5, device="cuda"))


def test_another_version_of_ray_or_python_is_one_line() -> None:
    from ray._private.utils import check_version_info

    with pytest.raises(RuntimeError) as theirs:
        check_version_info({"ray_version": "2.9.0", "python_version": "3.9.2"}, "here")
    with pytest.raises(ClusterError) as ours:
        cluster._refuse_version_mismatch("10.0.0.5:6379", str(theirs.value))
    there, _, here = str(ours.value).partition(" there, ")
    assert there == "Ray at 10.0.0.5:6379 is another version: Ray 2.9.0 on Python 3.9.2"
    assert here.endswith(" here; install the same ones")
    assert "\n" not in str(ours.value)


ANOTHER_VERSION = """
import runner
runner.__version__ = "99.0"
from runner.cli import main
main()
"""


def test_a_node_with_another_kdrun_is_refused_before_anything_is_started(
    nodes: Any, write: Callable[[str], Path], tmp_path: Path
) -> None:
    nodes.add_node(num_cpus=1, memory=3 * GIB, object_store_memory=80 << 20)
    done = subprocess.run(
        [
            *(sys.executable, "-c", ANOTHER_VERSION, "submit", "--problem", str(write("whole"))),
            *("--run-id", "other", "--address", nodes.address),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 2
    assert re.search(r"^kdrun: .*: kdrun \S+ there, 99\.0 here; install", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "output/level1").exists()


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A real Ray with a head that runs nothing, to which nodes can be added."""
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")
    # Ray gives a node half a minute to start, and a busy machine needs more: its clock goes slowly.
    monkeypatch.setenv("RAY_gcs_server_port_wait_time_s", "600")
    slow = SimpleNamespace(**vars(time) | {"monotonic": lambda: time.monotonic() / 20})
    monkeypatch.setattr("ray._private.node.time", slow)
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 << 20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    yield made
    made.shutdown()


def tell_to_go(node: Any) -> None:
    """And let it: Ray's own way to remove a node kills it after a second."""
    (raylet,) = node.all_processes["raylet"]
    raylet.process.terminate()
    raylet.process.wait(timeout=240)


HANGS_ONCE = """
import pathlib, time
if not (flag := pathlib.Path({hangs!r})).exists():
    flag.touch()
    time.sleep(1000)
"""


@pytest.mark.parametrize(("told_to_go", "cause"), [(False, "node lost"), (True, "preempted")])
def test_a_problem_whose_node_goes_away_is_done_on_another(
    nodes: Any,
    write: Callable[[str], Path],
    begin: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    told_to_go: bool,
    cause: str,
) -> None:
    size = {"num_cpus": 1, "memory": 3 * GIB, "object_store_memory": 80 << 20}
    first = nodes.add_node(**size)
    hangs = tmp_path / "hangs"  # made by the first to load the problem, which then never ends
    problem = write("whole")
    problem.write_text(problem.read_text() + HANGS_ONCE.format(hangs=str(hangs)))
    command = [KDRUN, "submit", "--problem", str(problem), "--run-id", "moved", "--json"]
    run = begin(*command, "--address", nodes.address, cwd=tmp_path)
    wait_for(hangs.exists)
    nodes.add_node(**size)
    if told_to_go:
        tell_to_go(first)
    nodes.remove_node(first, allow_graceful=told_to_go)
    out, err = run.communicate(timeout=600)
    assert run.returncode == 0, err
    manifest = json.loads(out)
    assert manifest["cluster"]["address"] == nodes.address
    assert manifest["rows"][0]["status"] == "passed"
    (repeat,) = manifest["rows"][0]["repeats"]
    assert (repeat["cause"], repeat["node"]) == (cause, socket.gethostname())
    assert manifest["rows"][0]["attempts"] == 2


TAKES_TURNS = """
import os, pathlib, time
NAME = {name!r}
SEEN = pathlib.Path({seen!r})
if not (SEEN / NAME).exists():  # a file is loaded again to be verified
    before = len(list(SEEN.glob("*.done")))
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
    (SEEN / NAME).write_text(f"GPU {{gpu}}, {{before}} done before")
    while len(list(SEEN.iterdir())) < 2:  # another one is here at the same time
        time.sleep(0.1)
    (SEEN / f"{{NAME}}.done").touch()
"""
LARGE = """
def get_inputs():
    return [torch.randn(1 << 26)]
"""


def test_problems_wait_for_a_node_that_can_hold_them_and_share_its_gpu_by_halves(
    nodes: Any,
    write: Callable[[str], Path],
    begin: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    nodes.add_node(num_cpus=3, memory=GIB // 4, object_store_memory=80 << 20)
    seen = tmp_path / "seen"
    seen.mkdir()
    problems = [write(name) for name in ("one", "two", "three")]
    for path in problems:
        told = TAKES_TURNS.format(name=path.stem, seen=str(seen))
        path.write_text(path.read_text() + told)
    large = write("large")
    large.write_text(large.read_text() + LARGE)
    command = [KDRUN, "submit", "--address", nodes.address, "--trials", "1", "--json"]
    asked = ["--wait-for-nodes", "--num-gpus", "0.5", "--run-id", "waits"]
    selected = [word for path in problems for word in ("--problem", str(path))]
    waiting = begin(*command, *asked, *selected, cwd=tmp_path)
    wait_for((tmp_path / "output/runs/waits/manifest.json").exists)

    at_once = subprocess.run(
        [*command, "--problem", str(large)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    (row,) = json.loads(at_once.stdout)["rows"]
    assert (row["status"], row["attempts"]) == ("too_large", 1)
    assert re.match(r"needs \d\.\d GiB, the largest node has 0\.2 GiB", row["reason"])
    assert list(seen.iterdir()) == []  # while the others wait

    nodes.add_node(num_cpus=3, num_gpus=1, memory=7 * GIB, object_store_memory=80 << 20)
    out, err = waiting.communicate(timeout=600)
    assert waiting.returncode == 0, err
    told = sorted((seen / path.stem).read_text() for path in problems)
    assert told[:2] == ["GPU 0, 0 done before"] * 2
    assert re.fullmatch("GPU 0, [12] done before", told[2])
    for row in json.loads(out)["rows"]:
        assert (row["status"], row["attempts"]) == ("passed", 1)
        assert row["requested_memory_bytes"] > GIB // 4
        assert row["gpu_seconds"] >= row["seconds"] / 2
