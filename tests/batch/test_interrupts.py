"""Being told to stop: by a person, who may mean it, and by a scheduler, who always does."""

import os
import signal

import pytest

from runner.batch.interrupts import listening


def test_ctrl_c_asks_first_and_stops_when_it_comes_again_and_then_is_heard_no_more() -> None:
    with listening() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert (stop.asked, stop.now) == (True, False)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.now
        os.kill(os.getpid(), signal.SIGINT)


def test_sigterm_stops_at_once_and_what_follows_does_not_disturb_it() -> None:
    with listening() as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert stop.now
        os.kill(os.getpid(), signal.SIGTERM)


def test_afterwards_signals_are_what_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with listening():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
