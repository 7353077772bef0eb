"""Builds a model from a decomposition's parts, with other modules in the place of some of them.

The root's step is built from its children, each child that has a step from its own, and so on down
to the kernels. A part that is replaced gets the weights of each of its places by their names in the
component file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from runner.errors import DecompositionError, UsageError, suggest_names
from runner.problems import to_plain_containers
from runner.verify.gates.weights import Weights, transfer_weights, weights_of
from runner.verify.layout import Layout, StepFolder, read_layout, read_weight_map
from runner.verify.loading_files import CannotJudge, Files
from runner.verify.runtime.output_leaves import tensors

COMPONENT = "kdrun_component"
"""Attribute of each part of a composed model: the component file that it stands for."""


class PartsModel(nn.Module):
    """A model that is put together from parts; it takes the model's tensors, however they nest.

    It returns a tensor, or a tuple of the model's output tensors in order.
    """

    def __init__(self, parts: nn.Module, input_names: tuple[str, ...]) -> None:
        super().__init__()
        self.parts = parts
        self.input_names = input_names

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the parts on the tensors among the arguments."""
        return self.parts(*_order_tensors(self.input_names, args, kwargs))


def compose(
    directory: Path, weights: Weights, replacements: Mapping[str, Callable[[], nn.Module]]
) -> PartsModel:
    """Return the model of a decomposition directory, put together from its parts.

    `weights`: name in original.py -> tensor, which the model shares. `replacements`: name of a
    component -> class that is built without arguments in each of its places.

    Raises:
        UsageError: there is no such component, or a replacement does not fit into its place.
        DecompositionError: the directory is damaged.
    """
    layout = read_layout(directory)
    if layout.tree is None:
        raise DecompositionError(f"{directory}: {layout.tree_fault}")
    composition = _Composition(layout, _resolve_names(layout, replacements))
    root = layout.tree.root
    try:
        with Files(directory) as files:
            model = composition.load(files, root.path)()
        names = composition.weight_names(model)
    except CannotJudge as error:
        raise DecompositionError(f"{directory}: {error}") from error
    for path, name in composition.replacements.items():
        if path not in composition.built:
            raise UsageError(f"replace: {name} has no place outside of what is replaced, too")
    _share_weights(model, {name: root.weight_map[local] for name, local in names.items()}, weights)
    model.train(layout.tree.metadata.mode == "train")
    return PartsModel(model, tuple(root.input_shapes)).train(model.training)


def _resolve_names(
    layout: Layout, replacements: Mapping[str, Callable[[], nn.Module]]
) -> dict[str, tuple[str, Callable[[], nn.Module]]]:
    """Return component file -> (name, class); UsageError if one of the two is invalid."""
    files = {Path(path).stem: path for path in layout.components}
    resolved: dict[str, tuple[str, Callable[[], nn.Module]]] = {}
    for name, cls in replacements.items():
        if name not in files:
            raise UsageError(f"replace: no component {name!r}", hint=suggest_names(name, files))
        if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
            raise UsageError(
                f"replace: {name}: {_describe_type(cls)} is no class of nn.Module",
                hint="give the class, which is built without arguments in each place",
            )
        resolved[files[name]] = (name, cls)
    return resolved


