"""This file knows about the language of `--inputs`: tensors by shape, dtype and range, in one line.

    input  ::=  [NAME "="] (tensor | NUMBER | true | false | null | "TEXT")
    tensor ::=  [LOW "<="] DTYPE "[" SIZE, ... "]" ["<" HIGH | "=" VALUE]

`float32[8,3,224,224]` is normal, `-1<=float32[8]<1` uniform, `int64[2,128]<32000` whole numbers
from 0 to 31999, `int64[2,128]=1` ones, `bool[2,128]` half of them true.
Commas part inputs.
"""

import difflib
import json
import keyword
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from runner.errors import UsageError

_WHOLE = {
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
}
_FLOATING = ("float32", "float16", "bfloat16", "float64")
_COMPLEX = ("complex64", "complex128")
DTYPES = (*_FLOATING, *_WHOLE, "bool", *_COMPLEX)
_NICKNAMES = {
    **{"float": "float32", "half": "float16", "double": "float64", "long": "int64", "int": "int32"},
    **{"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"},
    **{"i64": "int64", "i32": "int32"},
}

_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=(.*)", re.DOTALL)
_TENSOR = re.compile(
    r"(?:(?P<low>[^<\[]*)<=)?\s*(?P<dtype>[A-Za-z_]\w*)\s*\[(?P<shape>[^\]]*)\]"
    r"\s*(?:<(?P<high>[^=].*)|=(?P<value>.*))?"
)
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,"\[]+|["\[]')
"""Text in quotes, a shape, or anything else up to the next comma."""
_EXAMPLE = "float32[8,3,224,224]"


@dataclass(frozen=True, slots=True)
class Given:
    """One input of forward(): its name, if it has one, and a Python expression that draws it."""

    name: str | None
    expression: str


def parse_inputs(spec: str) -> list[Given]:
    """The inputs that a specification names, in its order, those without a name first.

    Raises:
        UsageError: what is wrong, with the input that it is wrong in.
    """
    found: list[Given] = []
    for text in _parts(spec):
        named = _NAMED.fullmatch(text)
        name, rest = (named[1], named[2].strip()) if named else (None, text)
        if name is None and found and found[-1].name is not None:
            raise _wrong(
                text, "has no name, after one that has", "inputs without a name come first"
            )
        if name is not None and (keyword.iskeyword(name) or name in DTYPES):
            raise _wrong(text, f"{name} is no input's name", f"a tensor is written as {_EXAMPLE}")
        if name is not None and name in {given.name for given in found}:
            raise _wrong(text, f"{name} is there twice")
        found.append(Given(name, _expression(text, rest)))
    return found


def _parts(spec: str) -> Iterator[str]:
    if not spec.strip():
        raise UsageError("--inputs: nothing in it", hint=f"a tensor is written as {_EXAMPLE}")
    at = 0
    while at <= len(spec):
        start = at
        while at < len(spec) and (piece := _PIECE.match(spec, at)):
            at = piece.end()
        if not (part := spec[start:at].strip()):
            raise UsageError(f"--inputs {spec}: nothing between two commas, or after the last")
        yield part
        at += 1


