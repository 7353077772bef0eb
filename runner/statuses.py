"""Defines the statuses that a problem can end with.

This module imports nothing of kdrun, so that a command's help stays fast.
"""

from typing import Literal, get_args

Status = Literal[
    "passed", "written", "failed", "error", "too_large", "timeout", "crashed", "cancelled"
]
"""Status of a problem that has ended:

passed      every gate passed
written     all files were written, and none was verified, as the user asked
failed      the decomposition is wrong or could not be made
error       the problem file itself is broken
too_large   the problem needs more memory than the largest node has
timeout     the problem did not end within the time limit
crashed     the problem's code ended its process, by a signal or an exit code
cancelled   a person stopped the run"""

STATUSES: tuple[Status, ...] = get_args(Status)
