"""Runs a decomposer: an external command that decomposes a problem.

A child process (`run_command`) starts the command in its working directory, with few environment
variables. When the command ends, everything that it started is ended too.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from runner.batch.child.child_process import Request, run_child
from runner.batch.child.fork_server import limit_memory, signal_name
from runner.config import Settings
from runner.errors import UsageError
from runner.store.result import Decomposer, Document, RunOptions

PASSED_VARIABLES = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM")
"""Environment variables that every decomposer gets besides PATH and TMPDIR, where they are set."""
MAX_FILES = 20_000
MAX_BYTES = 1 << 30
"""Bytes that a decomposer may write in its working directory, in at most MAX_FILES files."""
SIZE_CHECK_INTERVAL_S = 1.0
"""Seconds between two checks of the working directory's size."""


class DecomposerCommand(Document):
    """One run of a decomposer's command: the argument of `run_command`."""

    words: list[str]
    directory: Path
    """Working directory of the command."""
    brief: Path
    """File for the command's standard input."""
    environment: dict[str, str]


class CommandOutcome(Document):
    """Description of how a command ended."""

    how: str | None = None
    """Phrase such as `ended with exit code 3`; None exactly when the exit code was 0."""
    started: bool = True
    timed_out: bool = False
    seconds: float = 0.0


def select_decomposer(settings: Settings, flag: str = "--decomposer") -> Decomposer | None:
    """Return the decomposer that the settings name, or None; errors name `flag`.

    Raises:
        UsageError: the command, or a variable to pass on, is missing on this machine, where the
            work is done.
    """
    if settings.decomposer is None:
        if settings.decomposer_on_failure:
            raise UsageError("--decomposer-on-failure: no --decomposer", hint="name its command")
        return None
    for other_flag, is_given in (
        ("--no-verify", not settings.verify),
        ("--unverified", settings.unverified),
    ):
        if is_given:
            raise UsageError(
                f"{other_flag}: what a --decomposer writes is always verified", hint="leave one out"
            )
    if settings.address is None:
        program = shlex.split(settings.decomposer)[0]
        if "{" not in program and shutil.which(program, path=_search_path()) is None:
            raise UsageError(f"{flag}: {program}: not found", hint="is it in PATH?")
        for name in settings.pass_env:
            if name not in os.environ:
                raise UsageError(f"--pass-env {name}: no such variable here", hint="export it")
    return Decomposer(
        command=settings.decomposer,
        on_failure=settings.decomposer_on_failure,
        rounds=settings.rounds,
        pass_env=settings.pass_env,
    )


def verify_flags(options: RunOptions) -> list[str]:
    """Return the flags with which `kdrun verify` judges as these options do, without defaults."""
    flag_values = {"--trials": (options.trials, 2), "--device": (options.device, "cpu")}
    arguments = [
        (name, str(value)) for name, (value, default) in flag_values.items() if value != default
    ]
    return [*(part for pair in arguments for part in pair), *(["--power"] if options.power else [])]


def build_command(
    decomposer: Decomposer, directory: Path, paths: Mapping[str, Path]
) -> DecomposerCommand:
    """Return the command for one problem; `paths` replace `{problem}`, `{output}` and `{brief}`."""
    words = shlex.split(decomposer.command)
    for name, path in paths.items():
        words = [word.replace(f"{{{name}}}", str(path)) for word in words]
    scratch = directory / "tmp"
    scratch.mkdir(exist_ok=True)
    names = (*PASSED_VARIABLES, *decomposer.pass_env)
    environment = {name: os.environ[name] for name in names if name in os.environ}
    environment |= {"PATH": _search_path(), "TMPDIR": str(scratch)}
    return DecomposerCommand(
        words=words, directory=directory, brief=paths["brief"], environment=environment
    )


def run_in_child(
    command: DecomposerCommand, record_directory: Path, log: Path, timeout_s: float
) -> CommandOutcome:
    """Run a command in a child for at most `timeout_s`; its output goes to the log."""
    outcome = run_child(
        Request(
            function="runner.batch.decomposer.decomposer_process:run_command",
            argument=command.model_dump_json(),
            directory=record_directory,
            log=log,
            memory_bytes=1 << 40,  # The child lifts the limit: a command may need a lot of memory.
            timeout_s=timeout_s,
        )
    )
    seconds = round(outcome.seconds, 3)
    if outcome.timed_out:
        end = f"was ended after its {timeout_s:.3g} s"
        return CommandOutcome(how=end, timed_out=True, seconds=seconds)
    if outcome.answer is None:
        return CommandOutcome(how=outcome.describe_end(), seconds=seconds)
    return CommandOutcome.model_validate_json(outcome.answer).model_copy(
        update={"seconds": seconds}
    )


def run_command(argument: str) -> str:
    """Run in the child: start the command, wait for its end, and kill it if it writes too much."""
    command = DecomposerCommand.model_validate_json(argument)
    limit_memory(None)
    with command.brief.open("rb") as brief:
        try:
            process = subprocess.Popen(
                command.words,
                cwd=command.directory,
                env=command.environment,
                stdin=brief,
                start_new_session=True,
            )
        except OSError as error:
            message = f"{command.words[0]}: {(error.strerror or str(error)).lower()}"
            return CommandOutcome(
                how=f"could not be started: {message}", started=False
            ).model_dump_json()
    while True:
        try:
            process.wait(timeout=SIZE_CHECK_INTERVAL_S)
            break
        except subprocess.TimeoutExpired:
            excess = find_excess(command.directory)
        if excess is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return CommandOutcome(how=f"was ended: {excess}").model_dump_json()
    return CommandOutcome(how=_describe_exit_code(process.returncode)).model_dump_json()


def find_excess(directory: Path) -> str | None:
    """Return a phrase if a directory holds too many files or bytes, else None."""
    files = size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                size += os.lstat(f"{folder}/{name}").st_size
            except OSError:  # The file was removed meanwhile.
                continue
            files += 1
    if files > MAX_FILES:
        return f"it wrote more than {MAX_FILES} files"
    return f"it wrote more than {MAX_BYTES >> 20} MiB" if size > MAX_BYTES else None


def _search_path() -> str:
    """Return PATH with this kdrun's folder first, because the brief says to call kdrun."""
    own_folder = str(Path(sys.executable).parent)
    return os.pathsep.join([own_folder, os.environ.get("PATH", os.defpath)])


def _describe_exit_code(code: int) -> str | None:
    if code < 0:
        return f"was killed by {signal_name(-code)}"
    return f"ended with exit code {code}" if code else None
