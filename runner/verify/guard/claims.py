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
_PLAIN = (type(None), bool, int, float, str)
_MOST = 1 << 20
"""Limit on the items of one list."""
_MOST_MODULES = 20_000


def check_program(program: Any) -> None:
    """Raise ConnectionLostError unless a recording has the form that CallRecorder gives it."""
    keys = {"items", "output", "dtype", "rebound", "again", "kept"}
    _that(isinstance(program, dict) and keys <= program.keys())
    _that(isinstance(getattr(torch, _text(program["dtype"]), None), torch.dtype))
    _each(program["items"], _item)
    check_value(program["output"])
    _each(program["rebound"], lambda pair: _that(len(_numbers(pair)) == 2))
    _numbers(program["kept"])
    _that(isinstance(program["again"], bool))


def check_model(described: Any) -> None:
    """Raise ConnectionLostError unless a model's description has the form that Worker gives it."""
    keys = {"model", "modules", "weights", "computed"}
    _that(isinstance(described, dict) and keys <= described.keys())
    _number(described["model"])
    _each(described["modules"], _module)
    _that(len(described["modules"]) <= _MOST_MODULES)
    _each(described["weights"], _weight)
    _each(described["computed"], lambda pair: _that(len(list(map(_text, pair))) == 2))


def check_value(value: Any) -> None:
    """Raise ConnectionLostError unless a value has the form that `encode` gives it."""
    if type(value) in _PLAIN:
        return
    if isinstance(value, list):
        _each(value, check_value)
        return
    _that(isinstance(value, dict) and len(value) == 1)
    ((kind, told),) = value.items()
    match kind:
        case "t":
            _number(told)
        case "z":
            _numbers(told)
        case "u" | "s":
            _each(told, check_value)
        case "d":
            _each(told, _pair)
        case "c":
            _that(isinstance(told, list) and len(told) == 2)
            _that(all(type(part) in (int, float) for part in told))
        case "e":
            pass
        case "g" | "v" | "k":
            _that(re.fullmatch(r"[\w.:]*", _text(told)) is not None)
        case _:
            _that(False)


def _item(item: Any) -> None:
    _that(isinstance(item, list) and bool(item))
    match item:
        case ["leave", value]:
            check_value(value)
        case ["enter", path, args, kwargs]:
            _text(path)
            _arguments(args, kwargs)
        case ["gone", numbers]:
            _numbers(numbers)
        case ["given", number, place]:
            _numbers([number, place])
        case ["alias", number, base, shape, stride, offset, dtype, conj, neg]:
            _numbers([number, base, offset, *_numbers(shape), *_numbers(stride)])
            _that(isinstance(getattr(torch, _text(dtype), None), torch.dtype))
            _that(isinstance(conj, bool) and isinstance(neg, bool))
        case ["function" | "operation", name, args, kwargs, shown, where, *calls]:
            _that(_NAME.fullmatch(_text(name)) is not None)
            _arguments(args, kwargs)
            check_value(shown)
            _text(where)
            for lines in calls:
                _each(lines, _text)
        case _:
            _that(False)


def _arguments(args: Any, kwargs: Any) -> None:
    check_value(args)
    check_value(kwargs)
    _that(isinstance(args, dict) and "u" in args and isinstance(kwargs, dict) and "d" in kwargs)
    for key, _ in kwargs["d"]:
        _that(isinstance(key, str) and key.isidentifier())


def _pair(pair: Any) -> None:
    _that(isinstance(pair, list) and len(pair) == 2)
    _each(pair, check_value)


def _module(module: Any) -> None:
    _that(isinstance(module, list) and len(module) == 4)
    path, first, file, own = module
    _text(path), _text(first)
    _that(file is None or isinstance(file, str))
    _that(isinstance(own, bool))


def _weight(weight: Any) -> None:
    _that(isinstance(weight, list) and len(weight) == 4)
    kind, keys, stays, number = weight
    _that(kind in {"parameter", "buffer", "plain"} and isinstance(keys, list) and bool(keys))
    _each(keys, _text)
    _that(isinstance(stays, bool))
    _number(number)


def _each(values: Any, check: Callable[[Any], object]) -> None:
    _that(isinstance(values, list) and len(values) <= _MOST)
    for value in values:
        check(value)


def _numbers(values: Any) -> list[int]:
    _that(isinstance(values, list))
    return [_number(value) for value in values]


def _number(value: Any) -> int:
    _that(type(value) is int)
    number: int = value
    return number


def _text(value: Any) -> str:
    _that(type(value) is str)
    text: str = value
    return text


def _that(so: bool) -> None:
    if not so:
        raise ConnectionLostError("what has another form than a claim")
