"""This file knows about the self-test gate: each component file alone, with what it documents."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from runner.quantities import pluralize
from runner.tree.document import Node
from runner.verify.findings import Findings
from runner.verify.gates.operation_identity import TensorMeta, meta_of
from runner.verify.gates.weights import dtype_name, plain_tensors, weights_of
from runner.verify.guard.replica import Replica
from runner.verify.guard.worker_client import COMPUTED
from runner.verify.layout import Layout
from runner.verify.loading_files import AnyFiles, CannotJudge, attribute, foreign_code, relative
from runner.verify.results import NOT_FINITE
from runner.verify.runtime.operation_watch import Event, Watch
from runner.verify.runtime.output_leaves import all_finite, pieces_of, tensors
from runner.verify.runtime.random_blocks import RepeatedDraws
from runner.verify.runtime.runner import Bench, Inputs

_FUNCTIONS = ("get_init_inputs", "get_expected_output_shape", "run_tests")
"""What a component has besides the parts that it is judged by."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What a component's own inputs look like."""

    inputs: tuple[TensorMeta, ...]
    strides: tuple[tuple[int, ...], ...]
    arguments: int
    """How many there are, those that are no tensors included."""
    operations: Counter[str] | None = None
    """What a kernel ran on them, moves and constants left out."""


@dataclass
class SelfTests:
    """What the self-tests showed so far."""

    contracts: dict[str, Contract] = field(default_factory=dict)
    not_finite: dict[str, str] = field(default_factory=dict)
    """Component -> reason; the original decides whether that is right."""


@dataclass(frozen=True, slots=True)
class Component:
    """A component file that ran."""

    path: str
    module: ModuleType
    bench: Bench
    drawn: dict[str, tuple[TensorMeta, ...]] = field(default_factory=dict)
    """Shapes and dtypes of the first inputs."""

    def build(self, trial: int, *, bare: bool = False) -> nn.Module:
        """A new Model; `bare` where its weights are going to be given to it."""
        names = self.module.__dict__
        build = self.bench.build_bare if bare else self.bench.build

        def make() -> Any:
            streamed = self.bench.streaming is not None  # then all large draws are such, and later
            with nullcontext() if streamed else RepeatedDraws():
                return made(names["Model"], names.get("get_init_inputs"))

        return build(f"{self.path}: Model", make, trial)

    def draw(self, trial: int, *, repeated: bool = True, again: bool = False) -> Inputs:
        """New inputs; `repeated` where they may be a block of random numbers, again and again.

        `again`: what its parent or the author drew and holds, or DrawsOther.
        """

        def get_inputs() -> Inputs:
            inputs = self.module.__dict__["get_inputs"]()
            if not isinstance(inputs, list | tuple):
                raise CannotJudge(
                    f"{self.path}: get_inputs() returned {type(inputs).__name__}, not a list"
                )
            return tuple(inputs), {}

        what = f"{self.path}: get_inputs()"
        inputs = self.bench.draw(what, get_inputs, trial, repeated=repeated, again=again)
        drawn = tuple(map(meta_of, tensors(list(inputs))))
        if self.drawn.setdefault("first", drawn) != drawn:
            first = shown(self.drawn["first"])
            raise CannotJudge(f"{self.path}: get_inputs() gave {first}, now {shown(drawn)}")
        return inputs


def made(cls: Any, get_init_inputs: Callable[[], Any] | None) -> Any:
    """A model from its own file's arguments: a list of them, or a dict by name."""
    arguments = get_init_inputs() if get_init_inputs else []
    return cls(**arguments) if isinstance(arguments, dict) else cls(*arguments)


def load_component(files: AnyFiles, bench: Bench, path: str, component: str) -> Component:
    """Run a component's file. CannotJudge where it misses what it is judged by."""
    module = files.load(bench.directory / path)
    for name in ("Model", "get_inputs"):
        attribute(module, name, bench.directory)
    return Component(component, module, bench)


