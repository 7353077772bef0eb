"""Builds a decomposed model so that chosen components are modules of it, and watches their calls.

The model is made of the steps' refactored.py files: a component that holds a chosen one is
refactored into its children, any other one is its own file. Component files and original.py run in
this process, because they define what is right; solutions do not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from runner.errors import DecompositionError
from runner.tree.document import ROOT, Tree
from runner.verify.gates.weights import plain_tensors, weights_of
from runner.verify.layout import read_layout
from runner.verify.loading_files import Files

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Place:
    """A module of the built model that is one instance of a component."""

    node: str
    module_path: str
    """Path of the module in the built model; empty for the model itself."""
    component: str


class Builder:
    """Loads the files of a decomposition, and builds models of them."""

    def __init__(self, directory: Path, tree: Tree, files: Files) -> None:
        self.directory, self.tree = directory, tree
        self._files = files
        self._modules: dict[str, ModuleType] = {}
        self.steps = {
            step.parent: directory / step.folder
            for step in read_layout(directory).steps
            if step.parent is not None
        }
        """Maps a component's path to the folder of the step that refactors it."""
        self._ancestors = _list_ancestors(tree)

    def load_component(self, component: str) -> ModuleType:
        """Return the module of a component's own file."""
        if component not in self._modules:
            self._modules[component] = self._files.load(self.directory / component)
        return self._modules[component]

    def find_refactored(self, chosen: Sequence[str], kept: Sequence[str] = ()) -> set[str]:
        """Return the components that hold a chosen one; `kept` ones stay whole."""
        nodes = self.tree.nodes
        refactored: set[str] = set()
        for key, node in nodes.items():
            above = self._ancestors[key]
            if node.path in chosen and not any(nodes[a].path in kept for a in above):
                refactored |= {nodes[a].path for a in above}
        return refactored

    def build(self, refactored: set[str]) -> nn.Module:
        """Return the model in which these components are refactored into their children."""
        classes: dict[str, ModuleType] = {}
        # Children come before their parents: a child has a lower level.
        order = sorted(refactored, key=lambda component: component.partition("_")[2])
        for component in order:
            step = self.steps.get(component)
            if step is None:
                raise DecompositionError(
                    f"{self.directory}: no step refactors {component}",
                    hint="decompose the problem again",
                )
            module = self._files.load_step(step, classes)
            stand_in = ModuleType(Path(component).stem)
            stand_in.__dict__["Model"] = module.RefactoredModel
            classes[Path(component).stem] = stand_in
        root = self.tree.root.path
        if root in refactored:
            try:
                model: nn.Module = classes[Path(root).stem].Model()
            except AttributeError as error:
                # A step that gives several children one weight names it as the whole child does.
                raise DecompositionError(
                    f"{self.directory}: children that share weights cannot be taken apart: {error}",
                    hint="write solutions for the children: `kdrun show --all` lists them",
                ) from error
        else:
            model = build_component(self.load_component(root))
        return model.train(self.tree.metadata.mode == "train")

    def load_original_weights(
        self, model: nn.Module, places: Sequence[Place], refactored: set[str], source: Weights
    ) -> None:
        """Give the modules at these places the original's weights."""
        for place in places:
            if place.component not in refactored:
                module = model.get_submodule(place.module_path)
                load_weights(module, select_weights(self.tree, place.node, source))

    def select_places(self, places: Sequence[Place], refactored: set[str]) -> list[Place]:
        """Return those of the places that a model with fewer refactored components has, too."""
        nodes = self.tree.nodes
        return [
            place
            for place in places
            if all(nodes[node].path in refactored for node in self._ancestors[place.node])
        ]

    def find_places(self, model: nn.Module, inputs: Any, refactored: set[str]) -> list[Place]:
        """Run the model once; return the place of each node that is a module of it.

        A parent's modules are its node's children in the order of their calls.
        """
        nodes = self.tree.nodes
        paths = {id(module): path for path, module in model.named_modules()}
        places = [Place(ROOT, "", self.tree.root.path)]
        remaining: dict[int, list[str]] = {}
        """Children that a module has not called yet, by the module's id."""
        handles = []

        def enter(node: str, module: nn.Module) -> None:
            is_known = id(module) in remaining
            remaining[id(module)] = list(nodes[node].children)
            if not is_known:
                for child in _direct_components(module):
                    handles.append(child.register_forward_pre_hook(partial(record, module)))

        def record(parent: nn.Module, module: nn.Module, _: Any) -> None:
            if not remaining[id(parent)]:
                raise DecompositionError(
                    f"{self.directory}: {paths[id(parent)] or ROOT} has other children in its step",
                    hint="decompose the problem again",
                )
            node = remaining[id(parent)].pop(0)
            places.append(Place(node, paths[id(module)], nodes[node].path))
            if nodes[node].path in refactored:
                enter(node, module)

        if refactored:
            enter(ROOT, model)
        try:
            with torch.no_grad():
                model(*inputs[0], **inputs[1])
        finally:
            for handle in handles:
                handle.remove()
        return places


