"""Naming a decomposer: what cannot be meant is a line, and earlier results stand where they may."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted import PROBLEM

from runner.cli import main
from runner.config import Settings, load_settings
from runner.errors import UsageError
from runner.store.result import Decomposer, RunOptions

COMPUTED = RunOptions()
AGENT = RunOptions(decomposer=Decomposer(command="agent"))
AGENT_MORE = RunOptions(decomposer=Decomposer(command="agent", rounds=9, pass_env=["KEY"]))
OTHER = RunOptions(decomposer=Decomposer(command="other"))
FALLBACK = RunOptions(decomposer=Decomposer(command="agent", on_failure=True))


@pytest.mark.parametrize(
    ("wanted", "made", "stands"),
    [
        (COMPUTED, COMPUTED, True),
        (COMPUTED, AGENT, False),
        (AGENT, COMPUTED, False),
        (AGENT, AGENT_MORE, True),
        (AGENT, OTHER, False),
        (FALLBACK, COMPUTED, True),
        (FALLBACK, AGENT, True),
        (FALLBACK, OTHER, False),
        (FALLBACK, RunOptions(trials=3), False),
        (AGENT, AGENT.model_copy(update={"mode": "train"}), False),
    ],
)
def test_a_result_stands_for_who_made_it(
    wanted: RunOptions, made: RunOptions, stands: bool
) -> None:
    assert wanted.accept(made) is stands


def test_results_without_a_decomposer_read_as_before() -> None:
    assert "decomposer" not in COMPUTED.model_dump_json(exclude_none=True)


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def decompose(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """`kdrun decompose` on a problem: exit code and stderr."""
    (tmp_path / "problem.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["kdrun", "decompose", "problem.py", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return end.value.code, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--decomposer", "no-such-agent -p"], "--decomposer: no-such-agent: not found; is it in"),
        (["--decomposer", "agent 'x"], '--decomposer "agent \'x": no closing quotation; quote'),
        (["--decomposer", " "], "--decomposer ' ': no command"),
        (["--decomposer", "true", "--rounds", "0"], "--rounds 0: must be greater than"),
        (["--decomposer-on-failure"], "--decomposer-on-failure: no --decomposer; name its command"),
        (["--decomposer", "true", "--pass-env", "NOT_HERE"], "--pass-env NOT_HERE: no such"),
        (["--pass-env", "AWS_SECRET_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY may open the store"),
        (["--pass-env", "KDRUN_S3_ENDPOINT_URL"], "KDRUN_S3_ENDPOINT_URL may open the store"),
        (["--pass-env", "A=b"], "'A=b' is no name of a variable"),
    ],
)
def test_what_cannot_be_meant_is_one_line(decompose: Run, arguments: list[str], said: str) -> None:
    code, err = decompose(*arguments)

    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_on_a_cluster_the_command_is_looked_for_where_the_work_is_done() -> None:
    from runner.batch.decomposer.decomposer_process import select_decomposer

    settings = load_settings({"decomposer": "no-such-agent", "address": "10.0.0.1:6379"})

    assert select_decomposer(settings) is not None
    with pytest.raises(UsageError):
        select_decomposer(load_settings({"decomposer": "no-such-agent"}))


def test_no_decomposer_is_the_default() -> None:
    assert Settings().decomposer is None
