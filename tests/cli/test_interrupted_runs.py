"""A `kdrun submit` that is told to stop, or killed: what is done stays done, and is said."""

import json
import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from commands import KDRUN, Begin, wait_for
from small_runs import HANGS, MEMORY, kdrun, write

pytestmark = pytest.mark.kill

K8S = Path(__file__).parents[2] / "k8s"
WAITS = "import pathlib, time\nwhile pathlib.Path({flag!r}).exists():\n    time.sleep(0.1)"


def ctrl_c(run: subprocess.Popen[str]) -> None:
    """What a terminal sends to a command and all that it started."""
    os.killpg(run.pid, signal.SIGINT)


def ended(run: Path) -> list[str]:
    """The problems of whose end the driver knows."""
    manifest = run / "manifest.json"
    rows = json.loads(manifest.read_text())["rows"] if manifest.exists() else []
    return [row["problem"] for row in rows]


def read_until(run: subprocess.Popen[str], start: str) -> str:
    assert run.stderr is not None
    for line in run.stderr:
        if line.startswith(start):
            return line.rstrip()
    raise AssertionError(f"{start} was not said")


def test_ctrl_c_finishes_what_runs_and_starts_nothing_more(begin: Begin, tmp_path: Path) -> None:
    flag = tmp_path / "waits"
    flag.touch()
    write(tmp_path / "data", "1_waits", WAITS.format(flag=str(flag)))
    for n in range(2, 5):
        write(tmp_path / "data", f"{n}_whole")
    command = ("submit", "--data", "data", "--run-id", "stopped", "--workers", "1", "--json")
    run = begin(KDRUN, *command, *MEMORY, cwd=tmp_path, start_new_session=True)
    wait_for((tmp_path / "output/level1/.1_waits.stopped/stage").exists)
    ctrl_c(run)
    assert read_until(run, "finishing") == "finishing 1 running; Ctrl-C again stops now"
    flag.unlink()
    out, err = run.communicate(timeout=600)
    assert run.returncode == 130, err
    manifest = json.loads(out)
    assert manifest["state"] == "interrupted"
    assert [(row["problem"], row["status"]) for row in manifest["rows"]] == [("1_waits", "passed")]
    assert "3 not run; the same command again finishes them" in err
    assert json.loads((tmp_path / "output/runs/stopped/manifest.json").read_text()) == manifest
    assert [p.name for p in (tmp_path / "output").rglob(".*")] == []


def test_ctrl_c_again_stops_now_with_what_is_done(begin: Begin, tmp_path: Path) -> None:
    write(tmp_path / "data", "1_whole")
    write(tmp_path / "data", "2_hang", HANGS)
    command = ("submit", "--data", "data", "--run-id", "stopped", "--json")
    run = begin(KDRUN, *command, *MEMORY, cwd=tmp_path, start_new_session=True)
    wait_for((tmp_path / "output/level1/.2_hang.stopped/stage").exists)
    wait_for(lambda: ended(tmp_path / "output/runs/stopped") == ["1_whole"])
    ctrl_c(run)
    read_until(run, "finishing 1 running")
    ctrl_c(run)
    out, err = run.communicate(timeout=600)
    assert run.returncode == 130, err
    manifest = json.loads(out)
    assert manifest["state"] == "interrupted"
    rows = {row["problem"]: row for row in manifest["rows"]}
    assert rows["1_whole"]["status"] == "passed"
    assert (rows["2_hang"]["status"], rows["2_hang"]["reason"]) == (
        "cancelled",
        "stopped in 'capture'",
    )
    assert not (tmp_path / "output/level1/2_hang").exists()
    assert [p.name for p in (tmp_path / "output").rglob(".*")] == []


def test_a_pod_that_has_to_go_has_its_manifest_written_before_it_is_killed(
    begin: Begin, tmp_path: Path
) -> None:
    pod = yaml.safe_load((K8S / "overlays/local/job.yaml").read_text())["spec"]["template"]["spec"]
    write(tmp_path / "data", "1_hang", HANGS)
    command = ("submit", "--data", "data", "--run-id", "evicted", "--json")
    run = begin(KDRUN, *command, *MEMORY, cwd=tmp_path)
    wait_for((tmp_path / "output/level1/.1_hang.evicted/stage").exists)
    told = datetime.now(UTC)
    run.terminate()  # as a kubelet does, to a container's first process alone
    out, err = run.communicate(timeout=600)
    assert run.returncode == 130, err
    manifest = json.loads(out)
    took = datetime.fromisoformat(manifest["finished"]) - told
    assert took.total_seconds() < pod["terminationGracePeriodSeconds"]
    assert (manifest["state"], manifest["counts"]) == ("interrupted", {"cancelled": 1})
    assert json.loads((tmp_path / "output/runs/evicted/manifest.json").read_text()) == manifest
    assert [p.name for p in (tmp_path / "output").rglob(".*")] == []


def test_the_same_command_finishes_what_a_killed_driver_left(begin: Begin, tmp_path: Path) -> None:
    flag = tmp_path / "hangs"
    flag.touch()
    write(tmp_path / "data", "1_whole")
    write(
        tmp_path / "data",
        "2_hangs_once",
        f"import pathlib, time\nif pathlib.Path({str(flag)!r}).exists():\n    time.sleep(1000)",
    )
    command = ["submit", "--data", "data", "--run-id", "killed", *MEMORY]
    run = begin(KDRUN, *command, cwd=tmp_path)
    wait_for((tmp_path / "output/level1/1_whole/result.json").exists)
    wait_for((tmp_path / "output/level1/.2_hangs_once.killed/stage").exists)
    run.kill()
    run.communicate()
    standing = json.loads(kdrun("status", "--json", cwd=tmp_path).stdout)["runs"][0]
    assert standing["state"] == "killed"
    flag.unlink()
    again = kdrun(*command, "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    rows = {row["problem"]: row for row in json.loads(again.stdout)["rows"]}
    assert {row["status"] for row in rows.values()} == {"passed"}
    assert rows["1_whole"]["attempts"] == 0
    assert rows["2_hangs_once"]["attempts"] == 1
