"""This file knows about how figures are said to people: `1.2 GFLOP`, `3.4 MiB`, `2x3x224x224`."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from runner.tree.dimensions import DTYPE_CODES


def flops(count: int) -> str:
    """`236.0 MFLOP`."""
    return _scaled(count, 1000, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"))


def size(count: int) -> str:
    """`1.5 MiB`."""
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def seconds(value: float) -> str:
    """`12.3 µs`, `4.5 ms`, `6.7 s`."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def shape(dimensions: Sequence[int]) -> str:
    """`2x3x224x224`; a scalar has no dimensions."""
    return "x".join(map(str, dimensions)) or "scalar"


def tensors(shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, str]) -> str:
    """`2x3x224x224 fp32, 2 i64`; neighbours that are equal are counted: `8x128 fp32 ×256`."""
    codes = {name: DTYPE_CODES.get(dtype, dtype) for name, dtype in dtypes.items()}
    words = [f"{shape(dimensions)} {codes[name]}" for name, dimensions in shapes.items()]
    runs = [(word, len(list(same))) for word, same in groupby(words)]
    return ", ".join(word if count == 1 else f"{word} ×{count}" for word, count in runs)


def share(part: float, whole: float) -> str:
    """`12.3%`; nothing has no shares."""
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _scaled(count: int, base: int, units: tuple[str, ...]) -> str:
    value = float(count)
    for unit in units:
        if value < base or unit == units[-1]:
            return f"{count} {unit}" if unit == units[0] else f"{value:.1f} {unit}"
        value /= base
    raise AssertionError("unreachable")
