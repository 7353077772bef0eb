"""Writes docs/settings.md and configs/default.yaml from the settings' fields: `make settings`."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import yaml
from pydantic import BaseModel

from runner.cli.decomposition import submit
from runner.cli.options import format_default
from runner.config import CONFIG_FILE, CONFIG_VARIABLE, PREFIX, Settings

PAGE = Path(__file__).with_name("settings.md")
FILE = PAGE.parents[1] / CONFIG_FILE
WIDTH = 110
HEAD = f"""# Settings

Each setting of `kdrun submit` is a flag, an environment variable and a line in a YAML file. A flag
wins over a variable, and a variable wins over the file. The file is `{CONFIG_FILE}` in the working
directory, or the one that `--config` or `{CONFIG_VARIABLE}` names.

This page is written by `make settings` from `runner/config.py`.

| flag | variable | in the file | default | meaning |
| --- | --- | --- | --- | --- |
"""
FILE_HEAD = f"""Settings of `kdrun`, with their defaults. kdrun reads {CONFIG_FILE} in the working
directory, or the file that --config (or {CONFIG_VARIABLE}) names. A flag takes precedence over a
{PREFIX}* variable, and a variable over this file: --trials 4, {PREFIX}TRIALS=4, trials: 4.
This file is written by `make settings` from runner/config.py."""


def page(settings: type[Settings] = Settings) -> str:
    """Return the whole page."""
    parameters = submit.get_params(click.Context(submit))
    flags = {
        option.name: f"`{'` `'.join([*option.opts, *option.secondary_opts])}`"
        for option in parameters
    }
    rows = [
        f"| {flags.get(name, '')} | `{PREFIX}{name.upper()}` | `{name}` "
        f"| {f'`{default}`' if (default := format_default(field.default)) else ''} "
        f"| {_text(field.description)} |\n"
        for name, field in settings.model_fields.items()
    ]
    return HEAD + "".join(rows)


def file(settings: type[Settings] = Settings) -> str:
    """Return the settings file with every default."""
    return _comment(FILE_HEAD) + "".join(_file_lines(settings))


def _file_lines(settings: type[Settings]) -> Iterator[str]:
    for name, field in settings.model_fields.items():
        yield "\n" + _comment(field.description)
        if not isinstance(field.default, BaseModel):
            default = str(field.default) if isinstance(field.default, Path) else field.default
            yield yaml.safe_dump({name: default})
            continue
        yield f"{name}:\n"
        for part, value in field.default.model_dump().items():
            text = _comment(type(field.default).model_fields[part].description)
            yield textwrap.indent(text + yaml.safe_dump({part: value}), "  ")


def _text(description: str | None) -> str:
    return " ".join(str(description).split())


def _comment(description: str | None) -> str:
    lines = textwrap.wrap(_text(description), WIDTH, initial_indent="# ", subsequent_indent="# ")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    FILE.write_text(file(), encoding="utf-8")
