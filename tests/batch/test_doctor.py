"""What a machine can do: said in a line each, and wrong things are told apart from missing ones."""

import json
import subprocess
from pathlib import Path

import pytest
from commands import KDRUN

from runner.cli.doctor import Finding, examine
from runner.config import Settings
from runner.store.objects import Address
from runner.store.runs import RunStore

SAMPLES = Path(__file__).parents[2] / "data/samples"


def looked_at(what: str, **settings: object) -> Finding:
    found = {finding.what: finding for finding in examine(Settings.model_validate(settings))}
    return found[what]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_machine_that_runs_the_tests_can_do_what_is_needed() -> None:
    done = subprocess.run([KDRUN, "doctor", "--json"], capture_output=True, text=True)
    findings = json.loads(done.stdout)
    names = ["kdrun", "python", "torch", "ray", "cores", "memory", "gpus", "scratch", "dataset"]
    assert [finding["what"] for finding in findings] == names
    assert (done.returncode, [f for f in findings if not f["well"]]) == (0, [])
    assert len(done.stderr.splitlines()) == len(names)


def test_one_wrong_thing_is_exit_code_1_and_the_rest_is_still_looked_at() -> None:
    done = subprocess.run([KDRUN, "doctor", "--data", "nowhere"], capture_output=True, text=True)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[-1] == "NOT  dataset  --data nowhere: no such directory"
    assert all(line.startswith("ok ") for line in lines[:-1])


def test_gpus_that_are_asked_for_must_be_there() -> None:
    import torch

    here = torch.cuda.device_count()
    finding = looked_at("gpus", num_gpus=here + 1)
    assert not finding.well
    assert finding.said.startswith(f"--num-gpus {here + 1}: there are {here} here")


def test_a_torch_that_is_newer_than_was_tested_is_used_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    monkeypatch.setattr("runner.torch_internals.NEWEST_TESTED", "2.8.0")
    finding = looked_at("torch")
    assert finding.well
    assert finding.said.startswith(
        f"{torch.__version__}, newer than 2.8.0, the newest that was tested, "
    )


@pytest.mark.parametrize("device", ["xpu", "gpu"])
def test_a_device_that_is_asked_for_must_be_there(device: str) -> None:
    finding = looked_at("device", device=device)
    assert not finding.well
    assert finding.said.startswith(f"--device {device}: torch finds no such device here (it finds")


def test_an_output_directory_is_where_a_folder_can_be_made(tmp_path: Path) -> None:
    assert looked_at("scratch", output=tmp_path / "a/b/c").well
    assert not (tmp_path / "a").exists()
    nowhere = looked_at("scratch", output=Path("/proc/nowhere"))
    assert nowhere.said == "/proc/nowhere: No such file or directory; choose another --output"
    assert not nowhere.well


def test_a_store_is_asked_only_where_one_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    assert "store" not in {finding.what for finding in examine(Settings())}
    place = tmp_path / "store"
    new = Finding("store", True, f"{place}: nothing there yet; the first run makes it a store")
    assert looked_at("store", store=str(place)) == new
    assert not place.exists()
    RunStore(Address(uri=str(place))).claim()
    (place / "one").mkdir()
    assert looked_at("store", store=str(place)).said == f"{place}: answers, 1 run"


def test_a_store_that_does_not_answer_or_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "other/folder").mkdir(parents=True)
    (tmp_path / "other/file").touch()
    for place, wrong in (
        (tmp_path / "other", "holds something else; choose an empty place"),
        (tmp_path / "other/file", "a file is where a folder must be; choose another --store"),
        (Path("/proc/nowhere"), "No such file or directory; choose another --store"),
    ):
        assert looked_at("store", store=str(place)) == Finding("store", False, f"{place}: {wrong}")
