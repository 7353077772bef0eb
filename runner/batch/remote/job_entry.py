"""Defines a Ray job's command on the cluster: `python -m runner.batch.remote.job_entry`.

It runs in the folder that `job_package.py` made. The sender reads its output; a line that begins
with `kdrun: ` is the reason why it failed. Packages that the cluster's Python may lack are imported
inside the function.
"""

import sys
from pathlib import Path

FAILURE_PREFIX = "kdrun: "


def main(folder: Path) -> int:
    """Drive the run that the folder describes; return the exit code that `kdrun submit` would."""
    try:
        from runner.batch.remote.job_run import drive_sent_run
        from runner.errors import KdrunError
    except ImportError as error:
        message = f"its nodes need what kdrun needs, as its image has: {error}"
        print(f"{FAILURE_PREFIX}{message}", file=sys.stderr, flush=True)
        return 2
    try:
        return 0 if drive_sent_run(folder).all_passed else 1
    except KdrunError as error:
        print(f"{FAILURE_PREFIX}{error}", file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:  # It came before the driver had started.
        return 130


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
