"""Finds outputs that prove little: constant, not finite, or independent of an input or a weight.

Nothing here is a verdict. Effects that are too expensive to examine are reported as not examined.
That follows from sizes: it does not depend on how busy a machine is, and is the same on machines of
one kind.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import nn

from runner.quantities import join_first, pluralize
from runner.verify.gates.compare import STEP, outputs_differ
from runner.verify.gates.gradients import FORWARDS, find_weak_weights
from runner.verify.gates.weights import has_overlap, move_values, weights_of
from runner.verify.loading_files import CannotJudge
from runner.verify.options import EXAMINED_BYTES, KEPT_BYTES, QUICK_FLOPS
from runner.verify.runtime.disk_cache import DigestedTensor, size_of
from runner.verify.runtime.output_leaves import is_tensor, leaves, pieces_of, tensors
from runner.verify.runtime.runner import ForwardObservation, ForwardRunner, Inputs, SharedInputs

EXAMINING_FLOPS = QUICK_FLOPS / 3
"""Work of all forwards that run again; a quick forward runs again at least once."""

UNEXAMINED = "the effect of each input and weight"
"""Phrase for the case that the output or the forward is too large to be examined."""

_TOO_SMALL = "changes the output by less than the tolerance"
_CHANGED_SEED = 7919
_MAX_NAMES = 4


@dataclass
class Health:
    """Sentences about one problem."""

    notes: list[str] = field(default_factory=list)
    not_examined: list[str] = field(default_factory=list)


def constant_output(output: object) -> str | None:
    """Return a remark if the whole output is one value; stop at the first other value."""
    value: float | None = None
    elements = 0
    for _, leaf in leaves(output):
        if not is_tensor(leaf):
            continue
        for piece in pieces_of(leaf):
            if not piece.numel():
                continue
            if piece.is_complex():
                piece = torch.view_as_real(piece)
            lowest, highest = (float(end) for end in torch.aminmax(_as_orderable(piece)))
            value = lowest if value is None else value
            if not (lowest == highest == value):
                return None
            elements += piece.numel()
    if value is None or elements < 2:
        return None
    return "the output is all zeros" if value == 0 else f"the output is constant: all {value:g}"


def fingerprint(output: object) -> tuple[object, ...]:
    """Return a few figures of an output, which two different outputs do not share by chance."""
    marks: list[object] = []
    for _, leaf in leaves(output):
        if not is_tensor(leaf):
            continue
        if isinstance(leaf, DigestedTensor):
            marks.append(leaf.digests)
            continue
        piece = next(iter(pieces_of(leaf)))
        piece = _as_orderable(torch.view_as_real(piece) if piece.is_complex() else piece)
        if piece.numel():
            lowest, highest = torch.aminmax(piece)
            total = piece.sum(dtype=torch.float64)
            marks.append((float(lowest), float(highest), float(total)))
    return tuple(marks)


def _as_orderable(piece: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose numbers torch can order, which it cannot for 8-bit floats."""
    return piece.float() if piece.is_floating_point() and piece.dtype.itemsize == 1 else piece


def inputs_without_effect(observation: ForwardObservation) -> list[str]:
    """Return a remark for each input that no operation carries to an output."""
    return [
        f"input {n} reaches no output"
        for n, is_used in enumerate(observation.inputs_used)
        if not is_used
    ]


def numbers_among_inputs(inputs: Inputs) -> list[str]:
    """Return a remark that lists the Python numbers among the inputs: the files hold them."""
    numbers = [repr(leaf) for _, leaf in leaves(list(inputs)) if type(leaf) in (int, float)]
    if not numbers:
        return []
    names = join_first(numbers, _MAX_NAMES)
    return [f"get_inputs() gives numbers, and the files are for these alone: {names}"]


def weights_without_effect(observation: ForwardObservation, model: nn.Module) -> list[str]:
    """Return a remark that names the weights that no operation carries to an output."""
    weights = dict(model.named_parameters())
    unused_names = [
        n for n, t in weights.items() if t.numel() and n not in observation.weights_used
    ]
    if not unused_names:
        return []
    share = f"{len(unused_names)} of {pluralize(len(weights), 'weight')}"
    return [f"{share} reach no output: {join_first(unused_names, _MAX_NAMES)}"]


