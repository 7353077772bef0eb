"""kdrun takes PyTorch models apart into kernels at exact shapes, and proves that they recompose."""

import time

__version__ = "0.1.0"
STARTED = time.monotonic()
"""When this process first imported kdrun; a command's wall time counts from here."""
