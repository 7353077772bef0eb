"""This file knows about being sent: `python -m runner.batch.remote.job_entry` is a job's command.

It runs on the cluster, in the folder that `parcel.py` packed. Who sent it reads what it prints; a
line that begins with `kdrun: ` says why it ended before its end. What that Python may lack is
imported inside.
"""

import sys
from pathlib import Path

FAILURE_PREFIX = "kdrun: "


def main(folder: Path) -> int:
    """Drive the run that the folder tells of; the exit code is that of `kdrun submit`."""
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
    except KeyboardInterrupt:  # before there was anything to stop
        return 130


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
