"""Lets a forward on fake tensors read numbers, and be sized by them, where no weight decides them.

Authors count the words that a mask leaves, take the rows where it is true, or ask whether positions
begin anew. Such numbers follow from the inputs, which get_inputs() draws for real.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import MutableMapping
from typing import Any

import torch

from runner.graph.tracing.deciding_values import observed_value_text
from runner.graph.tracing.provenance import ProvenanceRecorder, memory_key
from runner.problems import Problem, load_problem, seed
from runner.torch_internals import (
    FakeTensor,
    set_nonzero_count,
    set_unique_count,
    tree_flatten,
    without_modes,
)

_MOST_NUMBERS = 1 << 26
"""Most numbers of inputs that are drawn for real."""
_RUNS = {torch.ops.aten.unique_consecutive.default}
_UNIQUE = {
    torch.ops.aten.unique_consecutive.default: torch.unique_consecutive,
    torch.ops.aten._unique2.default: torch.unique,
}
"""Operators whose result is as long as different numbers there are; the functions they are of."""
ValueTexts = MutableMapping[object, str]
"""Maps the memory that a fake tensor shows to Python text with its numbers."""


def draw_real_inputs(problem: Problem, inputs: Any) -> list[Any]:
    """Return the leaves of the inputs that get_inputs() draws for real.

    The list is empty if the problem's inputs are real already, or too large.
    """
    tensors = [leaf for leaf in tree_flatten(inputs)[0] if isinstance(leaf, torch.Tensor)]
    is_fake = all(isinstance(tensor, FakeTensor) for tensor in tensors)
    if not is_fake or sum(tensor.numel() for tensor in tensors) > _MOST_NUMBERS:
        return []
    # The author's prints already came out when the file ran first.
    with without_modes(), contextlib.redirect_stdout(io.StringIO()):
        loaded = load_problem(problem)
        seed(0)
        return list(tree_flatten(loaded.get_inputs())[0])


class KnownNumbers(ProvenanceRecorder):  # type: ignore[no-untyped-call]
    """Records a forward's calls on fake tensors and tells it the numbers that it reads.

    Where numbers decide how large a result is, torch is told the size, and what decided it is noted
    in `texts`.
    """

    def __init__(self, inputs: Any, real_inputs: list[Any], texts: ValueTexts) -> None:
        super().__init__(keeps_origins=False)
        self._texts = texts
        if real_inputs:
            leaves = tree_flatten(inputs)[0]
            self.known = dict(zip(map(id, leaves), real_inputs, strict=True))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten.nonzero.default:
            self._count(args[0])
        elif func is torch.ops.aten.index.Tensor:
            for index in args[1]:
                if index is not None and index.dtype in {torch.bool, torch.uint8}:
                    self._count(index)
        elif func in _UNIQUE and not (func in _RUNS and (args[3:] or "dim" in kwargs)):
            self._count_unique(func, args[0])
        elif func is torch.ops.aten.repeat_interleave.Tensor and not kwargs:
            numbers = self._numbers(args[0])
            with without_modes():
                kwargs = {} if numbers is None else {"output_size": int(numbers.sum())}
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _count(self, mask: torch.Tensor) -> None:
        """Tell a fake mask how many of its elements are true, if its numbers are known."""
        numbers = self._numbers(mask)
        if numbers is not None:
            with without_modes():
                set_nonzero_count(mask, int(numbers.count_nonzero()))

    def _count_unique(self, func: Any, tensor: torch.Tensor) -> None:
        """Tell a fake tensor how many of its numbers differ, if they are known."""
        numbers = self._numbers(tensor)
        if numbers is not None:
            with without_modes():
                set_unique_count(tensor, len(_UNIQUE[func](numbers)), consecutive=func in _RUNS)

    def _numbers(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the numbers of a tensor if they are known, and note those that lead to them."""
        replayed = self.replay(tensor)
        for fake, real in replayed or ():
            text = observed_value_text(real)
            if text is not None:
                self._texts[memory_key(fake)] = text
        return replayed[-1][1] if replayed else None
