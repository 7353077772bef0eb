"""Sets how torch computes while both sides of a comparison run: repeatably, in full precision.

Deterministic algorithms are taken where there are some; where there are none, torch runs the
others, and the tolerance decides. A CPU needs them too: in `x[index] = value` with an index that
repeats, several threads race for the last word. TF32, on a GPU, keeps 10 of a float32's 23 bits,
more than a tolerance allows for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_DETERMINISTIC = "deterministic algorithms where torch has them, else within tolerance"
_FILL = "fill_uninitialized_memory"
_FULL_PRECISION = "TF32 off; no reduced-precision sums"


def said_of(device: str) -> str | None:
    """Return what a verdict says of a device's arithmetic; None for the CPU."""
    if device == "cpu":
        return None
    on_cuda = device.startswith("cuda")
    return f"{_FULL_PRECISION}; {_DETERMINISTIC}" if on_cuda else _DETERMINISTIC


@contextmanager
def exact_arithmetic(device: str) -> Iterator[None]:
    """Switch to it, and back at the end.

    The switches for precision are CUDA's, and mean nothing to another device.
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    places: list[tuple[Any, str, bool]] = [(torch.utils.deterministic, _FILL, False)]
    if device != "cpu":
        places += [
            (matmul, "allow_tf32", False),
            (matmul, "allow_fp16_reduced_precision_reduction", False),
            (matmul, "allow_bf16_reduced_precision_reduction", False),
            (cudnn, "allow_tf32", False),
            (cudnn, "deterministic", True),
            (cudnn, "benchmark", False),
        ]
    before = [(place, name, getattr(place, name)) for place, name, _ in places]
    strict = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    for place, name, value in places:
        setattr(place, name, value)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(strict, warn_only=warns)
        for place, name, value in before:
            setattr(place, name, value)
