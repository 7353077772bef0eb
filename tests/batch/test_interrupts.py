"""Being told to stop: by a person, who may mean it, and by a scheduler, who always does."""

import os
import signal
import subprocess
import sys

import pytest

from runner.batch.interrupts import interruptible_start, listen_for_signals


def test_ctrl_c_asks_first_and_stops_when_it_comes_again_and_then_is_heard_no_more() -> None:
    with listen_for_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert (stop.is_requested, stop.interrupt_raised) == (True, False)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.interrupt_raised
        os.kill(os.getpid(), signal.SIGINT)


def test_sigterm_stops_at_once_and_what_follows_does_not_disturb_it() -> None:
    with listen_for_signals() as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert stop.interrupt_raised
        os.kill(os.getpid(), signal.SIGTERM)


def test_afterwards_signals_are_what_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with listen_for_signals():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


STUCK = """
import ctypes
from runner.batch.interrupts import interruptible_start
library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
library.pthread_mutex_lock(mutex)
with interruptible_start(patience_s=0.2):
    while True:
        try:
            print("stuck", flush=True)
            library.pthread_mutex_lock(mutex)  # for ever, and no signal wakes it
        except KeyboardInterrupt:  # which came before that
            pass
"""
WITH_A_HANDLER = """
import os, signal, sys
from runner.batch.interrupts import interruptible_start
before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
try:
    with interruptible_start():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ray has one
        os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_hears_no_signal_ends_with_its_process(number: signal.Signals) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "stuck\n"
    run.send_signal(number)
    _, err = run.communicate(timeout=180)
    assert (run.returncode, err) == (130, "kdrun: interrupted\n")


def test_a_signal_is_told_as_one_whoever_else_has_a_handler_for_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_A_HANDLER], capture_output=True, text=True, timeout=180
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_a_start_that_ends_before_a_signal_comes_leaves_all_as_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with interruptible_start():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    with pytest.raises(SystemExit), interruptible_start():
        sys.exit(3)
