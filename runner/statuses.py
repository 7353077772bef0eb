"""How a problem can end. Importing this imports nothing else, which a command's help relies on."""

from typing import Literal, get_args

Status = Literal["passed", "failed", "error", "too_large", "timeout", "crashed", "cancelled"]
"""passed      every gate passed: the only pass
failed      the decomposition is wrong or could not be made: which gate, component, how far
error       the problem file itself is broken: its own message
too_large   needs more memory than the largest node has
timeout     no end within the time limit
crashed     the problem's code ended its process: signal or exit code
cancelled   stopped by a person"""

STATUSES: tuple[Status, ...] = get_args(Status)
