"""Makes torch compute repeatably and in full precision while both sides of a comparison run.

Deterministic algorithms are used where torch has them; elsewhere it runs the others, and the
tolerance decides. A CPU needs them too: in `x[index] = value` with an index that repeats, several
threads race to write last. TF32, on a GPU, keeps 10 of a float32's 23 bits, and its error exceeds
the tolerance. Torch chooses the kernel for attention on both sides, also where the author chooses
it: a component holds the operator alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from runner.torch_tracing import ignore_sdpa_kernel, write_out_flex_attention

_DETERMINISTIC = "deterministic algorithms where torch has them, else within tolerance"
_FILL = "fill_uninitialized_memory"
_FULL_PRECISION = "TF32 off; no reduced-precision sums"


def describe_arithmetic(device: str) -> str | None:
    """Return the sentence about a device's arithmetic for the verdict; None for the CPU."""
    if device == "cpu":
        return None
    on_cuda = device.startswith("cuda")
    return f"{_FULL_PRECISION}; {_DETERMINISTIC}" if on_cuda else _DETERMINISTIC


@contextmanager
def exact_arithmetic(device: str) -> Iterator[None]:
    """Make torch repeatable and precise in the body, and restore its settings afterwards.

    The switches for precision are CUDA's, and have no effect on other devices.
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    switches: list[tuple[Any, str, bool]] = [(torch.utils.deterministic, _FILL, False)]
    if device != "cpu":
        switches += [
            (matmul, "allow_tf32", False),
            (matmul, "allow_fp16_reduced_precision_reduction", False),
            (matmul, "allow_bf16_reduced_precision_reduction", False),
            (cudnn, "allow_tf32", False),
            (cudnn, "deterministic", True),
            (cudnn, "benchmark", False),
        ]
    saved_values = [(place, name, getattr(place, name)) for place, name, _ in switches]
    saved_mode = torch.get_deterministic_debug_mode()
    for place, name, value in switches:
        setattr(place, name, value)
    # `torch.use_deterministic_algorithms()` would import torch's compiler, which takes a second.
    torch.set_deterministic_debug_mode("warn")
    try:
        with ignore_sdpa_kernel(), write_out_flex_attention():
            yield
    finally:
        torch.set_deterministic_debug_mode(saved_mode)
        for place, name, value in saved_values:
            setattr(place, name, value)
