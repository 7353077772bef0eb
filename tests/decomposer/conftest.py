"""A problem, a decomposition of it that passes, and a scripted command that delivers it or not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted import PROBLEM, Take, command

from runner.batch.attempt import Attempt, decompose
from runner.batch.child.child_process import close_fork_server
from runner.batch.child.task import Task
from runner.emit import decompose as compute
from runner.problems import read_problem
from runner.store.result import Decomposer, RunOptions


@pytest.fixture(scope="session", autouse=True)
def one_fork_server() -> Iterator[None]:
    yield
    close_fork_server()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a good decomposition of the problem looks like."""
    place = tmp_path_factory.mktemp("made")
    (place / "level2").mkdir()
    (place / "level2/conv_relu.py").write_text(PROBLEM)
    compute(read_problem(place / "level2/conv_relu.py"), place / "good")
    return place


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """With the problem in it."""
    (tmp_path / "level2").mkdir()
    (tmp_path / "level2/conv_relu.py").write_text(PROBLEM)
    return tmp_path


@pytest.fixture
def good(place: Path, made: Path) -> Path:
    """A decomposition that passes, next to the problem."""
    (place / "good").symlink_to(made / "good")
    return place / "good"


@pytest.fixture
def take(place: Path, good: Path) -> Take:
    """Take the problem apart by a scripted decomposer, or by a command."""

    def run(
        behaviour: str = "",
        *,
        line: str | None = None,
        rounds: int = 1,
        timeout_s: float = 100.0,
        on_failure: bool = False,
        pass_env: tuple[str, ...] = (),
        keeps_passed: bool = False,
    ) -> Attempt:
        who = Decomposer(
            command=line or command(behaviour, good),
            rounds=rounds,
            on_failure=on_failure,
            pass_env=list(pass_env),
        )
        directory = place / "output/level2/conv_relu"
        task = Task(
            problem=place / "level2/conv_relu.py",
            label="level2/conv_relu",
            directory=directory,
            scratch=directory.with_name(".conv_relu.test"),
            options=RunOptions(decomposer=who, trials=1),
            memory_bytes=1 << 30,
            most_memory_bytes=1 << 30,
            timeout_s=timeout_s,
            keeps_passed=keeps_passed,
        )
        return decompose(task, place / "log")

    return run
