"""Translates the text of `--inputs` into Python expressions that draw forward()'s inputs.

    input  ::=  [NAME "="] (tensor | NUMBER | true | false | null | "TEXT")
    tensor ::=  [LOW "<="] DTYPE "[" SIZE, ... "]" ["<" HIGH | "=" VALUE]

`float32[8,3,224,224]` draws from the standard normal distribution, `-1<=float32[8]<1` uniformly,
`int64[2,128]<32000` draws whole numbers from 0 to 31999, `int64[2,128]=1` is all ones, and
`bool[2,128]` is true with probability one half. Commas separate inputs.
"""

import difflib
import json
import keyword
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from runner.errors import UsageError

_INTEGER_RANGES = {
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
}
_FLOATING = ("float32", "float16", "bfloat16", "float64")
_COMPLEX = ("complex64", "complex128")
DTYPES = (*_FLOATING, *_INTEGER_RANGES, "bool", *_COMPLEX)
_NICKNAMES = {
    **{"float": "float32", "half": "float16", "double": "float64", "long": "int64", "int": "int32"},
    **{"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"},
    **{"i64": "int64", "i32": "int32"},
}

_NAMED_INPUT = re.compile(r"([A-Za-z_]\w*)\s*=(.*)", re.DOTALL)
_TENSOR = re.compile(
    r"(?:(?P<low>[^<\[]*)<=)?\s*(?P<dtype>[A-Za-z_]\w*)\s*\[(?P<shape>[^\]]*)\]"
    r"\s*(?:<(?P<high>[^=].*)|=(?P<value>.*))?"
)
_INPUT_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,"\[]+|["\[]')
"""Matches quoted text, a shape in brackets, or any other text up to the next comma."""
_EXAMPLE = "float32[8,3,224,224]"


@dataclass(frozen=True, slots=True)
class InputExpression:
    """One input of forward(): its name, if it has one, and a Python expression that draws it."""

    name: str | None
    expression: str


def parse_inputs(spec: str) -> list[InputExpression]:
    """Return the inputs that a specification describes, in its order.

    Raises:
        UsageError: an input cannot be parsed, or one without a name follows one that has a name;
            the message quotes the input.
    """
    inputs: list[InputExpression] = []
    for text in _split_inputs(spec):
        named = _NAMED_INPUT.fullmatch(text)
        name, value = (named[1], named[2].strip()) if named else (None, text)
        if name is None and inputs and inputs[-1].name is not None:
            raise _input_error(
                text, "has no name, after one that has", "inputs without a name come first"
            )
        if name is not None and (keyword.iskeyword(name) or name in DTYPES):
            raise _input_error(
                text, f"{name} is no input's name", f"a tensor is written as {_EXAMPLE}"
            )
        if name is not None and name in {earlier.name for earlier in inputs}:
            raise _input_error(text, f"{name} is there twice")
        inputs.append(InputExpression(name, _expression(text, value)))
    return inputs


def _split_inputs(spec: str) -> Iterator[str]:
    if not spec.strip():
        raise UsageError("--inputs: nothing in it", hint=f"a tensor is written as {_EXAMPLE}")
    end = 0
    while end <= len(spec):
        start = end
        while end < len(spec) and (piece := _INPUT_PIECE.match(spec, end)):
            end = piece.end()
        if not (part := spec[start:end].strip()):
            raise UsageError(f"--inputs {spec}: nothing between two commas, or after the last")
        yield part
        end += 1