def self_test(
    component: str,
    files: AnyFiles,
    layout: Layout,
    bench: Bench,
    tests: SelfTests,
    findings: Findings,
) -> None:
    """Run one component on its own inputs; everything that it held is free afterwards."""
    with findings.judging("self-test", component), foreign_code(component, bench.directory):
        loaded = load_component(files, bench, component, component)
        trial = bench.last_trial if bench.beside else 0
        model = loaded.build(trial)
        if bench.beside:
            bench.vary(model, trial)
        inputs = loaded.draw(trial)
        note_contract(loaded, layout, model, inputs, tests, findings)
        if not layout.is_kernel(component):
            output, _ = bench.forward(f"{component}: forward", model, inputs, trial)
            judge_output(loaded, layout, output, tests, findings)
            return
        watch = bench.watch(model)
        output, _ = bench.forward(f"{component}: forward", model, inputs, trial, watch)
        judge_output(loaded, layout, output, tests, findings)
        events = watch.trace.events
        contract = tests.contracts[component]
        tests.contracts[component] = replace(contract, operations=what_ran(events))
        del output
        findings.found("rules", component, watch.kept())
        if bench.beside:
            bench.beside.judge_operation(component, model, events)


def note_contract(
    component: Component,
    layout: Layout,
    model: nn.Module,
    inputs: Inputs,
    tests: SelfTests,
    findings: Findings,
) -> None:
    """Compare a component's inputs and weights with what the tree says of each instance."""
    given = tensors(list(inputs))
    contract = Contract(
        tuple(map(meta_of, given)), tuple(tuple(t.stride()) for t in given), len(inputs[0])
    )
    tests.contracts[component.path] = contract
    held = weights_of(model)
    weights = {name: list(tensor.shape) for name, tensor in held.items()}
    dtypes = {name: dtype_name(tensor.dtype) for name, tensor in held.items()}
    for node in layout.nodes(component.path):
        if documented(node) != contract.inputs:
            findings.found(
                "self-test",
                component.path,
                f"get_inputs() gives {shown(contract.inputs)}, the tree says"
                f" {shown(documented(node))} ({node.id})",
            )
        told = dtypes | node.weight_dtypes
        if node.weight_shapes and (node.weight_shapes, told) != (weights, dtypes):
            findings.found(
                "self-test", component.path, f"has other weights than the tree says ({node.id})"
            )
        for stride, real, (shape, _) in zip(
            node.input_strides.values(), contract.strides, contract.inputs, strict=False
        ):
            if not same_layout(shape, stride, real):
                findings.found(
                    "self-test",
                    component.path,
                    f"get_inputs() gives strides {list(real)}, the tree says {stride} ({node.id})",
                )


def judge_output(
    component: Component, layout: Layout, output: Any, tests: SelfTests, findings: Findings
) -> None:
    """The verdict on one component's output. Not-finite ones wait for the original's verdict."""
    results = tuple(map(meta_of, tensors(output)))
    missing = next((name for name in _FUNCTIONS if name not in component.module.__dict__), None)
    fault = f"no {missing}()" if missing else _shape_fault(component, results)
    for node in layout.nodes(component.path):
        said = _metas(node.output_shapes, node.output_dtypes)
        if fault is None and said != results:
            fault = f"gives {shown(results)}, the tree says {shown(said)} ({node.id})"
    if not results:
        fault = f"forward() returned {type(output).__name__} with no tensor in it"
    bad = sum(count_not_finite(tensor) for tensor in tensors(output))
    if bad and fault is None:
        tests.not_finite[component.path] = f"{NOT_FINITE} in {pluralize(bad, 'element')}"
    else:
        findings.found("self-test", component.path, fault)


def settle(layout: Layout, tests: SelfTests, seen: set[str], findings: Findings) -> None:
    """Judge the components that gave NaN or infinity. `seen`: files that do so in the original."""
    for component, reason in tests.not_finite.items():
        kernels = {component} if layout.is_kernel(component) else layout.kernels_below(component)
        if kernels & seen:
            findings.found("self-test", component, None)  # such as scores behind a mask
        else:
            fault = f"{reason}, where the original is finite"
            findings.found("self-test", component, fault)


def what_ran(events: list[Event], constants: bool = False) -> Counter[str]:
    """Names of operations, without moves and constants: strides and versions decide on those."""
    return Counter(
        e.operation.name
        for e in events
        if (constants or not e.constant) and e.operation.name != "copy"
    )


@contextmanager
def nothing_computed(file: str, bench: Bench, findings: Findings) -> Iterator[None]:
    """A parent's file is imported, its model built: children are made then, and no tensors.

    An empty one may be: it says which device a parent without inputs is on.
    """
    watch = Watch(bench.directory)
    COMPUTED.clear()
    with watch:
        yield
    for name, where in [*computed(watch), *COMPUTED]:
        if where.rpartition(":")[0] == file:
            findings.found("rules", file, f"computes {name} before the forward, at {where}")


