"""Compares two outputs: structure, shapes and dtypes, then values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from runner.quantities import pluralize
from runner.verify.gates.difference import Difference, mismatch
from runner.verify.runtime.output_leaves import (
    OffloadedTensor,
    all_finite,
    as_tensor,
    is_tensor,
    leaves,
    pieces_of,
    structure,
)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|actual - expected| <= atol * scale + rtol * |expected|, and below max_diff if there is one.

    The scale is the largest finite magnitude among the expected values, at most 1: an output of
    0.02 at most is compared as strictly, relative to it, as one of 20.
    """

    rtol: float
    atol: float
    max_diff: float = math.inf

    def for_values(self, expected: torch.Tensor | OffloadedTensor) -> "Tolerance":
        """Return the tolerance with atol multiplied by the scale of these values."""
        return replace(self, atol=self.atol * _largest_magnitude(expected)) if self.atol else self


EXACT = Tolerance(0.0, 0.0)
_HALF = Tolerance(1e-3, 1e-3)

STEP = {
    torch.float64: Tolerance(1e-7, 1e-9),
    torch.float32: Tolerance(1e-5, 1e-6),
    torch.complex64: Tolerance(1e-5, 1e-6),
    torch.complex128: Tolerance(1e-7, 1e-9),
    torch.float16: _HALF,
    torch.bfloat16: _HALF,
}
"""Tolerances by dtype; other dtypes, integers and booleans among them, are compared exactly."""

COMPOSITION = STEP | {torch.float32: Tolerance(1e-5, 1e-6, max_diff=1e-4)}

VACUOUS = "it would pass with a kernel's output a hundredth larger"
"""Sentence about a comparison that its negative control passes."""

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def compare(
    expected: object, actual: object, tolerances: Mapping[torch.dtype, Tolerance]
) -> Difference:
    """Return the difference between two outputs: tensors, or nested tuples, lists or dicts."""
    if structure(expected) != structure(actual):
        return mismatch(f"{structure(actual)} instead of {structure(expected)}")
    total = Difference()
    for (name, expected_leaf), (_, actual_leaf) in zip(
        leaves(expected), leaves(actual), strict=True
    ):
        total |= _compare_leaf(name, expected_leaf, actual_leaf, tolerances)
    return total


def compare_with_control(
    expected: object, actual: object, tolerances: Mapping[torch.dtype, Tolerance]
) -> Difference:
    """Return the difference, with the result of the negative control if there is none."""
    difference = compare(expected, actual, tolerances)
    if difference.reason:
        return difference
    bitwise = difference.bitwise_equal
    noticed = notices_enlarged_output(expected, actual, tolerances, bitwise=bitwise)
    return replace(difference, noticed=noticed)


def outputs_differ(
    expected: object, actual: object, tolerances: Mapping[torch.dtype, Tolerance]
) -> bool:
    """Return whether `compare` finds a difference; stop at the first piece that has one."""
    if structure(expected) != structure(actual):
        return True
    pairs = zip(leaves(expected), leaves(actual), strict=True)
    return any(
        _compare_leaf(name, expected_leaf, actual_leaf, tolerances, stop_at_fault=True).reason
        for (name, expected_leaf), (_, actual_leaf) in pairs
    )


def are_identical(first: object, second: object) -> bool:
    """Return whether two outputs have the same bits; stop at the first piece that differs."""
    if first is second:
        return True
    if structure(first) != structure(second):
        return False
    for (_, first_leaf), (_, second_leaf) in zip(leaves(first), leaves(second), strict=True):
        if not is_tensor(first_leaf):
            if first_leaf != second_leaf:
                return False
            continue
        if first_leaf is second_leaf or _is_same_memory(first_leaf, second_leaf):
            continue
        first_tensor, second_tensor = as_tensor(first_leaf), as_tensor(second_leaf)
        if (
            tuple(first_tensor.shape) != tuple(second_tensor.shape)
            or first_tensor.dtype != second_tensor.dtype
        ):
            return False
        if not all(
            _same_bits(a.to(b.device), b)
            for a, b in zip(pieces_of(first_tensor), pieces_of(second_tensor), strict=True)
        ):
            return False
    return True


