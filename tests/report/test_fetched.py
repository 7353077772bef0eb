"""A run that is in a store, and not here."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sample_run import RUN, TAKEN_APART, embedded

from runner.cli import cli
from runner.config import Settings
from runner.report.subject import open_subject
from runner.store import key_layout
from runner.store.directory import DirectoryStore
from runner.store.objects import Address
from runner.store.result import ProblemResult
from runner.store.runs import RunStore


@pytest.fixture
def store(made: Path, tmp_path: Path) -> RunStore:
    """The finished run, as `submit --store` leaves it."""
    store = RunStore(Address(uri=str(tmp_path / "store")))
    store.claim()
    for label in TAKEN_APART:
        store.publish(RUN, ProblemResult.from_directory(made / label), made / label)
    run = DirectoryStore(made).manifest(RUN)
    store.update_manifest(RUN, lambda theirs: run)
    return store


def ran(command: str, store: RunStore, *more: str) -> Result:
    arguments = [command, RUN, "--store", str(store), *more]
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def test_it_is_reported_from_there(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ran("report", store)
    assert done.exception is None, done.exception
    assert done.output == "report.html\n"
    rows = embedded((tmp_path / "report.html").read_text(), "run")["problems"]
    assert [row["label"] for row in rows] == list(TAKEN_APART)


def test_its_workloads_are_those_of_the_same_run_here(store: RunStore, made: Path) -> None:
    there = ran("workloads", store, "--json")
    here = CliRunner().invoke(
        cli, ["workloads", RUN, "--output", str(made), "--json"], standalone_mode=False
    )
    assert there.stdout == here.stdout != ""


def test_what_is_here_is_not_fetched(made: Path, tmp_path: Path) -> None:
    settings = Settings(output=made, store=str(tmp_path / "no-store"))
    for what in (RUN, str(made / "level3/mlp")):
        with open_subject(what, settings) as found:
            assert found.problems[0].directory.is_relative_to(made)


def test_what_the_store_lost_is_said_and_the_rest_is_shown(store: RunStore, tmp_path: Path) -> None:
    result = ProblemResult.from_directory(
        next((tmp_path / "store").rglob("mlp/result.json")).parent
    )
    (tmp_path / "store" / f"{key_layout.files_prefix(RUN, result)}.zip").unlink()
    settings = Settings(output=tmp_path / "nothing", store=str(store))
    with open_subject(RUN, settings) as found:
        assert len(found.decompositions) == len(TAKEN_APART) - 1
    assert any("level3/mlp: missing" in note for note in found.notes)
