"""Checks the form of a worker's answers; any other answer is refused and ends the judging.

Checked answers may be written into a program's text (one_operation.py). So every name has to be a
name, and every number a number.
"""

import re
from collections.abc import Callable
from typing import Any

import torch

from runner.verify.guard.wire_format import ConnectionLostError

_NAME = re.compile(r"[A-Za-z_][\w.:]*")
_SCALARS = (type(None), bool, int, float, str)
_MAX_ITEMS = 1 << 20
"""Limit on the items of one list."""
_MAX_MODULES = 20_000


def check_program(program: Any) -> None:
    """Raise ConnectionLostError unless a recording has the form that CallRecorder gives it."""
    keys = {"items", "output", "dtype", "rebound", "again", "kept"}
    _require(isinstance(program, dict) and keys <= program.keys())
    _require(isinstance(getattr(torch, _require_text(program["dtype"]), None), torch.dtype))
    _check_all(program["items"], _check_item)
    check_value(program["output"])
    _check_all(program["rebound"], lambda pair: _require(len(_require_numbers(pair)) == 2))
    _require_numbers(program["kept"])
    _require(isinstance(program["again"], bool))


def check_model(description: Any) -> None:
    """Raise ConnectionLostError unless a model's description has the form that Worker gives it."""
    keys = {"model", "modules", "weights", "computed"}
    _require(isinstance(description, dict) and keys <= description.keys())
    _require_number(description["model"])
    _check_all(description["modules"], _check_module)
    _require(len(description["modules"]) <= _MAX_MODULES)
    _check_all(description["weights"], _check_weight)
    _check_all(
        description["computed"], lambda pair: _require(len(list(map(_require_text, pair))) == 2)
    )


def check_value(value: Any) -> None:
    """Raise ConnectionLostError unless a value has the form that `encode` gives it."""
    if type(value) in _SCALARS:
        return
    if isinstance(value, list):
        _check_all(value, check_value)
        return
    _require(isinstance(value, dict) and len(value) == 1)
    ((kind, content),) = value.items()
    match kind:
        case "t":
            _require_number(content)
        case "z":
            _require_numbers(content)
        case "u" | "s":
            _check_all(content, check_value)
        case "d":
            _check_all(content, _check_pair)
        case "c":
            _require(isinstance(content, list) and len(content) == 2)
            _require(all(type(part) in (int, float) for part in content))
        case "e":
            pass
        case "g" | "v" | "k":
            _require(re.fullmatch(r"[\w.:]*", _require_text(content)) is not None)
        case _:
            _require(False)


def _check_item(item: Any) -> None:
    _require(isinstance(item, list) and bool(item))
    match item:
        case ["leave", value]:
            check_value(value)
        case ["enter", path, args, kwargs]:
            _require_text(path)
            _check_arguments(args, kwargs)
        case ["gone", numbers]:
            _require_numbers(numbers)
        case ["given", number, place]:
            _require_numbers([number, place])
        case ["alias", number, base, shape, stride, offset, dtype, conj, neg]:
            _require_numbers(
                [number, base, offset, *_require_numbers(shape), *_require_numbers(stride)]
            )
            _require(isinstance(getattr(torch, _require_text(dtype), None), torch.dtype))
            _require(isinstance(conj, bool) and isinstance(neg, bool))
        case ["function" | "operation", name, args, kwargs, result, line, *calls]:
            _require(_NAME.fullmatch(_require_text(name)) is not None)
            _check_arguments(args, kwargs)
            check_value(result)
            _require_text(line)
            for lines in calls:
                _check_all(lines, _require_text)
        case _:
            _require(False)


def _check_arguments(args: Any, kwargs: Any) -> None:
    check_value(args)
    check_value(kwargs)
    _require(isinstance(args, dict) and "u" in args and isinstance(kwargs, dict) and "d" in kwargs)
    for key, _ in kwargs["d"]:
        _require(isinstance(key, str) and key.isidentifier())


def _check_pair(pair: Any) -> None:
    _require(isinstance(pair, list) and len(pair) == 2)
    _check_all(pair, check_value)


def _check_module(module: Any) -> None:
    _require(isinstance(module, list) and len(module) == 5)
    path, first, file, own_forward, settings = module
    _require_text(path), _require_text(first)
    _require(file is None or isinstance(file, str))
    _require(isinstance(own_forward, bool))
    _check_all(settings, lambda pair: _require(len(list(map(_require_text, pair))) == 2))


def _check_weight(weight: Any) -> None:
    _require(isinstance(weight, list) and len(weight) == 4)
    kind, keys, is_persistent, number = weight
    _require(kind in {"parameter", "buffer", "plain"} and isinstance(keys, list) and bool(keys))
    _check_all(keys, _require_text)
    _require(isinstance(is_persistent, bool))
    _require_number(number)


def _check_all(values: Any, check: Callable[[Any], object]) -> None:
    _require(isinstance(values, list) and len(values) <= _MAX_ITEMS)
    for value in values:
        check(value)


def _require_numbers(values: Any) -> list[int]:
    _require(isinstance(values, list))
    return [_require_number(value) for value in values]


def _require_number(value: Any) -> int:
    _require(type(value) is int)
    number: int = value
    return number


def _require_text(value: Any) -> str:
    _require(type(value) is str)
    text: str = value
    return text


def _require(condition: bool) -> None:
    if not condition:
        raise ConnectionLostError("what has another form than a claim")