def _is_same_memory(first: object, second: object) -> bool:
    """Return whether two tensors are the same numbers in memory."""
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return False
    if first.layout != torch.strided or second.layout != torch.strided or not first.numel():
        return False
    first_memory, second_memory = (
        (t.data_ptr(), t.dtype, t.shape, t.stride(), t.is_conj(), t.is_neg())
        for t in (first, second)
    )
    return first_memory == second_memory


def notices_enlarged_output(
    expected: object,
    actual: object,
    tolerances: Mapping[torch.dtype, Tolerance],
    *,
    bitwise: bool,
) -> bool:
    """Return whether the comparison notices an output a hundredth larger: its negative control.

    If the outputs are equal to the last bit, one other bit counts as noticed; otherwise, an element
    outside the tolerance.
    """
    for (_, expected_leaf), (_, actual_leaf) in zip(leaves(expected), leaves(actual), strict=True):
        if not is_tensor(expected_leaf) or not is_tensor(actual_leaf):
            continue
        if bitwise:
            if any(
                not _same_bits(_as_real(p), _as_real(enlarge(p))) for p in pieces_of(actual_leaf)
            ):
                return True
            continue
        tolerance = tolerances.get(as_tensor(expected_leaf).dtype, EXACT).for_values(
            as_tensor(expected_leaf)
        )
        for expected_piece, actual_piece in zip(
            pieces_of(expected_leaf), pieces_of(actual_leaf), strict=True
        ):
            enlarged = enlarge(actual_piece).to(expected_piece.device)
            if (
                actual_piece.numel()
                and _compare_piece(
                    _as_real(expected_piece), _as_real(enlarged), tolerance
                ).outside_count
            ):
                return True
    return False


