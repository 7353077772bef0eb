"""This file knows about being stopped: Ctrl-C once, Ctrl-C again, and a scheduler's SIGTERM."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from runner.errors import INTERRUPTED

PATIENCE_S = 10.0
"""For a start that was told to end to do so; then this process ends without it."""


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


@contextmanager
def starting(patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Either signal ends what is started here, as KeyboardInterrupt and within seconds.

    Ray's C code waits for its processes without hearing a signal: a thread, which hears of it by
    another way, ends this process when that takes too long, and with it whatever Ray it started.
    Where that code keeps the interpreter, too, as it does until Ray's first server is up (which it
    gives half a minute), the thread has to wait as well. Ray has handlers of its own for SIGTERM,
    which exit with 15, and later with 1; that is told as what it is.
    """
    told = False
    heard, over = threading.Event(), threading.Event()
    hears, tells = os.pipe()
    os.set_blocking(tells, False)

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            raise KeyboardInterrupt

    def watch() -> None:
        while (number := os.read(hears, 1)) and number[0] not in _SIGNALS:
            pass
        if number:
            heard.set()
            if not over.wait(patience_s):
                os.write(2, b"kdrun: interrupted\n")
                os._exit(INTERRUPTED)
        os.close(hears)

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    others = signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except SystemExit as ended:
        if heard.wait(1):
            raise KeyboardInterrupt from ended
        raise
    finally:
        over.set()
        signal.set_wakeup_fd(others)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(tells)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
