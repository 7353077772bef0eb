"""Parses `package.module:Class` and the JSON arguments of `--init`.

`package.module:Class` names a class, a function or a method. In the JSON, an object is written as
`{"package.module:Class": arguments}`; its arguments are a dict by name, a list by position, or null
for the class itself.
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
from runner.problems.packages import is_importable
from runner.problems.problem import find_path

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_TARGET = re.compile(rf"(?P<module>{_DOTTED}):(?P<name>{_DOTTED})")


@dataclass(frozen=True, slots=True)
class PackageTarget:
    """A class or function in a module, `module:Class`, or a method, `module:Class.method`."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True, slots=True)
class ObjectExpression:
    """A target called with arguments; with None instead of arguments, the target itself."""

    target: PackageTarget
    arguments: "Arguments | None"


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of a call: constants, lists, dicts and object expressions."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


def is_target(text: str) -> bool:
    """Return whether a text has the form `package.module:name` and is no existing path."""
    return _TARGET.fullmatch(text) is not None and find_path(text) is None


def parse_target(text: str, prefix: str = "") -> PackageTarget:
    """Return the target that a text names.

    Raises UsageError if the text names none, or its package cannot be imported. `prefix` stands
    before the text in the message.
    """
    match = _TARGET.fullmatch(text)
    if match is None:
        raise UsageError(f"{prefix}{text}: not package.module:Class")
    target = PackageTarget(match["module"], match["name"])
    if any(keyword.iskeyword(part) for part in re.split("[.:]", text)):
        raise UsageError(f"{prefix}{text}: a word of Python's own is no name")
    package = target.module.partition(".")[0]
    if not is_importable(package):
        raise UsageError(
            f"{prefix}{text}: there is no package {package!r}, installed or in {Path.cwd()}",
            hint=f"pip install {package}, or run in the folder that holds {package}/",
        )
    return target


def parse_arguments(text: str) -> Arguments:
    """Return the arguments in the JSON of `--init`; UsageError if it holds none."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"--init: not JSON: {error.msg} ({position})") from None
    except RecursionError:
        raise UsageError("--init: nested too deeply") from None
    resolved = _resolve_objects(value)
    if isinstance(resolved, ObjectExpression):  # a single object is the only positional argument
        return Arguments((resolved,))
    if not isinstance(resolved, dict | list):
        raise UsageError(
            f"--init {text}: neither {{...}} by name nor [...] by position",
            hint='write {"hidden_size": 64}',
        )
    return _to_arguments(resolved, "--init")


def _to_arguments(value: dict[str, Any] | list[Any], prefix: str) -> Arguments:
    if isinstance(value, list):
        return Arguments(tuple(value))
    for name in value:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(
                f"{prefix}: {name!r} is no argument's name",
                hint='an object is written as {"package.module:Class": {...}}',
            )
    return Arguments(named=value)


def _resolve_objects(value: Any) -> Any:
    """Return a JSON value in which each `{"module:Class": arguments}` is an ObjectExpression."""
    if isinstance(value, list):
        return [_resolve_objects(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError("--init: a number is too large")
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and _TARGET.fullmatch(name := next(iter(value))):
        target, arguments = parse_target(name, "--init "), _resolve_objects(value[name])
        if isinstance(arguments, ObjectExpression):
            return ObjectExpression(target, Arguments((arguments,)))
        if arguments is None:
            return ObjectExpression(target, None)
        if not isinstance(arguments, dict | list):
            raise UsageError(
                f"--init {name}: its arguments are {json.dumps(value[name])}",
                hint="write {...} by name, [...] by position, or null for the thing itself",
            )
        return ObjectExpression(target, _to_arguments(arguments, f"--init {name}"))
    return {name: _resolve_objects(item) for name, item in value.items()}


def _refuse_constant(constant: str) -> float:
    raise UsageError(f"--init: {constant} is not JSON")
