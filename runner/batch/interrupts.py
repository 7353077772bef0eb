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
class StopRequest:
    """How far a run is to be stopped."""

    is_requested: bool = False
    """Finish what runs, and start nothing."""
    is_immediate: bool = False
    """KeyboardInterrupt has been raised; what comes after it is not disturbed again."""


@contextmanager
def listen_for_signals() -> Iterator[StopRequest]:
    """Ctrl-C asks first and stops when it comes again. SIGTERM stops at once: who sends it, as a
    scheduler does, kills soon after."""
    stop = StopRequest()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.is_immediate:
            return
        if number == signal.SIGTERM or stop.is_requested:
            stop.is_immediate = True
            raise KeyboardInterrupt
        stop.is_requested = True

    previous_handlers = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


@contextmanager
def interruptible_start(patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Either signal ends what is started here, as KeyboardInterrupt and within seconds.

    Ray's C code waits for its processes without hearing a signal: a thread, which hears of it by
    another way, ends this process when that takes too long, and with it whatever Ray it started.
    Where that code keeps the interpreter, too, as it does until Ray's first server is up (which it
    gives half a minute), the thread has to wait as well. Ray has handlers of its own for SIGTERM,
    which exit with 15, and later with 1; that is told as what it is.
    """
    has_raised = False
    signal_arrived, block_ended = threading.Event(), threading.Event()
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal has_raised
        if not has_raised:
            has_raised = True
            raise KeyboardInterrupt

    def watch() -> None:
        while (number := os.read(wakeup_read, 1)) and number[0] not in _SIGNALS:
            pass
        if number:
            signal_arrived.set()
            if not block_ended.wait(patience_s):
                os.write(2, b"kdrun: interrupted\n")
                os._exit(INTERRUPTED)
        os.close(wakeup_read)

    previous_handlers = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    previous_wakeup = signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except SystemExit as exit_request:
        if signal_arrived.wait(1):
            raise KeyboardInterrupt from exit_request
        raise
    finally:
        block_ended.set()
        signal.set_wakeup_fd(previous_wakeup)
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
        os.close(wakeup_write)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
