"""Measures programs in turn, on the same new inputs, by a clock that none of them can reach.

A program gets a batch of inputs that it has never had, a cache without them, and a message to
start; the time ends when its answer is here. If a program takes longer than another to receive
the inputs, or to deliver the outputs, that is added: it would work there instead. Its outputs are
compared for the very inputs that were timed: it delivers all of them, and does not know which ones
are looked at, so that none can be computed later.

Where in memory a process has its weights and code makes it faster or slower by some percent, for
as long as it lives. So all programs are started anew several times, and the limits of a speed-up
come from how these rounds differ.
"""

import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runner.evaluate.program import ConfinedProgram, Duration, Inputs, ProgramError
from runner.store.evaluation import Speed
from runner.verify.gates.compare import STEP, Tolerance, compare
from runner.verify.runtime.output_leaves import tensors

ROUNDS = 4
"""Number of times that the programs are started anew."""
_STUDENTS_T = 3.182
"""Student's t for 95% confidence with ROUNDS - 1 degrees of freedom."""
FEWEST_CALLS = 2 * (2 * ROUNDS + 1)
"""Calls of two slow programs that are measured beside each other."""
ENOUGH_S = 2.0
"""Seconds that two programs are measured in all rounds together, if each has FEWEST_TURNS turns."""
FEWEST_TURNS = 2
"""Fewest batches of each program in a round."""
MOST_TURNS = 8
BATCH_S = 0.1
"""A batch has as many calls as the slowest program makes in about this time."""
LONG_BATCH_S = 0.2
"""Batches from this time on leave caches as they are: what is in them saves two milliseconds."""
MOST_CALLS = 64
MOST_BATCH_BYTES = 128 << 20
SLOW_S = 1.0
"""For calls that take this long, one warms a process up, and one is measured in each round."""
_SLACK = 16.0
"""Factor of the tolerance for timed calls: they show other work, and not another order of sums."""
_EXCESS_SHARE = 0.05
"""Part of the first program's time from which on slower receiving or delivering is added."""

Start = Callable[[], AbstractContextManager[ConfinedProgram]]
"""Starts a program, and gives it its weights."""


class WrongOutput(Exception):
    """A program gave wrong outputs while it was measured; the message is the fault."""


class BaselineError(Exception):
    """The program that another one is measured beside failed; the message is one line."""


class NoTimeError(Exception):
    """A measurement would end after its deadline."""


class _BatchTimes(NamedTuple):
    """How long a program took to receive the inputs of a batch, to run, and to deliver."""

    place: Duration
    run_s: float
    deliver: Duration


class _ProgramFault(Exception):
    """One of the programs failed or gave wrong outputs."""

    def __init__(self, name: str, error: ProgramError | WrongOutput) -> None:
        super().__init__(str(error))
        self.name, self.error = name, error


@dataclass(slots=True)
class _Times:
    """How long a program took in each turn, and how long it ran and waited in all."""

    batches: list[_BatchTimes] = field(default_factory=list)
    busy_s: float = 0.0
    waiting_s: float = 0.0


@dataclass(slots=True)
class Measurement:
    """The times of programs that ran in turn, by their names."""

    calls: int = 0
    """Calls in a batch."""
    turns_of_rounds: list[int] = field(default_factory=list)
    times: dict[str, _Times] = field(default_factory=dict)
    failures: dict[str, ProgramError | WrongOutput] = field(default_factory=dict)
    """Errors of the programs that were measured no further."""

    def compare(self, before: str, after: str) -> Speed:
        """Return how much faster one program is than another.

        Raises:
            BaselineError: the first program ended, raised an error, or gave wrong outputs.
            ProgramError: the second program ended or raised an error.
            WrongOutput: the second program's outputs are wrong.
        """
        if before in self.failures:
            raise BaselineError(str(self.failures[before]))
        if after in self.failures:
            raise self.failures[after]
        first, second = self.times[before], self.times[after]
        excess = _find_excess(first.batches, second.batches, self.turns_of_rounds)
        before_s = [times.run_s / self.calls for times in first.batches]
        after_s = [(times.run_s + excess) / self.calls for times in second.batches]
        speed = summarize_pairs(before_s, after_s, self.turns_of_rounds, self.calls)
        busy_s, waiting_s = first.busy_s + second.busy_s, first.waiting_s + second.waiting_s
        if not busy_s:
            return speed
        return speed.model_copy(update={"waiting": _round(waiting_s / (busy_s + waiting_s))})


