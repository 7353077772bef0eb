"""Defines the parts of a model: its tree, its components, and models that are built from them."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kdrun.stored_values import StoredValues
from kdrun.tree_view import TreeView
from runner.errors import DecompositionError, UsageError, suggest_names
from runner.problems import load_problem, read_problem, seed
from runner.tree.document import Node, Tree
from runner.verify.composing import PartsModel, compose
from runner.verify.gates.weights import Weights, snapshot_weights, transfer_weights


@dataclass(frozen=True, slots=True)
class ObjectComparison:
    """The comparison of the composed parts, with the object's weights, with the object itself."""

    max_diff: float
    """Largest absolute difference on the caller's inputs."""
    bitwise_equal: bool


@dataclass(frozen=True, slots=True)
class PartsVerification:
    """The verdict of the gates on a decomposition."""

    status: str
    """`passed`, `failed`, or how else it ended, such as `timeout`."""
    reason: str | None = None
    """One line that says why it did not pass; None if it passed."""
    bitwise_equal: bool | None = None
    """Whether the kernels put together give the original's bits; None if it was not compared."""
    max_diff: float | None = None
    object_comparison: ObjectComparison | None = None
    """The comparison with the object in memory; None for a decomposition of a file."""

    @property
    def passed(self) -> bool:
        """Whether every gate passed."""
        return self.status == "passed"


class PartsComponent:
    """One component: its file, its inputs, and models with the weights of one of its places."""

    def __init__(self, parts: Parts, nodes: tuple[Node, ...]) -> None:
        self._parts, self._nodes = parts, nodes

    @property
    def name(self) -> str:
        """Name of the component, as that of its file without `.py`."""
        return self.path.stem

    @property
    def path(self) -> Path:
        """Path of its file."""
        return self._parts.directory / self._nodes[0].path

    @property
    def source(self) -> str:
        """Text of its file."""
        return self.path.read_text(encoding="utf-8")

    @property
    def instances(self) -> tuple[str, ...]:
        """Ids of its places in the model, such as `layers_3.attention`."""
        return tuple(node.id for node in self._nodes)

    def inputs(self, instance: str | None = None, *, real: bool = False) -> list[Any]:
        """Return inputs of forward(): drawn like those in the model, or with `real` those stored.

        `instance` is the place whose stored inputs are returned; default the first.

        Raises:
            UsageError: there is no such place, or `real` and no values are stored.

        >>> import kdrun
        >>> component = kdrun.open(sample)["silu_256x8192_62e9_fp32"]
        >>> [tuple(tensor.shape) for tensor in component.inputs()]
        [(256, 8192)]
        """
        node = self._node(instance)
        if real:
            return [
                tensor.to(self._parts.device) for tensor in self._parts.stored_values.inputs(node)
            ]
        seed(0)
        inputs: list[Any] = runpy.run_path(str(self.path))["get_inputs"]()
        return inputs

    def build(self, instance: str | None = None) -> nn.Module:
        """Return the component's model with the weights of one of its places, default the first.

        The weights are those of the object or those stored, which the model shares; else those that
        original.py draws with seed 0.

        Raises:
            UsageError: there is no such place.

        >>> import kdrun
        >>> component = kdrun.open(sample)["silu_256x8192_62e9_fp32"]
        >>> tuple(component.build()(*component.inputs()).shape)
        (256, 8192)
        """
        node = self._node(instance)
        model: nn.Module = runpy.run_path(str(self.path))["Model"]()
        transfer_weights(self._parts.weights, model, node.weight_map)
        mode = self._parts.tree.metadata.mode
        return model.to(self._parts.device).train(mode == "train")

    def _node(self, instance: str | None) -> Node:
        if instance is None:
            return self._nodes[0]
        places = {place: node for node in self._nodes for place in (node.id, node.module_path)}
        for node in reversed(self._nodes):
            places |= {_plain(node.id): node, _plain(node.module_path): node}
        if (node_found := places.get(instance) or places.get(_plain(instance))) is None:
            raise UsageError(
                f"{self.name}: no place {instance!r}", hint=suggest_names(instance, self.instances)
            )
        return node_found

    def __repr__(self) -> str:
        return f"<{self._nodes[0].level} {self.name}: {', '.join(self.instances)}>"


class Parts:
    """A model that was taken apart: a decomposition directory, and the object if there is one."""

    def __init__(
        self,
        directory: Path,
        verification: PartsVerification,
        object_weights: Callable[[], Weights] | None = None,
    ) -> None:
        self.directory = directory
        """The decomposition directory; it is like that of any problem."""
        self.verification = verification
        self.tree = TreeView(Tree.read(directory))
        self._object_weights = object_weights

    @property
    def components(self) -> dict[str, PartsComponent]:
        """All components by name, in the order of the tree."""
        nodes: dict[str, list[Node]] = {}
        for node in self.tree.root.walk():
            nodes.setdefault(node.component, []).append(node.node)
        return {name: PartsComponent(self, tuple(places)) for name, places in nodes.items()}

    def __getitem__(self, name: str) -> PartsComponent:
        components = self.components
        if name not in components:
            raise UnknownComponentError(
                f"no component {name!r}", hint=suggest_names(name, components)
            )
        return components[name]

    def compose(self, replace: Mapping[str, type[nn.Module]] | None = None) -> PartsModel:
        """Return the whole model, put together from its parts, with its weights.

        `replace`: name of a component -> class that takes its place in each of its instances. The
        class is built without arguments, and has parameters of the component's names and shapes.
        The composed model takes the original's inputs, and returns its output tensors: one tensor,
        or a tuple.

        Raises:
            UsageError: there is no such component, or a class does not fit into its place.

        >>> import torch, kdrun
        >>> parts = kdrun.open(sample)
        >>> faster = parts.compose(replace={"silu_256x8192_62e9_fp32": torch.nn.SiLU})
        >>> x = torch.randn(256, 8192)
        >>> torch.equal(faster(x), torch.nn.functional.silu(x))
        True
        """
        model = compose(self.directory, self.weights, dict(replace or {}))
        return model.to(self.device)

    @property
    def weights(self) -> Weights:
        """Weights by their names in original.py: the object's, those stored, or drawn anew."""
        if self._object_weights is not None:
            return self._object_weights()
        if self.stored_values.exist:
            return self.stored_values.weights
        return self._drawn_weights

    @property
    def device(self) -> torch.device:
        """Device of the weights; the CPU if there are none."""
        first = next(iter(self.weights.values()), None)
        return first.device if first is not None else torch.device("cpu")

    @cached_property
    def stored_values(self) -> StoredValues:
        """Weights and inputs of each place, if they were kept."""
        return StoredValues(self.directory)

    @cached_property
    def _drawn_weights(self) -> Weights:
        loaded = load_problem(read_problem(self.directory / "original.py"))
        seed(0)
        return snapshot_weights(loaded.build())

    def __repr__(self) -> str:
        return repr(self.tree)

    def _repr_html_(self) -> str:
        return self.tree._repr_html_()

    def _ipython_key_completions_(self) -> Iterable[str]:
        return self.components


class UnknownComponentError(UsageError, KeyError):
    """There is no component of this name."""


def open_parts(directory: Path) -> Parts:
    """Return the parts of a directory; DecompositionError if it is none."""
    from kdrun.results import read_verification

    if not directory.is_dir():
        raise DecompositionError(f"{directory}: no such directory")
    return Parts(directory, read_verification(directory))


def _plain(path: str) -> str:
    """Return a path in which `layers.3` and `layers_3` are equal."""
    return path.replace(".", "_")
