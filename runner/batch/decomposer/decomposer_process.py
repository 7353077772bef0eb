"""This file knows about a decomposer: a command of somebody else's that takes a problem apart.

It runs in a child of its own (`run_command` is that child's work), in a working directory, with few
environment variables, and everything that it started is ended with it.
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
from runner.batch.child.fork_server import limit_memory
from runner.config import Settings
from runner.errors import UsageError
from runner.store.result import Decomposer, Document, RunOptions

USUAL = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM")
"""Environment variables that every decomposer gets, besides PATH and TMPDIR."""
MOST_FILES = 20_000
MOST_BYTES = 1 << 30
"""In its working directory."""
LOOK_S = 1.0
"""How often that is looked at."""


class Command(Document):
    """One run of a decomposer's command, as its child is told it."""

    words: list[str]
    directory: Path
    """Its working directory."""
    brief: Path
    """On its standard input."""
    environment: dict[str, str]


class Ended(Document):
    """How a command ended."""

    how: str | None = None
    """In a few words; absent exactly where it was with exit code 0."""
    started: bool = True
    timed_out: bool = False
    seconds: float = 0.0


def chosen(settings: Settings) -> Decomposer | None:
    """The decomposer that the settings name.

    Raises:
        UsageError: it, or a variable that it is to get, is not here where the work is done here.
    """
    if settings.decomposer is None:
        if settings.decomposer_on_failure:
            raise UsageError("--decomposer-on-failure: no --decomposer", hint="name its command")
        return None
    if settings.address is None and settings.on_cluster is None:
        program = shlex.split(settings.decomposer)[0]
        if "{" not in program and shutil.which(program, path=_path()) is None:
            raise UsageError(f"--decomposer: {program}: not found", hint="is it in PATH?")
        for name in settings.pass_env:
            if name not in os.environ:
                raise UsageError(f"--pass-env {name}: no such variable here", hint="export it")
    return Decomposer(
        command=settings.decomposer,
        on_failure=settings.decomposer_on_failure,
        rounds=settings.rounds,
        pass_env=settings.pass_env,
    )


def flags(options: RunOptions) -> list[str]:
    """What `kdrun verify` is told, to judge as these options do."""
    said = {"--trials": (options.trials, 2), "--device": (options.device, "cpu")}
    given = [(name, str(value)) for name, (value, usual) in said.items() if value != usual]
    return [*(part for pair in given for part in pair), *(["--power"] if options.power else [])]


def command(decomposer: Decomposer, directory: Path, places: Mapping[str, Path]) -> Command:
    """What is run for one problem; `places` are what is put for `{problem}` and the others."""
    words = shlex.split(decomposer.command)
    for name, place in places.items():
        words = [word.replace(f"{{{name}}}", str(place)) for word in words]
    scratch = directory / "tmp"
    scratch.mkdir(exist_ok=True)
    wanted = (*USUAL, *decomposer.pass_env)
    environment = {name: os.environ[name] for name in wanted if name in os.environ}
    environment |= {"PATH": _path(), "TMPDIR": str(scratch)}
    return Command(words=words, directory=directory, brief=places["brief"], environment=environment)


def run(what: Command, aside: Path, log: Path, timeout_s: float) -> Ended:
    """Run a command to its end, or to the end of its time; what it printed is in the log."""
    outcome = run_child(
        Request(
            function="runner.batch.decomposer.decomposer_process:run_command",
            argument=what.model_dump_json(),
            directory=aside,
            log=log,
            memory_bytes=1 << 40,  # its child lifts the limit: a program's own may be large
            timeout_s=timeout_s,
        )
    )
    seconds = round(outcome.seconds, 3)
    if outcome.timed_out:
        how = f"was ended after its {timeout_s:.3g} s"
        return Ended(how=how, timed_out=True, seconds=seconds)
    if outcome.answer is None:
        return Ended(how=outcome.how(), seconds=seconds)
    return Ended.model_validate_json(outcome.answer).model_copy(update={"seconds": seconds})


def run_command(argument: str) -> str:
    """In the child: start the command, wait for it, and look at how much it writes."""
    what = Command.model_validate_json(argument)
    limit_memory(None)
    with what.brief.open("rb") as brief:
        try:
            process = subprocess.Popen(
                what.words,
                cwd=what.directory,
                env=what.environment,
                stdin=brief,
                start_new_session=True,
            )
        except OSError as error:
            said = f"{what.words[0]}: {(error.strerror or str(error)).lower()}"
            return Ended(how=f"could not be started: {said}", started=False).model_dump_json()
    while True:
        try:
            process.wait(timeout=LOOK_S)
            break
        except subprocess.TimeoutExpired:
            fault = too_much(what.directory)
        if fault is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Ended(how=f"was ended: {fault}").model_dump_json()
    return Ended(how=_how(process.returncode)).model_dump_json()


def too_much(directory: Path) -> str | None:
    """What a directory has too much of, or None."""
    files = size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                size += os.lstat(f"{folder}/{name}").st_size
            except OSError:  # gone meanwhile
                continue
            files += 1
    if files > MOST_FILES:
        return f"it wrote more than {MOST_FILES} files"
    return f"it wrote more than {MOST_BYTES >> 20} MiB" if size > MOST_BYTES else None


def _path() -> str:
    """PATH, and before it where this kdrun is: the brief says to call it."""
    here = str(Path(sys.executable).parent)
    return os.pathsep.join([here, os.environ.get("PATH", os.defpath)])


def _how(code: int) -> str | None:
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}" if code else None
