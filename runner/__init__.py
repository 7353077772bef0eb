"""kdrun takes PyTorch models apart into kernels at exact shapes, and proves that they recompose."""

import time

__version__ = "0.1.0"
STARTED = time.monotonic()
"""Monotonic time at which this process first imported kdrun; commands measure wall time from it."""