def measure(
    starts: Mapping[str, Start],
    draw_inputs: Callable[[], Inputs],
    *,
    allowed: Mapping[str, float],
    deadline: float,
    enough_s: float = ENOUGH_S,
) -> Measurement:
    """Measure programs in turn. The outputs of the first one are right by definition.

    `allowed`: the difference in tolerances that the outputs of each other program may have.
    `deadline`: on the monotonic clock. If another program fails, the rest are measured anew.

    Raises:
        BaselineError: the first program ended or raised an error.
        NoTimeError: the rounds after the first would end too late.
    """
    failures: dict[str, ProgramError | WrongOutput] = {}
    first = next(iter(starts))
    while len(starts) > 1:
        try:
            measurement = _measure(starts, draw_inputs, allowed, deadline, enough_s)
            measurement.failures = failures
            return measurement
        except _ProgramFault as fault:
            if fault.name == first:
                raise BaselineError(str(fault)) from fault
            failures[fault.name] = fault.error
            starts = {name: start for name, start in starts.items() if name != fault.name}
    return Measurement(failures=failures)


def _measure(
    starts: Mapping[str, Start],
    draw_inputs: Callable[[], Inputs],
    allowed: Mapping[str, float],
    deadline: float,
    enough_s: float,
) -> Measurement:
    measurement = Measurement(times={name: _Times() for name in starts})
    call_s, calls = 0.0, 0
    for number in range(ROUNDS):
        round_started = time.monotonic()
        with ExitStack() as stack:
            programs = _start_all(stack, starts)
            if not number:
                call_s, calls = _plan_batches(programs, draw_inputs)
            warm_up_turns = (number > 0) if call_s > SLOW_S else 1 if calls > 1 else 2
            flush = call_s * calls < LONG_BATCH_S
            for _ in range(warm_up_turns):
                _take_turns(programs, draw_inputs, calls, allowed, flush)
            started, turns = time.monotonic(), 0
            round_s = enough_s * len(programs) / 2 / ROUNDS
            while turns < (1 if call_s > SLOW_S else FEWEST_TURNS) or (
                turns < MOST_TURNS and time.monotonic() - started < round_s
            ):
                batches = _take_turns(programs, draw_inputs, calls, allowed, flush)
                for name, batch in batches.items():
                    measurement.times[name].batches.append(batch)
                turns += 1
            measurement.turns_of_rounds.append(turns)
            for name, program in programs.items():
                measurement.times[name].busy_s += program.busy_s
                measurement.times[name].waiting_s += program.waiting_s
        now = time.monotonic()
        if now + (ROUNDS - 1 - number) * (now - round_started) > deadline:
            raise NoTimeError
    measurement.calls = calls
    return measurement


@contextmanager
def _blame(name: str) -> Iterator[None]:
    """Name the program with which something went wrong."""
    try:
        yield
    except (ProgramError, WrongOutput) as error:
        raise _ProgramFault(name, error) from error


def _start_all(stack: ExitStack, starts: Mapping[str, Start]) -> dict[str, ConfinedProgram]:
    """Start all programs in random order: the first one may get other memory than the second.

    Only the one that is measured runs, so that the others cannot slow it down.
    """
    programs: dict[str, ConfinedProgram] = {}
    for name in _shuffle(starts):
        with _blame(name):
            programs[name] = stack.enter_context(starts[name]())
            programs[name].stop()
    return {name: programs[name] for name in starts}


def _plan_batches(
    programs: Mapping[str, ConfinedProgram], draw_inputs: Callable[[], Inputs]
) -> tuple[float, int]:
    """Return the seconds of a call of the slowest program, and the number of calls in a batch."""
    call_s, output_bytes = 0.0, 0
    for name, program in programs.items():
        with _blame(name):
            call_s = max(call_s, _time_call(program, draw_inputs))
            if not output_bytes:
                with program.running():
                    output_bytes = max(1, _count_bytes(program.deliver(1)[0]))
    return call_s, _count_calls(call_s, draw_inputs, output_bytes)


