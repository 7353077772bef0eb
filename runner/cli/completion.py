"""Completes names in the shell: of problems, and of runs in the output directory."""

from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from runner.cli.options import settings_from
from runner.errors import KdrunError

FILES = CompletionItem("", type="file")
"""Tells the shell to complete file names where nothing else fits."""


def problem_names(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return names of problems, with their level or data set if a `/` was typed."""
    from runner.problems import data_root

    def names(settings: Any) -> Iterator[str]:
        root = data_root(settings.data)
        for data_set in filter(None, (root, root.samples)):
            for file in data_set.files():
                level = file.parent.name
                forms = (f"{level}/{file.stem}", f"{data_set.path.name}/{file.stem}")
                yield from forms if "/" in typed else (file.stem,)

    return [FILES, *_complete_names(ctx, typed, names)]


def run_names(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return names of runs in the output directory."""
    from runner.store.directory import DirectoryStore

    return _complete_names(ctx, typed, lambda settings: DirectoryStore(settings.output).run_ids())


def run_names_or_directories(
    ctx: click.Context, param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Return names of runs, or let the shell complete a directory."""
    return [CompletionItem("", type="dir"), *run_names(ctx, param, typed)]


def _complete_names(ctx: click.Context, typed: str, names: Any) -> list[CompletionItem]:
    flags = {name: ctx.params.get(name) for name in ("data", "output")}
    try:
        candidates = names(settings_from(flags, ctx.params.get("config")))
        return [
            CompletionItem(candidate)
            for candidate in dict.fromkeys(candidates)
            if candidate.lower().startswith(typed.lower())
        ]
    except KdrunError:
        return []
