"""This file knows about what is named in a package, and from what it is built.

`package.module:Class` names a class, a function or a method. Its arguments are JSON, in which an
object is `{"package.module:Class": arguments}`: a dict by name, a list by position, or null for
the class itself.
"""

import json
import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.errors import UsageError
from runner.problems.packages import is_here
from runner.problems.problem import find_path

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_TARGET = re.compile(rf"(?P<module>{_DOTTED}):(?P<name>{_DOTTED})")


@dataclass(frozen=True, slots=True)
class Target:
    """`package.module:Class`, a function instead of a class, or a method, `module:Class.method`."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True, slots=True)
class Made:
    """An object among arguments: a target called with arguments, or (None) the target itself."""

    target: Target
    arguments: "Arguments | None"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What something is called with: constants, lists, dicts, and objects that are made."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


def is_target(text: str) -> bool:
    """Whether a text names something in a package, and no file that there is."""
    return _TARGET.fullmatch(text) is not None and find_path(text) is None


def parse_target(text: str, where: str = "") -> Target:
    """What a text names. UsageError where it names nothing, or its package is not here."""
    match = _TARGET.fullmatch(text)
    if match is None:
        raise UsageError(f"{where}{text}: not package.module:Class")
    target = Target(match["module"], match["name"])
    if any(keyword.iskeyword(part) for part in re.split("[.:]", text)):
        raise UsageError(f"{where}{text}: a word of Python's own is no name")
    package = target.module.partition(".")[0]
    if not is_here(package):
        raise UsageError(
            f"{where}{text}: there is no package {package!r}, installed or in {Path.cwd()}",
            hint=f"pip install {package}, or run in the folder that holds {package}/",
        )
    return target


def parse_arguments(text: str) -> Arguments:
    """What `--init` says. UsageError where that cannot be meant."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"--init: not JSON: {error.msg} ({where})") from None
    except RecursionError:
        raise UsageError("--init: nested too deeply") from None
    made = _value(value)
    if isinstance(made, Made):  # the only argument, without its name
        return Arguments((made,))
    if not isinstance(made, dict | list):
        raise UsageError(
            f"--init {text}: neither {{...}} by name nor [...] by position",
            hint='write {"hidden_size": 64}',
        )
    return _called_with(made, "--init")


def _called_with(value: dict[str, Any] | list[Any], where: str) -> Arguments:
    if isinstance(value, list):
        return Arguments(tuple(value))
    for name in value:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(
                f"{where}: {name!r} is no argument's name",
                hint='an object is written as {"package.module:Class": {...}}',
            )
    return Arguments(named=value)


def _value(value: Any) -> Any:
    """What JSON says, `{"package.module:Class": arguments}` being an object."""
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError("--init: a number is too large")
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and _TARGET.fullmatch(name := next(iter(value))):
        target, given = parse_target(name, "--init "), _value(value[name])
        if isinstance(given, Made):
            return Made(target, Arguments((given,)))
        if given is None:
            return Made(target, None)
        if not isinstance(given, dict | list):
            raise UsageError(
                f"--init {name}: its arguments are {json.dumps(value[name])}",
                hint="write {...} by name, [...] by position, or null for the thing itself",
            )
        return Made(target, _called_with(given, f"--init {name}"))
    return {name: _value(item) for name, item in value.items()}


def _no_constant(said: str) -> float:
    raise UsageError(f"--init: {said} is not JSON")
