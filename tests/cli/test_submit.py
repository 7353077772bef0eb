"""`kdrun submit` on a real Ray: what goes wrong costs one problem, and what is done stays done."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from small_runs import HANGS, MEMORY, kdrun, write

pytestmark = pytest.mark.cluster

FORK_SERVERS_PARENT = """
import os, pathlib
def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
worker = parent(parent(os.getppid()))  # above the server and what keeps watch over it
"""
BROKEN = {
    "2_segfault": "import ctypes\nctypes.string_at(0)",
    "3_hang": HANGS,
    "4_memory": "x = bytearray(64 << 30)",
    "5_sys_exit": "import sys\nsys.exit(0)",
    "6_kills_its_worker": FORK_SERVERS_PARENT + "import time\nos.kill(worker, 9)\ntime.sleep(1000)",
    "8_is_killed": "import os\nos.kill(os.getpid(), 9)",
    "9_floods": "for _ in range(1 << 17):\n    print('flood' * 10)",
}
LOOKS_AROUND = """
import os
print("names", *sorted(os.environ))
for name in os.listdir("/proc/self/fd"):
    try:
        print("open", name, os.readlink(f"/proc/self/fd/{name}"))
    except OSError:
        pass  # the one that listed them
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getpid(), flush=True)
        import time
        time.sleep(1000)
    os._exit(0)
os.wait()
"""
"""Prints what a problem's process was left, and leaves a daemon behind."""
DIFFERS = """
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * (1 + torch.are_deterministic_algorithms_enabled())
"""
"""Another output where it is verified than where it is captured, and the same whenever it runs."""


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def first(where: Path) -> subprocess.CompletedProcess[str]:
    """One run over a whole problem and one of each kind of broken ones."""
    write(where / "data", "1_whole")
    write(where / "data", "10_also_whole")
    for name, more in BROKEN.items():
        write(where / "data", name, more)
    (where / "data/level1/7_no_model.py").write_text("x = 1\n")
    write(where / "data", "11_looks_around", LOOKS_AROUND)
    write(where / "data", "12_differs", DIFFERS)
    return kdrun(
        *("submit", "--data", "data", "--run-id", "first", "--timeout", "20", "--json", *MEMORY),
        cwd=where,
        AWS_SECRET_ACCESS_KEY="not for models",
    )


