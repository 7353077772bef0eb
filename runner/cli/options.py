"""Provides the options that commands share, their settings, and a console to print on."""

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import click

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from rich.console import Console

    from runner.config import Settings

Completion = Callable[[click.Context, click.Parameter, str], list[Any]]

_PATH = click.Path(path_type=Path)

JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else."
)
RUN_SETTINGS = ("device", "trials", "power", "timeout", "memory")
"""Settings of all commands that run models."""


class SettingsCommand(click.Command):
    """A command with a flag for each of some settings, and with `--config`.

    The flags are made of the fields of `Settings` when they are first needed, because `kdrun
    --help` does not have the time to import pydantic.
    """

    def __init__(
        self,
        *args: Any,
        settings: Sequence[str] | None,
        completions: Mapping[str, Completion] | None = None,
        help_texts: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Take the names of the settings, None for all, and completions of some in the shell.

        `help_texts`: the help of settings that mean something else for this command.
        """
        super().__init__(*args, **kwargs)
        self._settings, self._completions = settings, completions or {}
        self._help_texts = help_texts or {}
        self._has_flags = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters: flags of settings, `--config`, then the command's own."""
        if not self._has_flags:
            self._has_flags = True
            self.params = [*self._build_options(), *self.params]
        return super().get_params(ctx)

    def _build_options(self) -> Iterator[click.Option]:
        from runner.config import CONFIG_FILE, WITHOUT_FLAG, Settings

        for name, field in Settings.model_fields.items():
            extra = field.json_schema_extra
            if name in self._settings if self._settings is not None else extra != WITHOUT_FLAG:
                option = _build_option(name, field, self._completions.get(name))
                option.help = self._help_texts.get(name, option.help)
                yield option
        yield click.Option(
            ["--config"],
            type=_PATH,
            help=f"YAML file with settings; default {CONFIG_FILE} where it exists.",
        )


def _build_option(name: str, field: "FieldInfo", complete: Completion | None) -> click.Option:
    """Return the flag of a setting; one that is not given is None or empty."""
    from pydantic import BaseModel

    flag = f"--{name.replace('_', '-')}"
    kind, is_list = _value_type(field.annotation)
    options: dict[str, Any] = {}
    if isinstance(field.json_schema_extra, dict):
        options = {"metavar": field.json_schema_extra.get("metavar")}
    if kind is bool:
        names = f"{flag}/--no-{name.replace('_', '-')}" if field.default else flag
        options |= {"is_flag": True}
    else:
        names = flag
        options["type"] = _click_type(kind)
        is_mapping = isinstance(kind, type) and issubclass(kind, BaseModel)
        options["multiple"] = is_list or is_mapping or get_origin(kind) is dict
    sentence = str(field.description).partition("\n")[0].removesuffix(".")
    more = "; repeatable" if options.get("multiple") else ""
    if (default := format_default(field.default)) and kind is not bool:
        more += f"; default {default}"
    return click.Option(
        [names], default=None, help=f"{sentence}{more}.", shell_complete=complete, **options
    )


def _value_type(annotation: Any) -> tuple[Any, bool]:
    """Return the type of a setting's value, or of a list's elements, and whether it is a list."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value_type(arguments[0])
    if origin in (Union, UnionType):
        (kind,) = (argument for argument in arguments if argument is not NoneType)
        return _value_type(kind)
    return (arguments[0], True) if origin is list else (annotation, False)


def _click_type(kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is Path:
        return _PATH
    return {int: click.INT, float: click.FLOAT}.get(kind, click.STRING)


def format_default(default: object) -> str:
    """Return a default as a flag has it; nothing where the setting's text says what it is."""
    if default is None or default in ([], {}):
        return ""
    if hasattr(default, "model_dump"):
        return ", ".join(f"{name}={value}" for name, value in default.model_dump().items())
    return str(default).lower() if isinstance(default, bool) else str(default)


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


def settings_from(flags: dict[str, Any], config: Path | None) -> "Settings":
    """Return the settings from flags, environment, settings file and defaults."""
    from runner.config import load_settings

    return load_settings({k: v for k, v in flags.items() if v is not None and v != ()}, config)


def new_console(*, stderr: bool = False) -> "Console":
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
    from runner.problems.problem import find_mistake, find_path

    file = find_path(problem) if problem is not None else None
    if file is None or not file.is_file() or find_mistake(file) is None:
        start_fork_server()