def build_component(module: ModuleType) -> nn.Module:
    """Return a new model of a component's module."""
    arguments = get_arguments(module)
    model: nn.Module = (
        module.Model(**arguments) if isinstance(arguments, dict) else module.Model(*arguments)
    )
    return model


def get_arguments(module: ModuleType) -> Any:
    """Return the arguments of a file's Model: a list, or a dict by name."""
    arguments: Any = getattr(module, "get_init_inputs", list)()
    return dict(arguments) if isinstance(arguments, Mapping) else list(arguments)


def _direct_components(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the components in a refactored model: its children, also in lists of modules."""
    for child in module.children():
        if isinstance(child, nn.ModuleList | nn.ModuleDict):
            yield from _direct_components(child)
        else:
            yield child


def select_weights(tree: Tree, node: str, source: Weights) -> Weights:
    """Return a node's weights by their names in its component file."""
    selected = {}
    mapping = tree.nodes[node].weight_map
    for name in tree.nodes[node].weight_shapes:
        original = mapping.get(name, name if node == ROOT else None)
        if original is None or original not in source:
            raise DecompositionError(
                f"the tree does not say which weight of original.py {node}: {name} is",
                hint="decompose the problem again with this version of kdrun",
            )
        selected[name] = source[original]
    return selected


def weights_by_name(model: nn.Module) -> Weights:
    """Return all tensors of a model that a component may hold: weights and plain attributes."""
    return {n: t.detach() for n, t in (plain_tensors(model) | weights_of(model)).items()}


def load_weights(model: nn.Module, weights: Weights) -> None:
    """Copy weights into a model, by name."""
    own = weights_of(model)
    with torch.no_grad():
        for name, tensor in weights.items():
            own[name].copy_(tensor)


@contextmanager
def watch_calls(
    model: nn.Module,
    places: Sequence[Place],
    before: Callable[[Place, Any, Any], None],
    after: Callable[[Place, Any], None],
) -> Iterator[None]:
    """Call functions before and after each call of the modules at some places.

    A module that several nodes share is watched as their places in turn.
    """
    handles = []
    by_module: dict[str, list[Place]] = {}
    for place in places:
        by_module.setdefault(place.module_path, []).append(place)

    def add(module: nn.Module, queue: list[Place]) -> None:
        current: list[Place] = []

        def pre(_: nn.Module, args: Any, kwargs: Any) -> None:
            current.append(queue[0])
            queue.append(queue.pop(0))
            before(current[-1], args, kwargs)

        def post(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            after(current.pop(), output)

        handles.append(module.register_forward_pre_hook(pre, with_kwargs=True))
        handles.append(module.register_forward_hook(post, with_kwargs=True))

    for path, queue in by_module.items():
        add(model.get_submodule(path), queue)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _list_ancestors(tree: Tree) -> dict[str, list[str]]:
    """Return the ids of the nodes above each node."""
    ancestors: dict[str, list[str]] = {ROOT: []}
    pending = [ROOT]
    while pending:
        node = pending.pop()
        for child in tree.nodes[node].children:
            ancestors[child] = [*ancestors[node], node]
            pending.append(child)
    return ancestors
