"""Finds kernels whose own inputs show less than the tensors that reach them in the model."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from runner.torch_internals import without_modes
from runner.verify.findings import Findings
from runner.verify.gates.health import constant_output
from runner.verify.gates.self_test import find_components
from runner.verify.layout import KERNEL_FOLDER
from runner.verify.runtime.forward_wrapping import Forward, wrap_forwards
from runner.verify.runtime.output_leaves import pieces_of, tensors

_MAX_CHANCE_ELEMENTS = 16
"""Number of elements up to which equal numbers may be chance."""
_NEARLY_ALL, _MOST, _HALF = 0.9, 0.75, 0.5
"""Shares of equal elements: from the first on, a kernel's own tensor shows little; from the second
on, one in the model may as well, and from the third on one of whole numbers, which are often equal.
"""
_MOST_COUNTED = 4096
"""Number of elements of a tensor among which equal ones are counted."""
_FEW_CHANGES = 0.1
"""Share of elements that a clamp may change in the model and none of on its own inputs."""

Signs = frozenset[str]
"""Texts, each of which says how the inputs and outputs of one call show little."""


class OwnInputs:
    """Compares what kernels show on their own inputs with what they show in the model."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._own: dict[str, Signs] = {}
        """File of a kernel -> the signs of its call on its own inputs."""
        self._in_model: dict[str, Signs] = {}
        """File of a kernel -> the signs of any of its calls in the model."""

    def record_own_weights(self, file: str, model: nn.Module) -> None:
        """Record the weights that a kernel's file draws by itself."""
        self._own[file] = self._own.get(file, frozenset()) | _find_one_number(
            _list_weights(model), is_own=True
        )

    def record_own_call(self, file: str, inputs: list[torch.Tensor], output: object) -> None:
        """Record a kernel's call on its own inputs, which it has not changed."""
        if file.startswith(f"{KERNEL_FOLDER}/"):
            signs = _find_signs(inputs, tensors(output), is_own=True)
            self._own[file] = self._own.get(file, frozenset()) | signs

    def watch(self, composed: nn.Module, directory: Path) -> AbstractContextManager[None]:
        """Return a context that records the calls of the kernels in the composed model."""
        components = find_components(composed, directory / KERNEL_FOLDER, directory)

        def watch_calls(path: str, forward: Forward) -> Forward:
            file = components[path][1]

            def watched_forward(*args: Any, **kwargs: Any) -> Any:
                output = forward(*args, **kwargs)
                if self._own.get(file) != frozenset():
                    inputs = tensors([*args, *kwargs.values()])
                    signs = _find_signs(inputs, tensors(output), is_own=False)
                    weights = _list_weights(components[path][0])
                    signs |= _find_one_number(weights, is_own=False)
                    self._in_model[file] = self._in_model.get(file, signs) | signs
                return output

            return watched_forward

        modules = {path: module for path, (module, _) in components.items()}
        return wrap_forwards(modules, watch_calls)

    def judge(self) -> None:
        """Report the kernels that show less on their own inputs."""
        for file, signs in sorted(self._own.items()):
            for sign in sorted(signs - self._in_model.get(file, signs)):
                place, mend = "on its own inputs", "draw what reaches it there"
                if sign.startswith("its weight"):
                    place, mend = "by itself", "draw it, with torch.randn for example"
                fault = f"{sign} {place}, and not in the model: {mend}"
                self._findings.record_verdict("self-test", file, fault)


def _find_signs(inputs: list[torch.Tensor], outputs: list[torch.Tensor], *, is_own: bool) -> Signs:
    """Return the signs of a call; `is_own`: whether it is on the kernel's own inputs."""
    named = {f"its input {n}": tensor for n, tensor in enumerate(inputs, 1)}
    signs = set(_find_one_number(named, is_own=is_own))
    is_one_number = _is_one_number if is_own else _may_be_one_number
    with without_modes():
        floats = [tensor for tensor in outputs if tensor.numel()]
        if any(t.is_floating_point() for t in floats) and all(map(is_one_number, floats)):
            signs.add("gives one number throughout")
        for n, tensor in enumerate(inputs, 1):
            if any(_is_same(tensor, output, 0.0 if is_own else _FEW_CHANGES) for output in outputs):
                signs.add(f"gives its input {n} unchanged")
    return frozenset(signs)


def _list_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return a model's parameters with more than one dimension; a bias may well be zeros."""
    return {
        f"its weight {name}": weight
        for name, weight in model.named_parameters()
        if sum(size > 1 for size in weight.shape) > 1
    }


def _find_one_number(named: Mapping[str, torch.Tensor], *, is_own: bool) -> Signs:
    """Return the signs of tensors that have one number at nearly all places."""
    with without_modes():
        return frozenset(
            f"{name} is one number at nearly all places"
            for name, tensor in named.items()
            if _may_show_little(tensor, is_own=is_own)
        )


def _may_show_little(tensor: torch.Tensor, *, is_own: bool) -> bool:
    share = _share_of_commonest(tensor)
    if is_own:
        return share is not None and share >= _NEARLY_ALL
    return share is None or share >= (_MOST if tensor.is_floating_point() else _HALF)


def _share_of_commonest(tensor: torch.Tensor) -> float | None:
    """Return the share of the commonest number among those of a tensor that are numbers.

    None for a tensor that is too small, or whose numbers are not in memory. The share is that among
    some elements of a large tensor, the same ones each time.
    """
    if tensor.is_meta or tensor.layout is not torch.strided or tensor.is_quantized:
        return None
    if tensor.numel() <= _MAX_CHANCE_ELEMENTS or not tensor.untyped_storage().nbytes():
        return None
    elements = tensor.detach()
    if elements.numel() > _MOST_COUNTED:
        generator = torch.Generator().manual_seed(0)
        places = torch.randint(elements.numel(), (_MOST_COUNTED,), generator=generator)
        elements = elements[torch.unravel_index(places.to(elements.device), elements.shape)]
    if elements.is_complex():
        elements = torch.view_as_real(elements.resolve_conj())
    numbers = elements.reshape(-1).double()
    numbers = numbers[~numbers.isnan()]
    if not numbers.numel():
        return 1.0
    _, counts = numbers.unique(return_counts=True)  # type: ignore[no-untyped-call]
    return int(counts.max()) / numbers.numel()


def _is_one_number(tensor: torch.Tensor) -> bool:
    """Return whether a kernel's own tensor has one value throughout, and not by chance."""
    return tensor.numel() > _MAX_CHANCE_ELEMENTS and constant_output(tensor) is not None


def _may_be_one_number(tensor: torch.Tensor) -> bool:
    """Return whether the first piece of a tensor in the model has no two finite values."""
    elements = next(pieces_of(tensor.detach()))
    if elements.dtype.itemsize == 1:
        elements = elements.float()
    finite = elements[elements.isfinite()]
    return not bool((finite != finite[:1]).any())


def _is_same(tensor: torch.Tensor, output: torch.Tensor, share: float) -> bool:
    is_alike = tensor.shape == output.shape and tensor.dtype == output.dtype
    if not is_alike or not tensor.is_floating_point() or tensor.dtype.itemsize == 1:
        return False
    if tensor.numel() <= _MAX_CHANCE_ELEMENTS:
        return False
    if not share:
        return torch.equal(tensor, output)
    first, second = (next(pieces_of(t.detach())) for t in (tensor, output))
    return float((first != second).double().mean()) <= share