class _Composition:
    """Loads parts from their steps, down to kernels and replacements."""

    def __init__(
        self, layout: Layout, replacements: dict[str, tuple[str, Callable[[], nn.Module]]]
    ) -> None:
        self.layout = layout
        self.replacements = {path: name for path, (name, _) in replacements.items()}
        self.built: set[str] = set()
        """Component files whose parts were built."""
        self._classes = {path: cls for path, (_, cls) in replacements.items()}
        self._loaded: dict[str, Callable[[], nn.Module]] = {}

    def load(self, files: Files, path: str) -> Callable[[], nn.Module]:
        """Return a function that builds the part of a component file."""
        if path not in self._loaded:
            self._loaded[path] = self._load(files, path)
        return self._loaded[path]

    def _load(self, files: Files, path: str) -> Callable[[], nn.Module]:
        step = self.layout.step_of(path)
        if path in self._classes:
            return self._marked(path, self._replacement(files, path))
        if step is None:
            return self._marked(path, files.load(self.layout.directory / path).Model)
        modules = {}
        for stem, child in step.children.items():
            if child is None:
                raise CannotJudge(f"{step.folder}/children/{stem}.py: is no component's file")
            modules[stem] = module = ModuleType(f"children.{stem}")
            module.Model = self.load(files, child)  # type: ignore[attr-defined]
        loaded = files.load_step(self.layout.directory / step.folder, modules)
        return self._marked(path, loaded.RefactoredModel)

    def _marked(self, path: str, cls: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        def build() -> nn.Module:
            self.built.add(path)
            part = cls()
            setattr(part, COMPONENT, path)
            return part

        return build

    def _replacement(self, files: Files, path: str) -> Callable[[], nn.Module]:
        """Return a function that builds a replacement and compares its weights with the part's."""
        name, cls = self.replacements[path], self._classes[path]
        expected = {n: tuple(t.shape) for n, t in weights_of(_load_model(files, path)).items()}

        def build() -> nn.Module:
            try:
                part = cls()
            except Exception as error:
                message = f"{type(error).__name__}: {error}".partition("\n")[0]
                raise UsageError(
                    f"replace: {name}: {_describe_type(cls)}() raises {message}",
                    hint="it is built without arguments",
                ) from error
            parameters = {n: tuple(t.shape) for n, t in part.named_parameters()}
            for weight, shape in parameters.items():
                if expected.get(weight) != shape:
                    given = f"parameter {weight} {list(shape)}"
                    raise UsageError(
                        f"replace: {name}: {_describe_type(cls)} has the {given}",
                        hint=f"the component has {_describe_weights(expected)}",
                    )
            required = {n for n, _ in _load_model(files, path).named_parameters()}
            if missing := sorted(required - {n for n, _ in weights_of(part).items()}):
                raise UsageError(
                    f"replace: {name}: {_describe_type(cls)} has no parameter {missing[0]}",
                    hint=f"the component has {_describe_weights(expected)}",
                )
            return part

        return build

    def weight_names(self, part: nn.Module) -> dict[str, str]:
        """Return name of a weight in a built part -> its name in the part's component file."""
        path: str = getattr(part, COMPONENT)
        step = None if path in self._classes else self.layout.step_of(path)
        if step is None:
            return {name: name for name in weights_of(part)}
        return self._names_in_step(part, step)

    def _names_in_step(self, part: nn.Module, step: StepFolder) -> dict[str, str]:
        step_names = read_weight_map(self.layout.directory / step.folder)
        names: dict[str, str] = {}
        entered: list[str] = []
        for child_path, child in part.named_modules(remove_duplicate=False):
            inside = any(f"{child_path}.".startswith(f"{outer}.") for outer in entered)
            if child is part or inside or not hasattr(child, COMPONENT):
                continue
            entered.append(child_path)
            for name, local in self.weight_names(child).items():
                if (own := step_names.get(f"{child_path}.{local}")) is not None:
                    names[f"{child_path}.{name}"] = own
        return names


def _load_model(files: Files, path: str) -> nn.Module:
    model: nn.Module = files.load(files.directory / path).Model()
    return model


def _share_weights(model: nn.Module, names: Mapping[str, str], weights: Weights) -> None:
    """Give a model its weights; what only a replacement has stays as it was built."""
    own = {name: tensor for name, tensor in weights_of(model).items() if name not in names}
    try:
        transfer_weights({**own, **weights}, model, {**{name: name for name in own}, **names})
    except ValueError as error:
        raise DecompositionError(str(error)) from error


def _order_tensors(names: tuple[str, ...], args: Any, kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the tensors among the arguments, those given by name in their own places."""
    positional = tensors(to_plain_containers(list(args)))
    by_name = {name: value for name, value in kwargs.items() if name in names}
    positional += tensors(
        to_plain_containers({name: v for name, v in kwargs.items() if name not in names})
    )
    rest = iter(positional)
    ordered = [by_name[name] if name in by_name else next(rest, None) for name in names]
    if any(value is None for value in ordered) or next(rest, None) is not None:
        count = len(positional) + len(by_name)
        raise TypeError(f"the model takes {', '.join(names)}; {count} tensors were given")
    return ordered


def _describe_type(value: object) -> str:
    return value.__name__ if isinstance(value, type) else f"a {type(value).__name__}"


def _describe_weights(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "no weights"