def find_blind_spots(
    runner: ForwardRunner,
    model: nn.Module,
    inputs: SharedInputs,
    output: object,
    observation: ForwardObservation,
    draw: Callable[[int], Inputs],
) -> Health:
    """Change one input or weight at a time and report the changes that no output shows.

    The number of forwards is limited by their cost. The model must not be used afterwards: a
    forward may have changed its state.
    """
    health = Health()
    remaining_forwards = count_repeated_forwards(observation.trace.effort)

    def output_is_unchanged(changed_inputs: Inputs) -> bool:
        try:
            changed_output, _ = runner.forward("original.py: forward", model, changed_inputs, 0)
        except CannotJudge:
            return False  # the model rejects the changed input, so it depends on it
        return not outputs_differ(output, changed_output, STEP)

    too_large = size_of(list(inputs.get())) > EXAMINED_BYTES or size_of(output) > KEPT_BYTES
    if not remaining_forwards or too_large or _shares_memory(output, model, inputs.get()):
        health.not_examined.append(UNEXAMINED)
        return health
    other_draw = tensors(list(draw(_CHANGED_SEED)))
    for n, is_used in enumerate(observation.inputs_used):
        if not remaining_forwards:
            health.not_examined.append(f"the effect of input {n} and what follows")
            return health
        inputs_to_try = _replace_input(inputs.get(), n, other_draw)
        if is_used and inputs_to_try is not None:
            remaining_forwards -= 1
            if output_is_unchanged(inputs_to_try):
                health.notes.append(f"changing input {n} {_TOO_SMALL}")
    weights: dict[str, torch.Tensor] = {  # no buffers: one may serve another mode
        name: weight
        for name, weight in model.named_parameters()
        if name in observation.weights_used
        and weight.is_floating_point()
        and weight.element_size() > 1
        and not has_overlap(weight)
    }
    suspects = [name for name, weight in weights.items() if weight.nbytes <= KEPT_BYTES]
    large_count = len(weights) - len(suspects)
    if (
        len(weights) > remaining_forwards >= FORWARDS
        and _backward_bytes(weights, observation) <= KEPT_BYTES
    ):
        remaining_forwards -= FORWARDS
        suspects = find_weak_weights(runner, model, inputs.get(), weights)
    blind_names = []
    for name in suspects[:remaining_forwards]:
        weight = weights[name].data
        saved_values = weight.clone()
        move_values(weight, torch.Generator().manual_seed(_CHANGED_SEED), limit=1.0)
        if output_is_unchanged(inputs.get()):
            blind_names.append(name)
        weight.copy_(saved_values)
    if unknown_count := large_count + max(0, len(suspects) - remaining_forwards):
        part = "" if unknown_count == len(weights) else f"{unknown_count} of "
        effect = f"the effect of {part}{pluralize(len(weights), 'weight')}"
        health.not_examined.append(effect)
    if blind_names:
        changed_weights = f"{len(blind_names)} of {pluralize(len(weights), 'weight')}"
        health.notes.append(
            f"changing {changed_weights} {_TOO_SMALL}: {join_first(blind_names, _MAX_NAMES)}"
        )
    return health


def _backward_bytes(weights: dict[str, torch.Tensor], observation: ForwardObservation) -> int:
    """Return an upper bound of the bytes of a backward pass, besides the weights.

    It counts all results of the forward, the gradients, and one contribution to each gradient: even
    if only a part of a weight is used, its contribution is as large as the weight.
    """
    results = [meta for event in observation.trace.events for meta in event.operation.outputs]
    result_bytes: int = sum(
        prod(shape) * getattr(torch, dtype).itemsize for shape, dtype in results
    )
    return result_bytes + 2 * sum(weight.nbytes for weight in weights.values())


def count_repeated_forwards(effort: int) -> int:
    """Return how many forwards of this work are run again on other inputs and weights."""
    return max(1, int(EXAMINING_FLOPS / max(1, effort))) if effort <= QUICK_FLOPS else 0


def _replace_input(inputs: Inputs, n: int, other_draw: list[torch.Tensor]) -> Inputs | None:
    """Return the inputs with another n-th tensor; None if no other value is possible."""
    input_tensors = tensors(list(inputs))
    current = input_tensors[n]
    replacement = other_draw[n] if n < len(other_draw) else current
    if replacement.shape != current.shape or torch.equal(replacement, current):
        if not current.is_floating_point():
            return None
        replacement = current.detach().clone()
        move_values(replacement, torch.Generator().manual_seed(_CHANGED_SEED), limit=1.0)
    new_inputs: Inputs = _replace_tensor(inputs, current, replacement)
    return new_inputs


def _replace_tensor(value: Any, old: torch.Tensor, new: torch.Tensor) -> Any:
    if value is old:
        return new
    if isinstance(value, dict):
        return {key: _replace_tensor(item, old, new) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_replace_tensor(item, old, new) for item in value)
    return value


def _shares_memory(output: object, model: nn.Module, inputs: Inputs) -> bool:
    """Return whether another forward could write into this output."""
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors(output)}
    return bool(
        storages & {t.untyped_storage().data_ptr() for t in _writable_tensors(model, inputs)}
    )


def _writable_tensors(model: nn.Module, inputs: Inputs) -> Iterable[torch.Tensor]:
    yield from weights_of(model).values()
    yield from tensors(list(inputs))
    for module in model.modules():
        yield from (value for value in vars(module).values() if isinstance(value, torch.Tensor))