def _expression(text: str, rest: str) -> str:
    if "[" in rest and not rest.startswith('"'):
        return _tensor(text, rest)
    try:
        value = json.loads(rest, parse_constant=_no_number)
    except ValueError:
        if rest in ("True", "False", "None"):
            return rest
        what = f'{rest!r} is neither a tensor nor a number, true, false, null or "text"'
        if _dtype(rest) in DTYPES:
            what = f"{rest} has no shape"
        raise _wrong(text, what, f"a tensor is written as {_EXAMPLE}") from None
    if isinstance(value, dict | list):
        raise _wrong(text, "is no tensor and no number", f"a tensor is written as {_EXAMPLE}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(text, f"{rest!r} is no number")
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _tensor(text: str, rest: str) -> str:
    match = _TENSOR.fullmatch(rest)
    if match is None:
        raise _wrong(text, "is no tensor", f"write it as {_EXAMPLE} or int64[2,128]<32000")
    dtype = match["dtype"]
    if dtype not in DTYPES:
        close = _dtype(dtype)
        hint = f"is it {close}?" if close else f"there are {', '.join(DTYPES)}"
        raise _wrong(text, f"no dtype {dtype}", hint)
    sizes = _sizes(text, match["shape"])
    low, high, value = (match[part] for part in ("low", "high", "value"))
    if value is not None:
        if low is not None:
            raise _wrong(text, "has a range and a value", "leave one of them out")
        return _filled(text, dtype, sizes, value.strip())
    if low is not None and high is None:
        raise _wrong(text, f"is bounded below, not above: {low.strip()}<= needs <HIGH")
    if high is not None:
        return _between(text, dtype, sizes, low, high)
    if dtype in _WHOLE:
        of = f"{dtype}[{match['shape'].strip()}]"
        what = "has no range"
        raise _wrong(text, what, f"write {of}<100 for 0 to 99, or {of}=1 for ones")
    if dtype == "bool":
        return f"torch.rand({_arguments(sizes)}) < 0.5"
    return f"torch.randn({_arguments(sizes)}{_suffix(dtype)})"


def _filled(text: str, dtype: str, sizes: tuple[int, ...], value: str) -> str:
    truth = {"true": 1, "false": 0}.get(value.lower())
    if dtype == "bool" and truth is None and value not in ("0", "1"):
        raise _wrong(text, f"{value!r} is neither true nor false")
    number = truth if dtype == "bool" and truth is not None else _number(text, dtype, value)
    if number in (0, 1):
        maker = "ones" if number else "zeros"
        return f"torch.{maker}({_arguments(sizes)}{_suffix(dtype)})"
    return f"torch.full({sizes}, {number}, dtype=torch.{dtype})"


def _between(text: str, dtype: str, sizes: tuple[int, ...], low: str | None, high: str) -> str:
    if dtype == "bool" or dtype in _COMPLEX:
        raise _wrong(text, f"{dtype} has no range", f"write {dtype}[...] alone")
    least = _number(text, dtype, (low or "0").strip())
    below = _number(text, dtype, high.strip(), beyond=1)
    if least >= below:
        raise _wrong(text, f"nothing is from {least} to below {below}")
    if dtype in _WHOLE:
        suffix = "" if dtype == "int64" else f", dtype=torch.{dtype}"
        return f"torch.randint({least}, {below}, {sizes}{suffix})"
    if (least, below) == (0, 1):
        return f"torch.rand({_arguments(sizes)}{_suffix(dtype)})"
    return f"torch.empty({_arguments(sizes)}{_suffix(dtype)}).uniform_({least}, {below})"


def _sizes(text: str, shape: str) -> tuple[int, ...]:
    sizes = [size.strip() for size in shape.split(",")] if shape.strip() else []
    for size in sizes:
        if not re.fullmatch(r"\d+", size, re.ASCII):
            what = f"{size!r} is no size" if size else "a size is missing"
            raise _wrong(text, what, f"a shape is whole numbers in brackets, as in {_EXAMPLE}")
    return tuple(map(int, sizes))


def _number(text: str, dtype: str, said: str, beyond: int = 0) -> int | float:
    """A number that the dtype holds, or one that is so far beyond its last."""
    whole = re.fullmatch(r"[+-]?\d+", said, re.ASCII)
    if dtype in _WHOLE:
        least, most = _WHOLE[dtype]
        if not whole:
            raise _wrong(text, f"{said!r} is no whole number")
        if not least <= int(said) <= most + beyond:
            raise _wrong(text, f"{dtype} does not hold {said}: it goes from {least} to {most}")
    try:
        number = int(said) if whole else float(said)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(text, f"{said!r} is no number")
    return number


def _arguments(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes)) or "()"


def _suffix(dtype: str) -> str:
    return "" if dtype == "float32" else f", dtype=torch.{dtype}"


def _dtype(said: str) -> str | None:
    """The dtype that was meant, as far as one can tell."""
    if said in DTYPES:
        return said
    return _NICKNAMES.get(said) or next(iter(difflib.get_close_matches(said, DTYPES, n=1)), None)


def _no_number(said: str) -> float:
    raise ValueError(f"{said} is no number")


def _wrong(text: str, what: str, hint: str | None = None) -> UsageError:
    return UsageError(f"--inputs {text}: {what}", hint=hint)