@pytest.fixture(scope="module")
def manifest(first: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(first.stdout)
    return document


def test_every_problem_ends_with_a_true_status_and_no_other_suffers(
    manifest: dict[str, Any],
) -> None:
    assert {row["problem"]: row["status"] for row in manifest["rows"]} == {
        "1_whole": "passed",
        "2_segfault": "crashed",
        "3_hang": "timeout",
        "4_memory": "too_large",
        "5_sys_exit": "error",
        "6_kills_its_worker": "crashed",
        "7_no_model": "error",
        "8_is_killed": "crashed",
        "9_floods": "passed",
        "10_also_whole": "passed",
        "11_looks_around": "passed",
        "12_differs": "failed",
    }


def test_each_row_that_did_not_pass_says_why(manifest: dict[str, Any]) -> None:
    reasons = {row["problem"]: row.get("reason", "") for row in manifest["rows"]}
    assert reasons["1_whole"] == ""
    assert reasons["2_segfault"] == "its process was killed by SIGSEGV in 'capture'"
    assert reasons["3_hang"] == "not finished after 20 s, in 'capture'"
    assert reasons["4_memory"].startswith("needs more than 5.0 GiB")
    assert reasons["5_sys_exit"].startswith("SystemExit: 0 (line 19")
    assert reasons["6_kills_its_worker"].startswith("its worker was lost 3 times")
    assert reasons["7_no_model"].startswith("no class Model")
    assert reasons["8_is_killed"] == "its process was killed by SIGKILL in 'capture'"
    assert reasons["12_differs"].startswith("composition: model: output differs by")


def test_a_log_is_bounded_however_much_is_printed(where: Path, manifest: dict[str, Any]) -> None:
    log = where / "output/runs/first/logs/level1/9_floods.log"
    assert log.stat().st_size < 2 << 20 < (50 << 17)
    assert "bytes left out" in log.read_text()


def test_a_problem_s_process_inherits_no_credentials_and_nothing_open(
    where: Path, manifest: dict[str, Any]
) -> None:
    log = (where / "output/runs/first/logs/level1/11_looks_around.log").read_text()
    names = re.findall("^names (.*)$", log, re.MULTILINE)[0]
    assert "PATH" in names.split()
    assert not [n for n in names.split() if n.startswith(("AWS_", "RAY_", "KDRUN_"))]
    opened = dict(re.findall(r"^open (\d+) (.*)$", log, re.MULTILINE))
    assert opened["0"] == "/dev/null"
    assert {opened["1"].partition(":")[0], opened["2"].partition(":")[0]} == {"pipe"}
    assert set(opened) <= {"0", "1", "2"} | {n for n in opened if opened[n].endswith(".py")}


def test_what_a_problem_s_process_started_ends_with_it(
    where: Path, manifest: dict[str, Any]
) -> None:
    log = (where / "output/runs/first/logs/level1/11_looks_around.log").read_text()
    daemons = re.findall(r"^daemon (\d+)$", log, re.MULTILINE)
    assert daemons
    assert not [pid for pid in daemons if Path(f"/proc/{pid}").exists()]


def test_rows_say_what_each_stage_took_and_what_it_cost(manifest: dict[str, Any]) -> None:
    row = next(row for row in manifest["rows"] if row["problem"] == "1_whole")
    assert list(row["seconds_by_stage"]) == ["load", "capture", "decompose", "verify"]
    assert 0.05 < row["cpu_seconds"] < 60
    assert row["peak_memory_bytes"] > 100 << 20
    assert "gpu_seconds" not in row


def test_a_row_lists_every_attempt_with_its_cause(manifest: dict[str, Any]) -> None:
    rows = {row["problem"]: row for row in manifest["rows"]}
    lost = rows.pop("6_kills_its_worker")
    assert lost["attempts"] == 3
    assert [repeat["cause"] for repeat in lost["repeats"]] == ["worker lost", "worker lost"]
    assert all(repeat["said"] and repeat["seconds"] > 0 for repeat in lost["repeats"])
    grown = rows.pop("4_memory")
    assert [repeat["cause"] for repeat in grown["repeats"]] == ["out of memory"]
    asked = [repeat["requested_memory_bytes"] >> 30 for repeat in grown["repeats"]]
    assert [*asked, grown["requested_memory_bytes"] >> 30] == [2, 5]
    assert {(row["attempts"], len(row["repeats"])) for row in rows.values()} == {(1, 0)}
    assert rows["12_differs"]["status"] == "failed"  # a wrong result is never tried again


def test_a_run_with_a_problem_that_did_not_pass_exits_with_1(
    first: subprocess.CompletedProcess[str],
) -> None:
    assert first.returncode == 1


def test_json_is_all_that_is_on_stdout_and_the_rest_is_on_stderr(
    first: subprocess.CompletedProcess[str], manifest: dict[str, Any]
) -> None:
    assert manifest["state"] == "finished"
    lines = first.stderr.splitlines()
    assert lines[0].endswith("data: 12 selected, 12 to run")
    assert lines[1].startswith("a local Ray: 1 node, ")
    assert sum(line.startswith("[") for line in lines) == 12
    assert sum(line.startswith("again      level1/6_kills_its_worker") for line in lines) == 2
    assert "Traceback" not in first.stderr


def test_the_manifest_on_disk_is_the_one_that_was_printed(
    where: Path, manifest: dict[str, Any]
) -> None:
    path = where / "output/runs/first/manifest.json"
    assert json.loads(path.read_text()) == manifest
    assert manifest["counts"] == {
        "passed": 4,
        "failed": 1,
        "crashed": 3,
        "timeout": 1,
        "too_large": 1,
        "error": 2,
    }


def test_a_row_names_a_result_that_is_there(where: Path, manifest: dict[str, Any]) -> None:
    for row in manifest["rows"]:
        result = json.loads((where / "output" / row["artifact_prefix"] / "result.json").read_text())
        assert result["status"] == row["status"]


def test_nothing_half_done_is_left(where: Path, manifest: dict[str, Any]) -> None:
    assert len(list((where / "output/level1").iterdir())) == len(manifest["rows"])
    assert list((where / "output").rglob(".*")) == []


def test_what_passed_is_not_run_again_and_needs_no_ray(where: Path, first: object) -> None:
    again = kdrun("submit", "--data", "data", "--problem", "*whole", cwd=where)
    assert again.returncode == 0, again.stderr
    assert "2 selected, 2 passed before, 0 to run" in again.stderr
    assert "Ray" not in again.stderr


def test_status_lists_runs_and_shows_one(where: Path, first: object) -> None:
    listed = kdrun("status", cwd=where)
    assert listed.returncode == 0
    assert "first" in listed.stdout
    assert "finished" in listed.stdout
    one = kdrun("status", "first", cwd=where)
    assert "crashed    level1/2_segfault: its process was killed by SIGSEGV" in one.stdout
    document = json.loads(kdrun("status", "first", "--json", cwd=where).stdout)
    assert document["runs"][0]["counts"]["passed"] == 4


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(where: Path, first: object) -> None:
    before = sorted((where / "output").rglob("*"))
    planned = kdrun(
        *("submit", "--data", "data", "--problem", "*whole", "--problem", "7*"),
        *("--no-resume", "--dry-run", "--json", *MEMORY),
        cwd=where,
    )
    assert planned.returncode == 0, planned.stderr
    rows = {row["problem"]: row for row in json.loads(planned.stdout)["problems"]}
    assert rows["1_whole"]["why"] == "asked for again"
    assert rows["1_whole"]["peak_bytes"] >= 48
    assert 2 << 30 <= rows["1_whole"]["memory_bytes"] <= 4 << 30
    assert rows["7_no_model"]["note"].startswith("error: no class Model")
    assert sorted((where / "output").rglob("*")) == before


def test_a_worker_that_is_lost_once_costs_nothing_and_the_others_go_on_from_problem_to_problem(
    tmp_path: Path,
) -> None:
    flag = tmp_path / "kills"
    flag.touch()
    once = f"import pathlib, time\nif pathlib.Path({str(flag)!r}).exists():\n    "
    once += f"pathlib.Path({str(flag)!r}).unlink()\n    os.kill(worker, 9)\n    time.sleep(1000)"
    write(tmp_path / "data", "1_kills_once", FORK_SERVERS_PARENT + once)
    for n in range(2, 7):
        write(tmp_path / "data", f"{n}_whole", FORK_SERVERS_PARENT + "print('worker', worker)")
    command = ("submit", "--data", "data", "--run-id", "lost", "--workers", "2", "--json")
    done = kdrun(*command, *MEMORY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not flag.exists()
    row, *others = json.loads(done.stdout)["rows"]
    assert [repeat["cause"] for repeat in row["repeats"]] == ["worker lost"]
    assert row["attempts"] == 2
    assert {other["attempts"] for other in others} == {1}
    said = [path.read_text() for path in (tmp_path / "output/runs/lost/logs").rglob("*_whole.log")]
    assert len(said) == 5
    workers = re.findall(r"^worker (\d+)$", "".join(said), re.MULTILINE)
    assert 1 <= len(set(workers)) < 5  # some did several


def test_a_problem_that_needs_more_than_was_estimated_gets_more_and_the_row_says_so(
    tmp_path: Path, ray_address: str
) -> None:
    # Only where there are values, which capturing has none of. It is reserved and never written to.
    more = "\n\nimport numpy\n\n_plain = Model.forward\n\n\ndef _greedy(self, x):\n"
    more += "    if type(x) is torch.Tensor:\n        numpy.empty((4 << 30) + 1, numpy.uint8)\n"
    more += "    return _plain(self, x)\n"
    write(tmp_path / "data", "1_greedy", more + "\n\nModel.forward = _greedy\n")
    done = kdrun("submit", "--data", "data", "--json", "--address", ray_address, cwd=tmp_path)
    (row,) = json.loads(done.stdout)["rows"]
    assert [repeat["cause"] for repeat in row["repeats"]] == ["out of memory"]
    assert row["repeats"][0]["requested_memory_bytes"] < row["requested_memory_bytes"]
    assert row["attempts"] == 2


def test_a_broken_ray_ends_the_run_and_is_not_told_as_the_problems_fault(
    tmp_path: Path, ray_address: str
) -> None:
    for n in range(8):
        write(tmp_path / "data", f"{n}_kills_its_worker", BROKEN["6_kills_its_worker"])
    address = ("--address", ray_address)
    done = kdrun("submit", "--data", "data", "--run-id", "broken", *address, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("kdrun: Ray is broken: 4 problems in a row")
    manifest = json.loads((tmp_path / "output/runs/broken/manifest.json").read_text())
    assert manifest["state"] == "interrupted"
    assert {row["status"] for row in manifest["rows"]} <= {"cancelled"}


def test_a_ray_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    write(tmp_path / "data", "1_whole")
    done = kdrun("submit", "--data", "data", "--address", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("kdrun: no Ray at 127.0.0.1:1: ")
    assert "Traceback" not in done.stderr