def _take_turns(
    programs: Mapping[str, ConfinedProgram],
    draw_inputs: Callable[[], Inputs],
    calls: int,
    allowed: Mapping[str, float],
    flush: bool,
) -> dict[str, _BatchTimes]:
    """Let all programs run on one batch, in random order; return the times of each."""
    batch = [draw_inputs() for _ in range(calls)]
    chosen = secrets.randbelow(calls)
    seed = secrets.randbelow(1 << 30)
    times: dict[str, _BatchTimes] = {}
    outputs: dict[str, Any] = {}
    for name in _shuffle(programs):
        program = programs[name]
        with _blame(name), program.running():
            place, run_s = program.place(batch, seed, flush=flush), program.run_batch()
            delivered, deliver = program.deliver(calls)
            outputs[name] = delivered[chosen]
        times[name] = _BatchTimes(place, run_s, deliver)
    first, *others = programs
    for name in others:
        with _blame(name):
            _compare_outputs(outputs[first], outputs[name], allowed[name] * _SLACK)
    return times


def _compare_outputs(expected: Any, actual: Any, factor: float) -> None:
    tolerances = {dtype: Tolerance(t.rtol * factor, t.atol * factor) for dtype, t in STEP.items()}
    difference = compare(expected, actual, tolerances)
    if difference.reason:
        raise WrongOutput(f"{difference.reason} (while it was measured, on new inputs)")


def _shuffle(names: Iterable[str]) -> list[str]:
    """Return names in a random order, which no program can know."""
    return sorted(names, key=lambda _: secrets.randbits(64))


def summarize_pairs(
    before_s: Sequence[float], after_s: Sequence[float], pairs_of_rounds: Sequence[int], calls: int
) -> Speed:
    """Return the speed-up with its limits at 95% confidence, as the rounds differ from each other.

    `pairs_of_rounds`: number of pairs in each of the ROUNDS rounds.
    """
    logarithms = [math.log(b / a) for b, a in zip(before_s, after_s, strict=True)]
    middle, half = _estimate_mean(logarithms, pairs_of_rounds)
    return Speed(
        before_s=[_round(seconds) for seconds in before_s],
        after_s=[_round(seconds) for seconds in after_s],
        pairs_of_rounds=list(pairs_of_rounds),
        calls=calls,
        before_median_s=_round(statistics.median(before_s)),
        after_median_s=_round(statistics.median(after_s)),
        speedup=_round(math.exp(middle)),
        lowest=_round(math.exp(middle - half)),
        highest=_round(math.exp(middle + half)),
    )


def _estimate_mean(values: Sequence[float], pairs_of_rounds: Sequence[int]) -> tuple[float, float]:
    """Return the mean of the rounds' medians, and how far it may be off at 95% confidence."""
    medians, first = list[float](), 0
    for pairs in pairs_of_rounds:
        medians.append(statistics.median(values[first : first + pairs]))
        first += pairs
    half = _STUDENTS_T * statistics.stdev(medians) / math.sqrt(len(medians))
    return statistics.fmean(medians), half


def _find_excess(
    before: Sequence[_BatchTimes], after: Sequence[_BatchTimes], pairs_of_rounds: Sequence[int]
) -> float:
    """Return the seconds that the second program works outside of its measured time.

    The processors' time shows what other threads do there. The seconds count if the rounds show
    that there are more than _EXCESS_SHARE of the first program's time.
    """
    least = _EXCESS_SHARE * statistics.median(times.run_s for times in before)
    total = 0.0
    for part in ("place", "deliver"):
        estimates = []
        for clock in ("wall_s", "busy_s"):
            first, second = (
                [getattr(getattr(t, part), clock) for t in times] for times in (before, after)
            )
            longer = [b - a for a, b in zip(first, second, strict=True)]
            estimates.append(_estimate_mean(longer, pairs_of_rounds))
        if any(middle - half > least for middle, half in estimates):
            total += max(middle for middle, _ in estimates)
    return total


def _time_call(program: ConfinedProgram, draw_inputs: Callable[[], Inputs]) -> float:
    """Return the seconds of a call after the first one, which may compile."""
    inputs = draw_inputs()
    for call in range(3):
        with program.running():
            program.place([inputs], seed=0)
            seconds = program.run_batch()
        if call and seconds > SLOW_S:
            break
    return seconds


def _count_calls(call_s: float, draw_inputs: Callable[[], Inputs], output_bytes: int) -> int:
    """Return the number of calls in a batch."""
    size = max(output_bytes, _count_bytes(list(draw_inputs())), 1)
    fitting = max(1, MOST_BATCH_BYTES // size)
    return max(1, min(MOST_CALLS, fitting, round(BATCH_S / max(call_s, 1e-6))))


def _count_bytes(value: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(value))


def _round(seconds: float) -> float:
    return float(f"{seconds:.4g}")
