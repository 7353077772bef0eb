"""Measures two programs in turn, on the same new inputs, by a clock that neither can reach.

A program gets a batch of inputs that it has never had, a cache without them, and a message to
start; the time ends when its answer is here. If a program takes longer than the other to receive
the inputs, or to deliver the outputs, that is added: it would work there instead. Its outputs are
compared for the very inputs that were timed.
"""

import math
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.evaluate.program import ConfinedProgram, Inputs
from runner.store.evaluation import Speed
from runner.verify.gates.compare import STEP, Tolerance, compare
from runner.verify.runtime.output_leaves import tensors

FEWEST_PAIRS = 6
MOST_PAIRS = 31
FEWEST_CALLS = 2 * (FEWEST_PAIRS + 2)
"""Calls of two slow programs that are measured beside each other."""
ENOUGH_S = 2.0
"""Measuring ends after FEWEST_PAIRS pairs that took this time together."""
BATCH_S = 0.01
"""A batch has as many calls as the slower program makes in about this time."""
MOST_CALLS = 32
MOST_BATCH_BYTES = 128 << 20
WARM_UP_PAIRS = 2
SLOW_S = 1.0
"""A call that takes this long is warm after the first one, and gets no warm-up pairs."""
_SLACK = 16.0
"""Factor of the tolerance for timed calls: they show other work, and not another order of sums."""
_EXCESS_SHARE = 0.25
"""Part of the other program's time from which on slower receiving or delivering is added."""


class WrongOutput(Exception):
    """A program gave wrong outputs while it was measured; the message is the fault."""


@dataclass(slots=True)
class _Times:
    """Seconds that one program took for each batch: to receive, to run, to deliver."""

    place_s: list[float] = field(default_factory=list)
    run_s: list[float] = field(default_factory=list)
    deliver_s: list[float] = field(default_factory=list)


def measure_pairs(
    before: ConfinedProgram,
    after: ConfinedProgram,
    draw_inputs: Callable[[], Inputs],
    *,
    allowed: float,
    enough_s: float = ENOUGH_S,
) -> Speed:
    """Return the times of two programs, which have their weights.

    `allowed`: the difference in tolerances that their outputs may have.

    Raises:
        ProgramError: a program ended or raised an error.
        WrongOutput: the second program's outputs differ from the first one's.
    """
    call_s = max(_time_call(program, draw_inputs) for program in (before, after))
    calls = _count_calls(call_s, draw_inputs)
    warm_up_pairs = 0 if call_s > SLOW_S else WARM_UP_PAIRS
    busy_s, waiting_s = (before.busy_s + after.busy_s), (before.waiting_s + after.waiting_s)
    times = _Times(), _Times()
    factor = allowed * _SLACK
    tolerances = {dtype: Tolerance(t.rtol * factor, t.atol * factor) for dtype, t in STEP.items()}
    started = time.monotonic()
    for pair in range(warm_up_pairs + MOST_PAIRS):
        batch = [draw_inputs() for _ in range(calls)]
        chosen = [secrets.randbelow(calls)]  # The programs learn it when the batch has run.
        outputs: dict[int, list[Any]] = {}
        order = [0, 1] if secrets.randbelow(2) else [1, 0]
        seed = secrets.randbelow(1 << 30)
        for index in order:
            program, record = (before, after)[index], times[index]
            record.place_s.append(program.place(batch))
            record.run_s.append(program.run_batch(seed))
            outputs[index], deliver_s = program.deliver(chosen)
            record.deliver_s.append(deliver_s)
        difference = compare(outputs[0], outputs[1], tolerances)
        if difference.reason:
            raise WrongOutput(f"{difference.reason} (while it was measured, on new inputs)")
        if pair == warm_up_pairs - 1:
            times, started = (_Times(), _Times()), time.monotonic()
        elif pair >= warm_up_pairs + FEWEST_PAIRS - 1 and time.monotonic() - started > enough_s:
            break
    excess = _find_excess(*times)
    before_s = [seconds / calls for seconds in times[0].run_s]
    after_s = [(seconds + excess) / calls for seconds in times[1].run_s]
    speed = summarize_pairs(before_s, after_s, calls)
    busy_s = before.busy_s + after.busy_s - busy_s
    waiting_s = before.waiting_s + after.waiting_s - waiting_s
    if not busy_s:
        return speed
    return speed.model_copy(update={"waiting": _round(waiting_s / (busy_s + waiting_s))})


def summarize_pairs(before_s: Sequence[float], after_s: Sequence[float], calls: int) -> Speed:
    """Return the medians, and the limits of the quotients' median with 95% confidence."""
    quotients = sorted(b / a for b, a in zip(before_s, after_s, strict=True))
    rank = _confidence_rank(len(quotients))
    return Speed(
        before_s=[_round(seconds) for seconds in before_s],
        after_s=[_round(seconds) for seconds in after_s],
        calls=calls,
        before_median_s=_round(statistics.median(before_s)),
        after_median_s=_round(statistics.median(after_s)),
        speedup=_round(statistics.median(quotients)),
        lowest=_round(quotients[rank]),
        highest=_round(quotients[-1 - rank]),
    )


def _confidence_rank(count: int) -> int:
    """Return the rank of the sorted value above which a median lies with 97.5% probability.

    Each value is above the median with probability 1/2 (the sign test); 0 for few values.
    """
    rank, below = 0, 0.0
    while True:
        below += math.comb(count, rank) / 2**count
        if below > 0.025:
            return max(0, rank - 1)
        rank += 1


def _find_excess(before: _Times, after: _Times) -> float:
    """Return the seconds that the second program works outside of its measured time.

    They count if 97.5% of such measurements would show more than _EXCESS_SHARE.
    """
    run_s = statistics.median(before.run_s)
    excess = 0.0
    for first, second in ((before.place_s, after.place_s), (before.deliver_s, after.deliver_s)):
        longer = sorted(b - a for a, b in zip(first, second, strict=True))
        lowest = longer[_confidence_rank(len(longer))]
        if lowest > _EXCESS_SHARE * max(run_s, statistics.median(first)):
            excess += statistics.median(longer)
    return excess


def _time_call(program: ConfinedProgram, draw_inputs: Callable[[], Inputs]) -> float:
    """Return the seconds of a call once the program is warm."""
    inputs = draw_inputs()
    program.place([inputs])
    program.run_batch(0)  # The first call may compile.
    program.place([inputs])
    seconds = program.run_batch(0)
    if seconds < SLOW_S:
        program.place([inputs])
        seconds = program.run_batch(0)
    return seconds


def _count_calls(call_s: float, draw_inputs: Callable[[], Inputs]) -> int:
    """Return the number of calls in a batch."""
    inputs = list(draw_inputs())
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors(inputs))
    fitting = max(1, MOST_BATCH_BYTES // max(size, 1))
    return max(1, min(MOST_CALLS, fitting, round(BATCH_S / max(call_s, 1e-6))))


def _round(seconds: float) -> float:
    return float(f"{seconds:.4g}")
