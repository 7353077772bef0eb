"""Defines the commands of `kdrun`: they parse arguments, call other packages, and print.

A command imports what it needs inside its function, so that `kdrun --help` loads neither torch nor
Ray.
"""

import os
import signal
import sys
from types import FrameType

import click

from runner import __version__
from runner.cli.datasets import data
from runner.cli.decomposition import decompose, prompt, submit, verify
from runner.cli.evaluation import evaluate
from runner.cli.help import Group, examples
from runner.cli.machine import doctor
from runner.cli.reports import diff, report, show, workloads
from runner.cli.runs import logs, pull, status
from runner.cli.zoo import zoo
from runner.errors import INTERRUPTED, KdrunError, denies_access, is_disk_full

__all__ = ["cli", "main"]


def main() -> None:
    """Run the command `kdrun`; an error is printed as one line on stderr and sets the exit code."""
    signal.signal(signal.SIGTERM, _handle_sigterm)
    try:
        code = cli.main(prog_name="kdrun", standalone_mode=False)
    except click.ClickException as error:
        _fail(error.format_message())
        code = error.exit_code
    except KdrunError as error:
        _fail(str(error))
        code = error.exit_code
    except OSError as error:
        if error.filename is not None and denies_access(error):
            _fail(f"{error.filename}: {error.strerror}")
        elif is_disk_full(error) and _stdout_fails():
            _fail(f"stdout: {error.strerror}")
        else:
            raise
        code = KdrunError.exit_code
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted")
        code = INTERRUPTED
    sys.exit(code)


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "kdrun decompose vit_block            # a sample; any file in KernelBench format will do",
        "kdrun submit --level 2               # a whole level, on a Ray that kdrun starts",
        "kdrun COMMAND --help                 # its options, with examples",
    ),
)
@click.version_option(__version__, prog_name="kdrun", message="%(prog)s %(version)s")
def cli() -> None:
    """Take PyTorch models apart into kernels at their exact shapes, and prove the parts.

    Exit codes: 0 every problem passed, 1 at least one did not, 2 wrong usage or configuration,
    130 interrupted.
    """


cli.add_sections(
    {
        "Run": (decompose, submit, prompt),
        "Judge": (verify, evaluate, diff),
        "Look at results": (status, logs, show, report, workloads),
        "Data": (data, zoo, pull),
        "Deploy": (doctor,),
    }
)


def _handle_sigterm(number: int, frame: FrameType | None) -> None:
    """Let SIGTERM end a command as Ctrl-C does, with all clean-up.

    In a container the command may be the first process, for which the kernel ignores signals
    without a handler.
    """
    raise KeyboardInterrupt


def _stdout_fails() -> bool:
    """Return whether writing to stdout fails, and in that case redirect it to /dev/null."""
    try:
        click.echo()
    except OSError:
        # Otherwise Python would fail again at exit, when it flushes the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _fail(message: str) -> None:
    click.echo(f"kdrun: {message}", err=True)
