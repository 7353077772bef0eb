"""Formats times and tensors for people: `4.5 ms`, `2x3x224x224 fp32`."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from runner.tree.dimensions import DTYPE_CODES, join_dimensions


def seconds(value: float) -> str:
    """Return a time such as `12.3 µs`, `4.5 ms`, `6.7 s`."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def shape(dimensions: Sequence[int]) -> str:
    """Return a shape such as `2x3x224x224`; `scalar` without dimensions."""
    return join_dimensions(dimensions) or "scalar"


def tensors(shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, str]) -> str:
    """Return tensors such as `2x3x224x224 fp32, 2 i64`; equal neighbours as `8x128 fp32 ×256`."""
    codes = {name: DTYPE_CODES.get(dtype, dtype) for name, dtype in dtypes.items()}
    words = [f"{shape(dimensions)} {codes[name]}" for name, dimensions in shapes.items()]
    runs = [(word, len(list(same))) for word, same in groupby(words)]
    return ", ".join(word if count == 1 else f"{word} ×{count}" for word, count in runs)
