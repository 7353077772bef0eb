"""Provides the options that commands share, their settings, and a console to print on."""

import difflib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_PATH = click.Path(path_type=Path)

CONFIG = click.option(
    "--config",
    type=_PATH,
    help="YAML file with settings; default configs/default.yaml where it exists.",
)
JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else."
)
DATA = click.option(
    "--data",
    type=_PATH,
    help="Directory of problems; default data/kernelbench/ where it exists, else the samples.",
)
STORE = click.option(
    "--store", help="Store to send results to: s3://bucket/prefix or a directory; default none."
)
STORE_TO_READ = click.option(
    "--store", help="Store to read results from: s3://bucket/prefix or a directory; default none."
)
OUTPUT = click.option(
    "--output", type=_PATH, help="Directory to write results to; default output/."
)
OUTPUT_TO_READ = click.option(
    "--output", type=_PATH, help="Directory with results to read; default output/."
)
MODE = click.option(
    "--mode",
    type=click.Choice(["eval", "train"]),
    help="Run models in eval() or in training mode; default eval.",
)
LEVEL = click.option(
    "--level", type=int, multiple=True, help="Source level: 1, 2 or 3; repeatable; default all."
)
PROBLEM = click.option(
    "--problem", multiple=True, help="Name or glob of problems; repeatable; default all."
)
DEVICE = click.option(
    "--device",
    help="Device to verify on: cpu, a type of accelerator such as cuda, or auto; default cpu.",
)


class _DecompositionType(click.Path):
    """Parameter type of a decomposition's directory; its errors suggest other directories."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        from runner.tree.document import TREE_FILE

        try:
            directory = Path(str(super().convert(value, param, ctx)))
        except click.BadParameter as error:
            by_name = {
                path.name.lower(): path
                for path in _find_decompositions(settings_from({}, None).output)
            }
            similar = difflib.get_close_matches(Path(value).name.lower(), by_name, n=1)
            if Path(value).exists() or not similar:
                raise
            self.fail(f"{error.message.rstrip('.')}; is it {by_name[similar[0]]}?", param, ctx)
        if not (directory / TREE_FILE).exists() and (
            decompositions := _find_decompositions(directory)
        ):
            names = " or ".join(map(str, decompositions[:2]))
            self.fail(f"{directory} is a folder of decompositions; name one: {names}", param, ctx)
        return directory


def _find_decompositions(folder: Path) -> list[Path]:
    """Return the decompositions in a level folder, or in an output directory's level folders."""
    from runner.tree.document import TREE_FILE

    trees = sorted([*folder.glob(f"*/{TREE_FILE}"), *folder.glob(f"*/*/{TREE_FILE}")])
    return [tree.parent for tree in trees if not tree.parent.name.startswith(".")]


DECOMPOSITION = _DecompositionType(exists=True, file_okay=False, path_type=Path)


def working_options(command: F) -> F:
    """Add the options that all commands share that run models."""
    for option in reversed(
        (
            DEVICE,
            click.option("--trials", type=int, help="Seeds for each comparison; default 2."),
            click.option(
                "--power",
                is_flag=True,
                default=None,
                help="Also break each kernel on purpose, and check that a comparison fails.",
            ),
            click.option("--timeout", type=float, help="Seconds for each problem; default 1800."),
            click.option(
                "--memory",
                help="Memory for problems on this machine, as 16GiB; default 85% of what is free.",
            ),
            CONFIG,
            JSON,
        )
    ):
        command = option(command)
    return command


def settings_from(flags: dict[str, Any], config: Path | None) -> Any:
    """Return the settings from flags, environment, settings file and defaults."""
    from runner.config import load_settings

    return load_settings({k: v for k, v in flags.items() if v is not None and v != ()}, config)


def new_console(*, stderr: bool = False) -> Any:
    """Return a console for output to people, on stdout or stderr."""
    from rich.console import Console

    # Markup is off because names may hold [brackets]. A pipe has no width: 200 avoids wrapping.
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return Console(stderr=stderr, highlight=False, markup=False, width=width)


def start_child_server(problem: str | None = None) -> None:
    """Start the process that imports torch, so that it does so while this one imports the rest.

    It is not started for a problem file with a mistake in its text: reporting that needs no torch.
    """
    from runner.batch.child.child_process import start_fork_server
    from runner.problems import find_mistake, find_path

    file = find_path(problem) if problem is not None else None
    if file is None or not file.is_file() or find_mistake(file) is None:
        start_fork_server()
