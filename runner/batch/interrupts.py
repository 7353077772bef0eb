"""Handles signals that stop a run: Ctrl-C once, Ctrl-C again, and a scheduler's SIGTERM."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from runner.errors import INTERRUPTED

PATIENCE_S = 10.0
"""Seconds that an interrupted start of Ray gets to end; then this process ends itself."""


@dataclass(slots=True)
class StopRequest:
    """State of a request to stop a run."""

    is_requested: bool = False
    """Whether the run was asked to stop: running problems finish, and no other is started."""
    interrupt_raised: bool = False
    """Whether KeyboardInterrupt has been raised; later signals are ignored."""


@contextmanager
def listen_for_signals() -> Iterator[StopRequest]:
    """Handle signals and yield the request to stop.

    The first Ctrl-C lets running problems finish, the second raises KeyboardInterrupt. SIGTERM
    raises it at once, because a scheduler kills the process soon after sending it.
    """
    stop = StopRequest()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.interrupt_raised:
            return
        if number == signal.SIGTERM or stop.is_requested:
            stop.interrupt_raised = True
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
    """Let Ctrl-C or SIGTERM interrupt the start of Ray within seconds, as KeyboardInterrupt.

    Ray's C code waits for its processes without handling signals. So a thread, which learns of the
    signal through a pipe, ends this process after `patience_s`, and with it the Ray that it
    started. Until Ray's first server is up, for which Ray allows half a minute, the C code also
    holds the interpreter lock, and the thread has to wait. Ray's own handlers for SIGTERM exit with
    code 15 or 1; such an exit becomes KeyboardInterrupt, too.
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
