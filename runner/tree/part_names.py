"""Names parts by the author's modules or by their operations."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from runner.graph.recognition.recognize import Kernel

LONGEST_STEM = 48
_MOST_OPERATIONS = 4
"""Most operations in a fusion's name."""


def attribute(path: str) -> str:
    """Return a module's attribute: `conv1` of `layer1.0.conv1`, `layer1_0` of `layer1.0`.

    A name must not begin with a digit: `heads_0_mean` of `heads.0_mean`, none of `0_mean`.
    """
    pieces = path.split(".")
    keep = 1
    while keep < len(pieces) and pieces[-keep][0].isdigit():
        keep += 1
    text = "_".join(pieces[-keep:])
    return "" if text[:1].isdigit() else text


def container_stem(path: str) -> str:
    """Return the stem of a block in a container: `layer1`, `features_block` of `features.7`.

    A container called `model` has the name of the module around it: `encoder` of `encoder.model`.
    """
    pieces = path.split(".")
    while len(pieces) > 1 and pieces[-1] == "model":
        pieces.pop()
    names = [piece for piece in pieces if not piece.isdigit()]
    stem = attribute(".".join(names))
    if not stem:
        return "block"
    return stem if names[-1] == pieces[-1] else f"{stem}_block"


def fusion_stem(operations: Sequence[str], fallback: str) -> str:
    """Return `conv2d_relu`: the operations, or `fallback` if they are too many."""
    words = list(operations)
    if len(words) > _MOST_OPERATIONS:
        runs = [(name, len(list(same))) for name, same in groupby(operations)]
        words = [name if count == 1 else f"{name}_x{count}" for name, count in runs]
    text = "_".join(words)
    return text if len(words) <= _MOST_OPERATIONS and len(text) <= LONGEST_STEM else fallback


def line_stem(kernels: Sequence[Kernel], fallback: str = "fusion") -> str:
    """Return `conv2d_relu`: a line's operations, or the most important ones if they are many."""
    for unnamed_kinds in (set[str](), {"copy"}, {"copy", "pointwise"}):
        named_kernels = [kernel for kernel in kernels if kernel.kind not in unnamed_kinds]
        stem = fusion_stem([kernel.operation for kernel in named_kernels], "")
        if stem:
            return stem if len(named_kernels) > 1 else f"{stem}_fusion"
    return fallback


def is_mlp(kernels: Iterable[Kernel]) -> bool:
    """Return whether kernels are two linear layers or more, with norms and activations."""
    linears = 0
    for kernel in kernels:
        if kernel.operation == "linear":
            linears += 1
        elif kernel.kind not in {"pointwise", "normalization", "reduction"}:
            return False
    return linears > 1
