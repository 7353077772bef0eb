"""This file knows about being stopped: Ctrl-C once, Ctrl-C again, and a scheduler's SIGTERM."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Stop:
    """How far a run is to be stopped."""

    asked: bool = False
    """Finish what runs, and start nothing."""
    now: bool = False
    """KeyboardInterrupt has been raised; what comes after it is not disturbed again."""


@contextmanager
def listening() -> Iterator[Stop]:
    """Ctrl-C asks first and stops when it comes again. SIGTERM stops at once: who sends it, as a
    scheduler does, kills soon after."""
    stop = Stop()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.now:
            return
        if number == signal.SIGTERM or stop.asked:
            stop.now = True
            raise KeyboardInterrupt
        stop.asked = True

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
