"""Speed-ups from turns in several rounds: limits, noise, programs that fail."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from rich.console import Console

from runner.evaluate.program import ConfinedProgram, Duration, Inputs, ProgramError
from runner.evaluate.speed import BaselineError, Measurement, WrongOutput, measure, summarize_pairs
from runner.evaluate.table import show_evaluation
from runner.store.evaluation import ModelComparison, ModelEvaluation, Speed
from tests.report.evaluated_run import solution, speed, write_evaluation

ROUNDS = [2, 2, 1, 1]
MILLISECOND = Duration(1e-3, 1e-3)


class Stub:
    """A program whose calls take half a millisecond, and which notes what it is asked for."""

    busy_s = waiting_s = 0.0

    def __init__(self, place: Duration = MILLISECOND, speed: float = 1.0) -> None:
        self.placed, self.place_duration, self.speed = 0, place, speed
        self.delivered_all: list[bool] = []
        self.is_running = True

    def stop(self) -> None:
        self.is_running = False

    @contextmanager
    def running(self) -> Iterator[None]:
        self.is_running = True
        yield
        self.is_running = False

    def place(self, batch: list[Inputs], seed: int, *, flush: bool = True) -> Duration:
        self.placed = len(batch)
        return self.place_duration

    def run_batch(self) -> float:
        return 5e-4 * self.placed / self.speed

    def deliver(self, count: int) -> tuple[list[Any], Duration]:
        self.delivered_all.append(count == self.placed)
        return [torch.zeros(4) for _ in range(self.placed)], MILLISECOND


def measure_all(**stubs: Stub) -> Measurement:
    return measure(
        {name: partial(nullcontext, cast(ConfinedProgram, stub)) for name, stub in stubs.items()},
        lambda: ((torch.zeros(4),), {}),
        allowed=dict.fromkeys(stubs, 1.0),
        deadline=float("inf"),
        enough_s=0.0,
    )


def measure_stubs(first: Stub, second: Stub) -> Speed:
    return measure_all(first=first, second=second).compare("first", "second")


def test_a_program_delivers_all_outputs_and_does_not_learn_which_one_is_compared() -> None:
    first, second = Stub(), Stub()
    speed = measure_stubs(first, second)

    assert speed.calls == 64
    assert second.delivered_all
    assert all(first.delivered_all + second.delivered_all)


@pytest.mark.parametrize("place", [Duration(4.5e-3, 1e-3), Duration(1e-3, 4.5e-3)])
def test_work_while_inputs_are_placed_is_added_also_that_of_a_thread(place: Duration) -> None:
    speed = measure_stubs(Stub(), Stub(place))
    assert speed.before_median_s == 5e-4
    assert speed.after_median_s == pytest.approx(5e-4 + 3.5e-3 / speed.calls, rel=1e-3)


def test_three_programs_that_took_turns_are_compared_with_one_another() -> None:
    measurement = measure_all(a=Stub(), b=Stub(speed=2.0), c=Stub(speed=4.0))
    assert measurement.compare("a", "b").speedup == pytest.approx(2.0)
    assert measurement.compare("a", "c").speedup == pytest.approx(4.0)
    assert measurement.compare("b", "c").speedup == pytest.approx(2.0)


def test_a_program_that_fails_is_told_and_the_others_are_measured() -> None:
    class Failing(Stub):
        def run_batch(self) -> float:
            raise ProgramError("its process ended")

    class Wrong(Stub):
        def deliver(self, count: int) -> tuple[list[Any], Duration]:
            return [torch.ones(4)] * count, MILLISECOND

    measurement = measure_all(a=Stub(), b=Failing(), c=Wrong(), d=Stub(speed=2.0))
    assert measurement.compare("a", "d").speedup == pytest.approx(2.0)
    with pytest.raises(ProgramError, match="its process ended"):
        measurement.compare("a", "b")
    with pytest.raises(WrongOutput, match="while it was measured, on new inputs"):
        measurement.compare("a", "c")
    with pytest.raises(BaselineError, match="its process ended"):
        measurement.compare("b", "d")
    with pytest.raises(BaselineError, match="its process ended"):
        measure_all(a=Failing(), b=Stub())


def test_a_program_is_stopped_while_the_other_one_is_measured() -> None:
    class Witness(Stub):
        def run_batch(self) -> float:
            assert self.is_running
            assert not first.is_running
            return super().run_batch()

    first = Stub()
    measure_stubs(first, Witness())
    assert not first.is_running


def test_a_steady_difference_is_no_noise() -> None:
    after = [1.0, 1.0, 1.1, 1.0, 0.95, 1.0]
    speed = summarize_pairs([2.0, 2.1, 1.9, 2.0, 2.0, 2.0], after, ROUNDS, 4)
    assert 1.9 < speed.speedup < 2.1
    assert not speed.is_noise
    assert speed.lowest > 1.7


def test_one_slow_pair_does_not_move_the_speed_up() -> None:
    speed = summarize_pairs([1.0] * 9 + [50.0] + [1.0] * 2, [1.0] * 12, [3, 3, 3, 3], 1)
    assert speed.speedup == 1.0
    assert speed.is_noise


def test_a_difference_that_one_round_shows_is_noise() -> None:
    before = [1.2] * 8 + [1.0] * 24
    speed = summarize_pairs(before, [1.0] * 32, [8, 8, 8, 8], 1)
    assert speed.is_noise


def test_a_difference_that_changes_its_sign_is_noise() -> None:
    speed = summarize_pairs([1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0], [1, 1, 1, 1], 1)
    assert speed.is_noise


def test_the_table_says_which_way_a_speed_up_goes_and_long_times_in_seconds(tmp_path: Path) -> None:
    slow = summarize_pairs([8.47] * 8, [5.14] * 8, [2, 2, 2, 2], 1)
    right = ModelComparison(solutions=["relu"], judgement="right", drift=0.0)
    model = ModelEvaluation(comparisons=[right], speed=slow)
    evaluation = write_evaluation(tmp_path, [solution("relu", "relu", speed(2.0))], model)
    console = Console(file=StringIO(), width=200)
    show_evaluation(evaluation, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "8.47 s before, 5.14 s after: 1.65 times as fast (1.65 to 1.65)" in text