def computed(watch: Watch) -> Iterator[tuple[str, str]]:
    """Name and place of each operation that gave something."""
    for event in watch.trace.events:
        if any(0 not in shape for shape, _ in event.operation.outputs):
            yield event.operation.name, event.where


def components_in(
    model: nn.Module, folder: Path, directory: Path
) -> dict[str, tuple[nn.Module, str]]:
    """Module path -> the outermost modules whose class is defined in a file of a folder."""
    found: dict[str, tuple[nn.Module, str]] = {}
    for path, module in model.named_modules():
        if path and not _within(path, found) and (file := defining_file(module, folder, directory)):
            found[path] = module, file
    return found


def defining_file(module: nn.Module, folder: Path, directory: Path) -> str | None:
    """The file in a folder that defines a module's class, relative to the directory."""
    if isinstance(module, Replica):
        file = module.kdrun_link.file
        return file if file and (directory / file).is_relative_to(folder) else None
    path = _defined_in(type(module), folder)
    return relative(path, directory) if path else None


def held_outside(model: nn.Module, found: dict[str, tuple[nn.Module, str]]) -> str | None:
    """What its components do not hold: parameters, buffers, other tensors, their own forward."""
    for path, (module, file) in found.items():
        replaced = module.kdrun_link.own_forward if isinstance(module, Replica) else False
        if replaced or "forward" in vars(module):
            return f"replaces the forward of {path} ({file})"
    kinds = (("parameter", weights_of(model)), ("tensor", plain_tensors(model)))
    for kind, held in kinds:
        for name in held:
            if not _within(name, found):
                return f"holds the {kind} {name} outside of its children"
    return None


def documented(node: Node) -> tuple[TensorMeta, ...]:
    """Shapes and dtypes of an instance's inputs, as the tree has them."""
    return _metas(node.input_shapes, node.input_dtypes)


def shown(metas: tuple[TensorMeta, ...]) -> str:
    """For people: `float32[10, 64], int64[10]`."""
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in metas) or "nothing"


def same_layout(
    shape: tuple[int, ...], one: tuple[int, ...] | list[int], other: tuple[int, ...] | list[int]
) -> bool:
    """Whether strides say the same; those of dimensions of one element say nothing."""
    if 0 in shape:
        return True
    telling = [n for n, size in enumerate(shape) if size > 1]
    return len(one) == len(other) and all(one[n] == other[n] for n in telling)


def count_not_finite(tensor: torch.Tensor) -> int:
    """How many elements are NaN or infinite, counted in pieces."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return 0
    pieces = (piece for piece in pieces_of(tensor) if not all_finite(piece))
    return sum(int(torch.isfinite(piece).logical_not_().sum()) for piece in pieces)


def _within(name: str, paths: Collection[str]) -> bool:
    """Whether a dotted name is one of some paths, or below one."""
    while name and name not in paths:
        name = name.rpartition(".")[0]
    return bool(name)


def _shape_fault(component: Component, results: tuple[TensorMeta, ...]) -> str | None:
    shapes: Callable[[], Any] = component.module.__dict__["get_expected_output_shape"]
    with foreign_code(f"{component.path}: get_expected_output_shape()", component.bench.directory):
        expected = shapes()
        is_one = isinstance(expected, tuple) and all(isinstance(n, int) for n in expected)
        said = [tuple(expected)] if is_one else [tuple(shape) for shape in expected]
    real = [shape for shape, _ in results]
    if said != real:
        return f"gives shapes {_lists(real)}, get_expected_output_shape() says {_lists(said)}"
    return None


def _lists(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes) or "none"


def _metas(shapes: Mapping[str, list[int]], dtypes: Mapping[str, str]) -> tuple[TensorMeta, ...]:
    return tuple((tuple(s), dtypes[name].removeprefix("torch.")) for name, s in shapes.items())


def _defined_in(cls: type[nn.Module], folder: Path) -> Path | None:
    """The file in a folder that defines a class, by its forward's code, its module or its methods.

    A class of torch's with an __init__ of its own has no forward of its own, and a decorator that
    wraps a forward is code of another file.
    """
    forward = getattr(cls.forward, "__wrapped__", cls.forward)
    functions = [forward, *vars(cls).values()]
    files = [getattr(getattr(f, "__code__", None), "co_filename", None) for f in functions]
    module = sys.modules.get(cls.__module__)
    for name in (files[0], getattr(module, "__file__", None), *files[1:]):
        if isinstance(name, str) and Path(name).is_absolute():
            path = Path(name)
            if path.is_relative_to(folder):
                return path
    return None