def enlarge(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor a hundredth larger; integers plus one, booleans inverted."""
    if tensor.dtype == torch.bool:
        return ~tensor
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return tensor + 1
    if tensor.dtype.itemsize == 1:  # 8 bits cannot hold 1 %, and torch cannot multiply them
        return (tensor.float() * 1.25).to(tensor.dtype)
    return tensor * 1.01


def count_elements(output: object) -> int:
    """Return the number of elements in an output."""
    return sum(math.prod(as_tensor(leaf).shape) for _, leaf in leaves(output) if is_tensor(leaf))


def _compare_leaf(
    name: str,
    expected_leaf: object,
    actual_leaf: object,
    tolerances: Mapping[torch.dtype, Tolerance],
    *,
    stop_at_fault: bool = False,
) -> Difference:
    if not is_tensor(expected_leaf):
        is_equal = expected_leaf == actual_leaf or (
            expected_leaf != expected_leaf and actual_leaf != actual_leaf
        )
        return (
            Difference()
            if is_equal
            else mismatch(f"{name} is {actual_leaf!r} instead of {expected_leaf!r}")
        )
    expected, actual = as_tensor(expected_leaf), as_tensor(actual_leaf)
    if tuple(expected.shape) != tuple(actual.shape):
        return mismatch(f"{name} has shape {list(actual.shape)} instead of {list(expected.shape)}")
    if expected.dtype != actual.dtype:
        return mismatch(f"{name} is {_dtype_text(actual)} instead of {_dtype_text(expected)}")
    for side in (expected, actual):
        if isinstance(side, torch.Tensor) and (side.layout != torch.strided or side.is_quantized):
            return mismatch(f"{name} is not a plain tensor and cannot be compared: {side.layout}")
    if isinstance(expected, OffloadedTensor) and isinstance(actual, torch.Tensor):
        known_difference = expected.compare_without_values(actual)
        if known_difference:
            return known_difference
    tolerance: Tolerance | None = None
    so_far = _PieceDifference()
    total = 0
    for piece, value in zip(pieces_of(expected), pieces_of(actual), strict=True):
        total += piece.numel()
        expected_piece, actual_piece = _as_real(piece), _as_real(value.to(piece.device))
        if _same_bits(expected_piece, actual_piece):
            so_far.not_finite |= not all_finite(expected_piece)
            continue
        if tolerance is None:  # computed only here, since its scale needs a pass over all values
            tolerance = tolerances.get(expected.dtype, EXACT).for_values(expected)
        so_far.add(_compare_piece(expected_piece, actual_piece, tolerance))
        if stop_at_fault and so_far.difference(name, total, tolerance).reason:
            break
    return so_far.difference(name, total, tolerance or EXACT)


def _as_real(piece: torch.Tensor) -> torch.Tensor:
    """Return complex numbers as pairs of real ones, other tensors unchanged."""
    piece = piece.resolve_conj()
    return torch.view_as_real(piece) if piece.dtype.is_complex else piece


def _largest_magnitude(expected: torch.Tensor | OffloadedTensor) -> float:
    """Return the largest finite magnitude, at most 1; stop at the first piece that reaches 1."""
    largest = 0.0
    for piece in pieces_of(expected):
        if piece.numel():
            sizes = _as_real(piece).abs().nan_to_num_(0.0, 0.0, 0.0)
            largest = max(largest, float(sizes.max()))
        if largest >= 1.0:
            return 1.0
    return largest


@dataclass(slots=True)
class _PieceDifference:
    """Difference of one piece, or of all pieces of a tensor so far."""

    max_diff: float = 0.0
    bitwise_equal: bool = True
    outside_count: int = 0
    """Number of elements outside the tolerance."""
    nan_mismatches: int = 0
    """Number of elements that are NaN or infinite on one side, or differently on both."""
    not_finite: bool = False

    def add(self, part: "_PieceDifference") -> None:
        self.max_diff = max(self.max_diff, part.max_diff)
        self.bitwise_equal &= part.bitwise_equal
        self.outside_count += part.outside_count
        self.nan_mismatches += part.nan_mismatches
        self.not_finite |= part.not_finite

    def difference(self, name: str, total: int, tolerance: Tolerance) -> Difference:
        reason = None
        if self.nan_mismatches:
            reason = f"{name} is NaN or infinite in other places: {self.nan_mismatches} of {total}"
        elif self.outside_count:
            extent = f"{self.outside_count} of {pluralize(total, 'element')}"
            reason = f"{name} differs by {self.max_diff:.3g}, {extent}"
        elif not (self.max_diff < tolerance.max_diff or self.max_diff == 0.0):
            reason = f"{name} differs by {self.max_diff:.3g}, allowed is {tolerance.max_diff:g}"
        return Difference(self.max_diff, self.bitwise_equal, reason, self.not_finite)


def _compare_piece(
    expected: torch.Tensor, actual: torch.Tensor, tolerance: Tolerance
) -> _PieceDifference:
    """Return the difference of two pieces in which some bit may differ."""
    if not expected.dtype.is_floating_point:
        different = expected != actual
        wide_dtype = torch.float64
        largest = float((expected.to(wide_dtype) - actual.to(wide_dtype)).abs().max())
        count = int(different.sum())
        return _PieceDifference(max(largest, 1.0) if count else 0.0, count == 0, count)
    if expected.dtype.itemsize < 4:
        expected, actual = expected.float(), actual.float()
    is_equal = (expected == actual) | (expected.isnan() & actual.isnan())
    diff = (actual - expected).abs_().masked_fill_(is_equal, 0.0)
    is_unmatched = ~torch.isfinite(diff)  # a NaN or an infinity that the other side does not have
    limits = expected.abs().mul_(tolerance.rtol).add_(tolerance.atol)
    is_outside = (~(diff <= limits)).logical_and_(~is_equal).logical_or_(is_unmatched)
    patterns = int(is_unmatched.sum())
    return _PieceDifference(
        math.inf if patterns else float(diff.max()),
        False,
        int(is_outside.sum()),
        patterns,
        not all_finite(expected),
    )


def _same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    bits = _BITS.get(first.dtype.itemsize)
    if bits is None or first.dtype == torch.bool:
        return torch.equal(first, second)
    first, second = (t.resolve_conj().resolve_neg() for t in (first, second))
    if first.shape == second.shape and _is_word_aligned(first) and _is_word_aligned(second):
        return torch.equal(first.view(-1).view(torch.int64), second.view(-1).view(torch.int64))
    return torch.equal(first.view(bits), second.view(bits))


def _is_word_aligned(tensor: torch.Tensor) -> bool:
    """Return whether a tensor can be read 8 bytes at a time, which takes half the time."""
    size, begin = tensor.numel(), tensor.storage_offset()
    itemsize = tensor.dtype.itemsize
    return tensor.is_contiguous() and not (size * itemsize % 8 or begin * itemsize % 8)


def _dtype_text(tensor: object) -> str:
    return str(getattr(tensor, "dtype", "?")).removeprefix("torch.")