def _expression(text: str, value_text: str) -> str:
    if "[" in value_text and not value_text.startswith('"'):
        return _tensor(text, value_text)
    try:
        value = json.loads(value_text, parse_constant=_refuse_constant)
    except ValueError:
        if value_text in ("True", "False", "None"):
            return value_text
        problem = f'{value_text!r} is neither a tensor nor a number, true, false, null or "text"'
        if _closest_dtype(value_text) in DTYPES:
            problem = f"{value_text} has no shape"
        raise _input_error(text, problem, f"a tensor is written as {_EXAMPLE}") from None
    if isinstance(value, dict | list):
        raise _input_error(text, "is no tensor and no number", f"a tensor is written as {_EXAMPLE}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _input_error(text, f"{value_text!r} is no number")
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _tensor(text: str, value_text: str) -> str:
    match = _TENSOR.fullmatch(value_text)
    if match is None:
        raise _input_error(text, "is no tensor", f"write it as {_EXAMPLE} or int64[2,128]<32000")
    dtype = match["dtype"]
    if dtype not in DTYPES:
        close = _closest_dtype(dtype)
        hint = f"is it {close}?" if close else f"there are {', '.join(DTYPES)}"
        raise _input_error(text, f"no dtype {dtype}", hint)
    sizes = _sizes(text, match["shape"])
    low, high, value = (match[part] for part in ("low", "high", "value"))
    if value is not None:
        if low is not None:
            raise _input_error(text, "has a range and a value", "leave one of them out")
        return _constant_tensor(text, dtype, sizes, value.strip())
    if low is not None and high is None:
        raise _input_error(text, f"is bounded below, not above: {low.strip()}<= needs <HIGH")
    if high is not None:
        return _bounded_tensor(text, dtype, sizes, low, high)
    if dtype in _INTEGER_RANGES:
        tensor_text = f"{dtype}[{match['shape'].strip()}]"
        problem = "has no range"
        raise _input_error(
            text, problem, f"write {tensor_text}<100 for 0 to 99, or {tensor_text}=1 for ones"
        )
    if dtype == "bool":
        return f"torch.rand({_arguments(sizes)}) < 0.5"
    return f"torch.randn({_arguments(sizes)}{_suffix(dtype)})"


def _constant_tensor(text: str, dtype: str, sizes: tuple[int, ...], value: str) -> str:
    boolean = {"true": 1, "false": 0}.get(value.lower())
    if dtype == "bool" and boolean is None and value not in ("0", "1"):
        raise _input_error(text, f"{value!r} is neither true nor false")
    number = boolean if dtype == "bool" and boolean is not None else _number(text, dtype, value)
    if number in (0, 1):
        function = "ones" if number else "zeros"
        return f"torch.{function}({_arguments(sizes)}{_suffix(dtype)})"
    return f"torch.full({sizes}, {number}, dtype=torch.{dtype})"


def _bounded_tensor(
    text: str, dtype: str, sizes: tuple[int, ...], low: str | None, high: str
) -> str:
    if dtype == "bool" or dtype in _COMPLEX:
        raise _input_error(text, f"{dtype} has no range", f"write {dtype}[...] alone")
    low_number = _number(text, dtype, (low or "0").strip())
    high_number = _number(text, dtype, high.strip(), excess=1)
    if low_number >= high_number:
        raise _input_error(text, f"nothing is from {low_number} to below {high_number}")
    if dtype in _INTEGER_RANGES:
        suffix = "" if dtype == "int64" else f", dtype=torch.{dtype}"
        return f"torch.randint({low_number}, {high_number}, {sizes}{suffix})"
    if (low_number, high_number) == (0, 1):
        return f"torch.rand({_arguments(sizes)}{_suffix(dtype)})"
    return f"torch.empty({_arguments(sizes)}{_suffix(dtype)}).uniform_({low_number}, {high_number})"


def _sizes(text: str, shape: str) -> tuple[int, ...]:
    sizes = [size.strip() for size in shape.split(",")] if shape.strip() else []
    for size in sizes:
        if not re.fullmatch(r"\d+", size, re.ASCII):
            problem = f"{size!r} is no size" if size else "a size is missing"
            raise _input_error(
                text, problem, f"a shape is whole numbers in brackets, as in {_EXAMPLE}"
            )
    return tuple(map(int, sizes))


def _number(text: str, dtype: str, number_text: str, excess: int = 0) -> int | float:
    """Return a number that the dtype can hold; a whole number may be `excess` above the largest."""
    is_whole = re.fullmatch(r"[+-]?\d+", number_text, re.ASCII)
    if dtype in _INTEGER_RANGES:
        smallest, largest = _INTEGER_RANGES[dtype]
        if not is_whole:
            raise _input_error(text, f"{number_text!r} is no whole number")
        if not smallest <= int(number_text) <= largest + excess:
            raise _input_error(
                text, f"{dtype} does not hold {number_text}: it goes from {smallest} to {largest}"
            )
    try:
        number = int(number_text) if is_whole else float(number_text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _input_error(text, f"{number_text!r} is no number")
    return number


def _arguments(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes)) or "()"


def _suffix(dtype: str) -> str:
    return "" if dtype == "float32" else f", dtype=torch.{dtype}"


def _closest_dtype(name: str) -> str | None:
    """Return the dtype that a text names, abbreviates or misspells; None if none is close."""
    if name in DTYPES:
        return name
    return _NICKNAMES.get(name) or next(iter(difflib.get_close_matches(name, DTYPES, n=1)), None)


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _input_error(text: str, problem: str, hint: str | None = None) -> UsageError:
    return UsageError(f"--inputs {text}: {problem}", hint=hint)
