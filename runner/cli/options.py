"""This file knows about what commands share: options, settings, and a console to print on."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

CONFIG = click.option("--config", type=click.Path(path_type=Path), help="A YAML file.")
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
DATA = click.option("--data", type=click.Path(path_type=Path), help="Directory of problems.")
STORE = click.option("--store", help="s3://bucket/prefix, or a directory.")
OUTPUT = click.option(
    "--output", type=click.Path(path_type=Path), help="Where results go; default output/."
)
MODE = click.option("--mode", type=click.Choice(["eval", "train"]), help="Default eval.")
LEVEL = click.option("--level", type=int, multiple=True, help="1, 2 or 3; repeatable.")
PROBLEM = click.option("--problem", multiple=True, help="Glob on names; repeatable.")
ON_CLUSTER = click.option(
    "--on-cluster", help="A Ray cluster's dashboard, such as http://10.0.0.5:8265."
)


def working_options(command: F) -> F:
    """Options of everything that runs a model."""
    for option in reversed(
        (
            click.option("--device", type=click.Choice(["cpu", "cuda", "auto"])),
            click.option("--trials", type=int, help="Seeds for each comparison; default 2."),
            click.option(
                "--power",
                is_flag=True,
                default=None,
                help="Make each kernel wrong, too, and see a comparison fail.",
            ),
            click.option("--timeout", type=float, help="Seconds for one problem; default 1800."),
            click.option("--memory", help="For problems here, as 16GiB; default 85% of free."),
            CONFIG,
            JSON,
        )
    ):
        command = option(command)
    return command


def settings_from(flags: dict[str, Any], config: Path | None) -> Any:
    """Flags over the environment over a file over the defaults."""
    from runner.config import load

    return load({k: v for k, v in flags.items() if v is not None and v != ()}, config)


def new_console(*, stderr: bool = False) -> Any:
    """Where people's output goes."""
    from rich.console import Console

    # Names may hold [brackets]. A pipe has no width: nothing is wrapped for it.
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return Console(stderr=stderr, highlight=False, markup=False, width=width)
