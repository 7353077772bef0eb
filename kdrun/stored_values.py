"""Stores the weights and the inputs of each place of a model, and reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kdrun.tree_view import TreeNode, TreeView
from runner.emit import stored_values as reader
from runner.errors import UsageError, require_package
from runner.tree.document import Node
from runner.verify.composing import COMPONENT, PartsModel
from runner.verify.gates.weights import Weights

FOLDER = "values"
_READER = Path(reader.__file__)


class StoredValues:
    """The folder `values` of a decomposition directory."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FOLDER

    @property
    def exist(self) -> bool:
        """Whether values were kept."""
        return (self._folder / "weights.safetensors").exists()

    @cached_property
    def weights(self) -> Weights:
        """Weights by their names in original.py."""
        return reader.read_tensors(self._folder / "weights.safetensors")

    def inputs(self, node: Node) -> list[torch.Tensor]:
        """Return the inputs of a place; UsageError if none are stored."""
        component = Path(node.path).stem
        if not (self._folder / "inputs" / f"{component}.safetensors").exists():
            hint = "decompose the model with keep_values=True"
            raise UsageError(f"{self._folder.parent}: no values are stored", hint=hint)
        return reader.place_inputs(self._folder, component, node.model_dump(mode="json"))


def require_safetensors() -> None:
    """Raise MissingPackageError if values cannot be stored."""
    require_package("safetensors", "values", "keep_values=True")


def store_values(
    directory: Path,
    tree: TreeView,
    model: PartsModel,
    weights: Weights,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Run a composed model and store its weights and the inputs of each of its places."""
    from safetensors.torch import save_file

    inputs: dict[str, dict[str, torch.Tensor]] = {}
    with torch.no_grad(), _record_inputs(model, tree.root, inputs):
        model(*args, **kwargs)
    folder = directory / FOLDER
    (folder / "inputs").mkdir(parents=True, exist_ok=True)
    # Tied weights and views share memory, which the format does not: each name has its own copy.
    save_file({name: _plain_copy(t) for name, t in weights.items()}, folder / "weights.safetensors")
    for component, tensors in inputs.items():
        save_file(tensors, folder / "inputs" / f"{component}.safetensors")
    (folder / _READER.name).write_text(_READER.read_text(encoding="utf-8"), encoding="utf-8")


def _plain_copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous()


@contextmanager
def _record_inputs(
    model: PartsModel, root: TreeNode, inputs: dict[str, dict[str, torch.Tensor]]
) -> Iterator[None]:
    """Record the inputs of each part while the model runs, by component and place.

    Children are called in the order of the tree, which tells the places of one component apart.
    """
    pending = [iter([root])]

    def enter(module: nn.Module, args: tuple[Any, ...]) -> None:
        node = next(pending[-1])
        if node.node.path != getattr(module, COMPONENT):
            raise RuntimeError(f"{getattr(module, COMPONENT)} runs where {node.id} should")
        tensors = inputs.setdefault(node.component, {})
        tensors |= {f"{node.id}/{number}": _plain_copy(value) for number, value in enumerate(args)}
        pending.append(iter(node.children))

    def leave(module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        pending.pop()

    handles = [
        handle
        for part in model.modules()
        if hasattr(part, COMPONENT)
        for handle in (
            part.register_forward_pre_hook(enter),
            part.register_forward_hook(leave),
        )
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
