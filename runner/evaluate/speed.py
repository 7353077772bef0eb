"""Measures two programs in turn, on the same new inputs, by a clock that neither can reach.

A program gets a batch of inputs that it has never had, a cache without them, and a message to
start; the time ends when its answer is here. If a program takes longer than the other to receive
the inputs, or to deliver the outputs, that is added: it would work there instead. Its outputs are
compared for the very inputs that were timed: it delivers all of them, and does not know which ones
are looked at, so that none can be computed later.

Where in memory a process has its weights and code makes it faster or slower by some percent, for
as long as it lives. So both programs are started anew several times, and the limits of a speed-up
come from how these rounds differ.
"""

import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

from runner.evaluate.program import ConfinedProgram, Duration, Inputs, ProgramError
from runner.store.evaluation import Speed
from runner.verify.gates.compare import STEP, Tolerance, compare
from runner.verify.runtime.output_leaves import tensors

ROUNDS = 4
"""Number of times that both programs are started anew."""
_STUDENTS_T = 3.182
"""Student's t for 95% confidence with ROUNDS - 1 degrees of freedom."""
FEWEST_CALLS = 2 * (2 * ROUNDS + 1)
"""Calls of two slow programs that are measured beside each other."""
ENOUGH_S = 2.0
"""Seconds of measured pairs in all rounds together, if each has FEWEST_PAIRS pairs."""
FEWEST_PAIRS = 2
MOST_PAIRS = 8
"""Most pairs of a round."""
BATCH_S = 0.05
"""A batch has as many calls as the slower program makes in about this time."""
LONG_BATCH_S = 0.2
"""Batches from this time on leave caches as they are: what is in them saves two milliseconds."""
MOST_CALLS = 32
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


def measure_pairs(
    start_before: Start,
    start_after: Start,
    draw_inputs: Callable[[], Inputs],
    *,
    allowed: float,
    deadline: float,
    enough_s: float = ENOUGH_S,
) -> Speed:
    """Return the times of two programs.

    `allowed`: the difference in tolerances that their outputs may have. `deadline`: on the
    monotonic clock.

    Raises:
        BaselineError: the first program ended or raised an error.
        NoTimeError: the rounds after the first would end too late.
        ProgramError: the second program ended or raised an error.
        WrongOutput: the second program's outputs differ from the first one's.
    """
    before_times, after_times = list[_BatchTimes](), list[_BatchTimes]()
    pairs_of_rounds: list[int] = []
    call_s, calls, busy_s, waiting_s = 0.0, 0, 0.0, 0.0
    for number in range(ROUNDS):
        round_started = time.monotonic()
        with ExitStack() as stack:
            before, after = programs = _start_both(stack, start_before, start_after)
            if not number:
                with _blame_baseline():
                    call_s = _time_call(before, draw_inputs)
                    with before.running():
                        output_bytes = _count_bytes(before.deliver(1)[0])
                call_s = max(call_s, _time_call(after, draw_inputs))
                calls = _count_calls(call_s, draw_inputs, output_bytes)
            warm_up_pairs = (number > 0) if call_s > SLOW_S else 1 if calls > 1 else 2
            flush = call_s * calls < LONG_BATCH_S
            for _ in range(warm_up_pairs):
                _run_pair(programs, draw_inputs, calls, allowed, flush)
            started, pairs = time.monotonic(), 0
            while pairs < (1 if call_s > SLOW_S else FEWEST_PAIRS) or (
                pairs < MOST_PAIRS and time.monotonic() - started < enough_s / ROUNDS
            ):
                pair = _run_pair(programs, draw_inputs, calls, allowed, flush)
                before_times.append(pair[0])
                after_times.append(pair[1])
                pairs += 1
            pairs_of_rounds.append(pairs)
            busy_s += before.busy_s + after.busy_s
            waiting_s += before.waiting_s + after.waiting_s
        now = time.monotonic()
        if now + (ROUNDS - 1 - number) * (now - round_started) > deadline:
            raise NoTimeError
    excess = _find_excess(before_times, after_times, pairs_of_rounds)
    before_s = [times.run_s / calls for times in before_times]
    after_s = [(times.run_s + excess) / calls for times in after_times]
    speed = summarize_pairs(before_s, after_s, pairs_of_rounds, calls)
    if not busy_s:
        return speed
    return speed.model_copy(update={"waiting": _round(waiting_s / (busy_s + waiting_s))})


@contextmanager
def _blame_baseline() -> Iterator[None]:
    try:
        yield
    except ProgramError as error:
        raise BaselineError(str(error)) from error


def _start_both(
    stack: ExitStack, start_before: Start, start_after: Start
) -> tuple[ConfinedProgram, ConfinedProgram]:
    """Start both programs in random order: the first one may get other memory than the second.

    Only the one that is measured runs, so that the other one cannot slow it down.
    """
    starts = [start_before, start_after]
    programs: dict[int, ConfinedProgram] = {}
    for index in [0, 1] if secrets.randbelow(2) else [1, 0]:
        with nullcontext() if index else _blame_baseline():
            programs[index] = stack.enter_context(starts[index]())
            programs[index].stop()
    return programs[0], programs[1]


def _run_pair(
    programs: tuple[ConfinedProgram, ConfinedProgram],
    draw_inputs: Callable[[], Inputs],
    calls: int,
    allowed: float,
    flush: bool,
) -> tuple[_BatchTimes, _BatchTimes]:
    """Let both programs run on one batch; return the times of each."""
    batch = [draw_inputs() for _ in range(calls)]
    chosen = secrets.randbelow(calls)
    seed = secrets.randbelow(1 << 30)
    times: dict[int, _BatchTimes] = {}
    outputs: dict[int, Any] = {}
    for index in [0, 1] if secrets.randbelow(2) else [1, 0]:
        program = programs[index]
        with nullcontext() if index else _blame_baseline(), program.running():
            place, run_s = program.place(batch, seed, flush=flush), program.run_batch()
            delivered, deliver = program.deliver(calls)
            outputs[index] = delivered[chosen]
        times[index] = _BatchTimes(place, run_s, deliver)
    factor = allowed * _SLACK
    tolerances = {dtype: Tolerance(t.rtol * factor, t.atol * factor) for dtype, t in STEP.items()}
    difference = compare(outputs[0], outputs[1], tolerances)
    if difference.reason:
        raise WrongOutput(f"{difference.reason} (while it was measured, on new inputs)")
    return times[0], times[1]


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
