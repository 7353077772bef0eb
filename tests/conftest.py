"""Every test runs with the settings of no machine in particular."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("KDRUN_"):
            monkeypatch.delenv(name)
