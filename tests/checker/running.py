"""Runs what is in a directory, and keeps what was seen: on fake tensors, so at no cost.

Where a program asks for values, all of the directory runs on real tensors instead.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from checker.counting import Counting, Event, Spec, needed, tensors_in
from checker.directory import Directory


@dataclass(frozen=True)
class Called:
    """One call of a component by its parent."""

    file: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]


@dataclass(frozen=True)
class Ran:
    """What one forward did."""

    events: list[Event]
    """Those that depend on an input or on a tensor of the model and can reach the outputs."""
    unused: list[Event]
    """Those that can not reach them."""
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    weights: dict[str, Spec]
    promised: tuple[tuple[int, ...], ...] = ()
    """What get_expected_output_shape() says."""
    shared: tuple[frozenset[str], ...] = ()
    """Names of one and the same tensor."""
    parameters: frozenset[str] = frozenset()
    calls: list[Called] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    """What the parent did itself."""


class Refused(Exception):
    """Something does not run; the message says what."""


class Bench:
    """Runs the files of one directory, all in the same way."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self.values = directory.metadata["capture"] == "concrete"
        self.train = directory.metadata["mode"] == "train"

    @contextmanager
    def _tensors(self) -> Iterator[None]:
        fake = nullcontext() if self.values else FakeTensorMode(allow_non_fake_inputs=True)
        torch.manual_seed(0)
        torch.backends.mha.set_fastpath_enabled(False)  # one operator for a whole layer
        try:
            with fake, torch.no_grad():
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    def original(self) -> Ran:
        """The author's model on the author's inputs."""
        with self._tensors(), self._told("original.py"), self._module("original.py") as module:
            model = build(module)
            torch.manual_seed(1)
            args = list(module.get_inputs())
            kwargs: dict[str, Any] = getattr(module, "get_input_kwargs", dict)()
            return self._run(model, args, kwargs)

    def component(self, name: str) -> Ran:
        """A component file on its own inputs."""
        with self._tensors(), self._told(name), self._module(name) as module:
            nodes = self.directory.used.get(name, [])
            return self._run(
                module.Model(*module.get_init_inputs()),
                list(module.get_inputs()),
                mapped={key for node in nodes for key in node["weight_map"]},
                promised=tuple(map(tuple, module.get_expected_output_shape())),
            )

    def step(self, folder: str) -> Ran:
        """A step's refactored model on its inputs, its children told apart."""
        name = f"{folder}/refactored.py"
        with self._tensors(), self._told(name), self._module(name) as module:
            return self._run(
                module.RefactoredModel(),
                list(module.get_inputs()),
                mapped=_mapped(json.loads(self.directory.text(f"{folder}/weight_map.json"))),
                children=self.directory.path.resolve() / folder / "children",
                promised=tuple(map(tuple, module.get_expected_output_shape())),
            )

    def composition(self) -> Ran:
        """The model of kernels alone, with the author's weights, on the author's inputs."""
        name = "verification/composition_test.py"
        with self._tensors(), self._told(name):
            with self._module("original.py") as problem:
                original = build(problem)
                torch.manual_seed(1)
                args = list(problem.get_inputs())
                kwargs: dict[str, Any] = getattr(problem, "get_input_kwargs", dict)()
            with self._module(name) as module:
                model = module.ComposedModel()
                theirs, mine = owned_by(original), owned_by(model)
                for target, source in module.WEIGHTS.items():
                    mine[target].data = theirs[source].data.clone()
                children = self.directory.path.resolve() / "level_0_kernel"
                return self._run(model, args, kwargs, mapped=module.WEIGHTS, children=children)

    def _module(self, name: str) -> Any:
        return self.directory.loaded(name)

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except (DataDependentOutputException, DynamicOutputShapeException):
            raise
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            raise Refused(f"{name}: {type(error).__name__}: {first}") from error

    def _run(
        self,
        model: nn.Module,
        args: list[Any],
        kwargs: dict[str, Any] | None = None,
        mapped: Collection[str] | None = None,
        children: Any = None,
        promised: tuple[tuple[int, ...], ...] = (),
    ) -> Ran:
        model.train(self.train)
        owned = owned_by(model)
        given = list(tensors_in([args, kwargs or {}]))
        inputs = tuple(map(Spec.of, given))
        # What is mapped to no weight of the original is a constant that the file makes itself.
        weights = owned.values() if mapped is None else [t for n, t in owned.items() if n in mapped]
        watch = Counting(given, weights)
        calls: list[Called] = []
        if children is not None:
            for child in model.modules():  # a child may be made of classes of its own
                file = type(child).forward.__code__.co_filename
                if file.startswith(str(children)) and type(child).__name__ == "Model":
                    _follow(child, file.rpartition("/")[2], watch, calls)
        torch.manual_seed(2)
        with watch:
            result = model(*args, **(kwargs or {}))
        results = list(tensors_in(result))
        live = [e for e in watch.events if e.live]
        used = needed(watch.events, frozenset(watch.number(t) for t in results))
        reaching = {id(e) for e in used}
        names: dict[int, set[str]] = {}
        for name, tensor in owned.items():
            names.setdefault(id(tensor), set()).add(name)
        return Ran(
            events=[e for e in live if id(e) in reaching],
            unused=[e for e in live if id(e) not in reaching],
            inputs=inputs,
            outputs=tuple(map(Spec.of, results)),
            weights={name: Spec.of(tensor) for name, tensor in owned.items()},
            promised=promised,
            shared=tuple(frozenset(group) for group in names.values()),
            parameters=frozenset(n for n, t in owned.items() if isinstance(t, nn.Parameter)),
            calls=calls,
            outside=[str(e.counted) for e in watch.events if e.inside is None]
            if children is not None
            else [],
        )


def _follow(child: nn.Module, file: str, watch: Counting, calls: list[Called]) -> None:
    forward = child.forward

    def followed(*args: Any, **kwargs: Any) -> Any:
        inputs = tuple(map(Spec.of, tensors_in([args, kwargs])))
        watch.inside = file
        try:
            result = forward(*args, **kwargs)
        finally:
            watch.inside = None
        calls.append(Called(file, inputs, tuple(map(Spec.of, tensors_in(result)))))
        return result

    child.forward = followed


def build(module: Any) -> nn.Module:
    """The author's model from the author's arguments, in any of the forms that are in use."""
    arguments: Any = getattr(module, "get_init_inputs", list)()
    if isinstance(arguments, dict):
        return module.Model(**arguments)  # type: ignore[no-any-return]
    match arguments:
        case [list() | tuple() as positional, dict() as named]:
            return module.Model(*positional, **named)  # type: ignore[no-any-return]
    return module.Model(*arguments)  # type: ignore[no-any-return]


def owned_by(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, buffers and tensors in plain attributes, by dotted name."""
    found: dict[str, torch.Tensor] = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                found[f"{path}.{name}".lstrip(".")] = value
    found.update(model.named_parameters(remove_duplicate=False))
    found.update(model.named_buffers(remove_duplicate=False))
    return found


def _mapped(weight_map: dict[str, str | list[str]]) -> set[str]:
    """The refactored model's names in a map from the original's to one name or several."""
    names = ([value] if isinstance(value, str) else value for value in weight_map.values())
    return {name for several in names for name in several}
