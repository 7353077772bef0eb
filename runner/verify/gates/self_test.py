"""Judges each component file by itself, on its own inputs and against its own documentation."""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from runner.quantities import pluralize
from runner.tree.document import Node
from runner.verify.findings import Findings
from runner.verify.gates.context import Context, Contract, OperationCounts, has_same_layout
from runner.verify.gates.health import constant_output
from runner.verify.gates.operation_identity import TensorMeta, meta_of
from runner.verify.gates.weights import dtype_name, plain_tensors, weights_of
from runner.verify.guard.replica import Replica
from runner.verify.guard.worker_client import IMPORT_OPERATIONS, to_one_line
from runner.verify.layout import KERNEL_FOLDER
from runner.verify.loading_files import (
    CLASS_FILES,
    AnyFiles,
    CannotJudge,
    foreign_code,
    relative_path,
    require_attribute,
)
from runner.verify.results import NOT_FINITE
from runner.verify.runtime.operation_watch import ComponentCall, Event, Watch
from runner.verify.runtime.output_leaves import (
    all_finite,
    is_tensor,
    pieces_of,
    plain_arguments,
    tensors,
)
from runner.verify.runtime.random_blocks import RepeatedDraws, draw_shapes
from runner.verify.runtime.runner import ForwardRunner, Inputs

_REQUIRED_FUNCTIONS = ("get_init_inputs", "get_expected_output_shape", "run_tests")
"""Functions that a component must have, besides those that the verdict is based on."""


@dataclass(frozen=True, slots=True)
class ComponentFile:
    """A component file that has run."""

    path: str
    module: ModuleType
    runner: ForwardRunner
    input_metas: dict[str, tuple[TensorMeta, ...]] = field(default_factory=dict)
    """Shapes and dtypes of the first inputs that it drew."""

    def build(self, trial: int, *, bare: bool = False) -> nn.Module:
        """Return a new Model; `bare` if its weights will be replaced anyway."""
        names = self.module.__dict__
        build = self.runner.build_bare if bare else self.runner.build

        def make() -> Any:
            is_streamed = (
                self.runner.streaming is not None
            )  # streamed draws are repeated blocks anyway
            with nullcontext() if is_streamed else RepeatedDraws():
                return make_model(names["Model"], names.get("get_init_inputs"))

        return build(f"{self.path}: Model", make, trial)

    def draw_shapes(self) -> Inputs | None:
        """Return inputs on the meta device; None unless all are sure to be finite."""
        inputs = draw_shapes(self.module.__dict__["get_inputs"])
        return (tuple(inputs), {}) if isinstance(inputs, list | tuple) else None

    def draw(self, trial: int, *, repeated: bool = True, reuse: bool = False) -> Inputs:
        """Return new inputs; with `repeated`, large tensors may repeat one block of random numbers.

        With `reuse`, return tensors that its parent or the author drew and that are still in
        memory; raise DifferentDrawError if they differ.
        """

        def get_inputs() -> Inputs:
            inputs = self.module.__dict__["get_inputs"]()
            if not isinstance(inputs, list | tuple):
                raise CannotJudge(
                    f"{self.path}: get_inputs() returned {type(inputs).__name__}, not a list"
                )
            return tuple(inputs), {}

        label = f"{self.path}: get_inputs()"
        inputs = self.runner.draw(label, get_inputs, trial, repeated=repeated, reuse=reuse)
        metas = tuple(map(meta_of, tensors(list(inputs))))
        if self.input_metas.setdefault("first", metas) != metas:
            first = format_metas(self.input_metas["first"])
            raise CannotJudge(f"{self.path}: get_inputs() gave {first}, now {format_metas(metas)}")
        return inputs


def make_model(cls: Any, get_init_inputs: Callable[[], Any] | None) -> Any:
    """Return a model, built with its own file's arguments: a list, or a dict by name."""
    arguments = get_init_inputs() if get_init_inputs else []
    return cls(**arguments) if isinstance(arguments, dict) else cls(*arguments)


def load_component(
    files: AnyFiles, runner: ForwardRunner, path: str, component: str
) -> ComponentFile:
    """Run a component's file; CannotJudge if it lacks a function that the verdict is based on."""
    module = files.load(runner.directory / path)
    for name in ("Model", "get_inputs"):
        require_attribute(module, name, runner.directory)
    return ComponentFile(component, module, runner)


def run_self_tests(context: Context, components: Iterable[str]) -> None:
    """Run the self-tests of those components that have none yet."""
    for component in components:
        is_judged = context.findings.has_verdict("self-test", component)
        if not is_judged and component not in context.tests.not_finite:
            run_self_test(component, context)


def run_self_test(component: str, context: Context) -> None:
    """Run one component on its own inputs; free everything that it allocated afterwards."""
    runner, findings = context.runner, context.findings
    with (
        findings.record_cannot_judge("self-test", component),
        foreign_code(component, runner.directory),
    ):
        component_file = load_component(context.files, runner, component, component)
        trial = runner.last_trial if runner.standalone else 0
        model = component_file.build(trial)
        if runner.standalone and runner.has_authors_weights:
            runner.standalone.record_own_weights(component, model)
        if runner.standalone:
            runner.vary(model, trial)
        inputs = component_file.draw(trial)
        note_contract(component_file, model, inputs, context)
        if not context.layout.is_kernel(component):
            output, _ = runner.forward(f"{component}: forward", model, inputs, trial)
            judge_output(component_file, output, context)
            return
        watch = runner.make_watch(model)
        output, observation = runner.forward(f"{component}: forward", model, inputs, trial, watch)
        judge_output(component_file, output, context)
        assert observation is not None
        used_weights = observation.weights_used | observation.weights_read
        unread_weights = frozenset(weights_of(model)) - used_weights
        context.tests.unread_weights[component] = unread_weights
        events = watch.trace.events
        context.tests.note_operations(component, count_operations(events))
        del output
        findings.record_verdict("rules", component, watch.retained_tensor_fault())
        if runner.standalone:
            runner.standalone.judge_operation(component, model, events)
            reads_values = isinstance(model, Replica) and model.kdrun_link.model.reads_values
            for n, is_used in enumerate(observation.inputs_used):
                if (
                    not is_used
                    and not reads_values
                    and not watch.is_shape_read(tensors(list(inputs))[n])
                ):
                    fault = f"its input {n + 1} reaches no output: write its sizes as numbers"
                    findings.record_verdict("rules", component, fault)


def note_contract(
    component: ComponentFile, model: nn.Module, inputs: Inputs, context: Context
) -> None:
    """Record a component's contract; compare its inputs and weights with the tree's instances."""
    findings = context.findings
    input_tensors = tensors(list(inputs))
    contract = Contract(
        tuple(map(meta_of, input_tensors)),
        tuple(tuple(t.stride()) for t in input_tensors),
        tuple(map(is_tensor, inputs[0])),
        weights=weight_metas(model),
        settings=settings_of(model),
        plain_arguments=plain_arguments([*inputs[0], *inputs[1].values()]),
    )
    context.tests.contracts[component.path] = contract
    own_weights = weights_of(model)
    weights = {name: list(tensor.shape) for name, tensor in own_weights.items()}
    dtypes = {name: dtype_name(tensor.dtype) for name, tensor in own_weights.items()}
    for node in context.layout.nodes(component.path):
        if documented_inputs(node) != contract.inputs:
            findings.record_verdict(
                "self-test",
                component.path,
                f"get_inputs() gives {format_metas(contract.inputs)}, the tree says"
                f" {format_metas(documented_inputs(node))} ({node.id})",
            )
        tree_dtypes = dtypes | node.weight_dtypes
        if node.weight_shapes and (node.weight_shapes, tree_dtypes) != (weights, dtypes):
            findings.record_verdict(
                "self-test", component.path, f"has other weights than the tree says ({node.id})"
            )
        for stride, own_stride, (shape, _) in zip(
            node.input_strides.values(), contract.strides, contract.inputs, strict=False
        ):
            if not has_same_layout(shape, stride, own_stride):
                findings.record_verdict(
                    "self-test",
                    component.path,
                    f"get_inputs() gives strides {list(own_stride)},"
                    f" the tree says {stride} ({node.id})",
                )


def judge_output(component: ComponentFile, output: Any, context: Context) -> None:
    """Record the verdict on a component's output; one with NaN or infinity is settled later."""
    results = tuple(map(meta_of, tensors(output)))
    missing_name = next(
        (name for name in _REQUIRED_FUNCTIONS if name not in component.module.__dict__), None
    )
    fault = f"no {missing_name}()" if missing_name else _shape_fault(component, results)
    for node in context.layout.nodes(component.path):
        tree_metas = _read_metas(node.output_shapes, node.output_dtypes)
        if fault is None and tree_metas != results:
            fault = (
                f"gives {format_metas(results)},"
                f" the tree says {format_metas(tree_metas)} ({node.id})"
            )
    if not results:
        fault = f"forward() returned {type(output).__name__} with no tensor in it"
    not_finite_count = sum(count_not_finite(tensor) for tensor in tensors(output))
    if not_finite_count and fault is None:
        context.tests.not_finite[component.path] = (
            f"{NOT_FINITE} in {pluralize(not_finite_count, 'element')}"
        )
    else:
        context.findings.record_verdict("self-test", component.path, fault)
    if context.layout.is_kernel(component.path) and constant_output(output):
        context.findings.constant_kernels.add(component.path)


def settle_not_finite(context: Context, in_original: set[str]) -> None:
    """Judge the components that gave NaN or infinity; `in_original` do so in the original, too."""
    layout, findings = context.layout, context.findings
    for component, reason in context.tests.not_finite.items():
        kernels = {component} if layout.is_kernel(component) else layout.kernels_below(component)
        if kernels & in_original:
            findings.record_verdict("self-test", component, None)  # such as scores behind a mask
        else:
            fault = f"{reason}, where the original is finite"
            findings.record_verdict("self-test", component, fault)


def weight_metas(model: nn.Module) -> frozenset[tuple[str, TensorMeta]]:
    """Return name, shape and dtype of each weight."""
    return frozenset((name, meta_of(tensor)) for name, tensor in weights_of(model).items())


def settings_of(module: nn.Module) -> dict[str, str]:
    """Return path and text of the values that set what a replica computes; nothing for others."""
    return dict(module.kdrun_link.settings) if isinstance(module, Replica) else {}


def count_operations(events: list[Event]) -> OperationCounts:
    """Count operations by name and attributes, without copies, which depend on strides."""
    names = [
        (f"{e.operation.name}({', '.join(e.operation.attributes)})", e.constant)
        for e in events
        if e.operation.name != "copy"
    ]
    return OperationCounts(
        required=Counter(name for name, constant in names if not constant),
        all=Counter(name for name, _ in names),
    )


def operations_fault(
    contract: Contract, call: ComponentCall, events: list[Event], place: str, *, by_name: bool
) -> str | None:
    """Return a fault if a call of a component runs other operations than it does by itself.

    Calls with other inputs are not compared. `events`: those of the whole forward. `by_name`:
    attributes may differ, since they may depend on values.
    """
    if contract.plain_arguments != call.plain_arguments:
        given, own_given = (
            ", ".join(arguments) or "tensors alone"
            for arguments in (call.plain_arguments, contract.plain_arguments)
        )
        return f"is called with {given} {place}, get_inputs() gives {own_given}"
    if contract.operations is None or not contract.has_inputs_of(call):
        return None
    here, own = count_operations(events[slice(*call.event_span)]), contract.operations
    if by_name:
        here, own = _drop_attributes(here), _drop_attributes(own)
    # An operation whose inputs are constant or empty at one of the two places is constant there.
    if own.required - here.all or here.required - own.all:
        operations = [_format_operations(counts.required) for counts in (here, own)]
        return f"runs {operations[0]} {place}, {operations[1]} by itself"
    return None


def construction_fault(
    contract: Contract,
    weights: frozenset[tuple[str, TensorMeta]],
    settings: Mapping[str, str],
    place: str,
) -> str | None:
    """Return a fault if a component has other weights or settings at a place than by itself."""
    for name, (shape, dtype) in sorted(weights - contract.weights):
        return f"has {name} {dtype}{list(shape)} {place}, and not by itself"
    for path in [*contract.settings, *settings] if contract.settings != settings else ():
        own, placed = contract.settings.get(path, "missing"), settings.get(path, "missing")
        if own != placed:
            fault = f"Model(*get_init_inputs()) has {path} = {own}, and {placed} {place}"
            return f"{to_one_line(fault)[:300]}: build equal models"
    return None


def _drop_attributes(counts: OperationCounts) -> OperationCounts:
    required, all_ = (
        Counter(operation.partition("(")[0] for operation in operations.elements())
        for operations in (counts.required, counts.all)
    )
    return OperationCounts(required, all_)


def _format_operations(operations: Counter[str]) -> str:
    return " + ".join(sorted(operations.elements())[:6]).replace("()", "") or "nothing"


@contextmanager
def forbid_computation(file: str, runner: ForwardRunner, findings: Findings) -> Iterator[None]:
    """Record a fault if a parent's import or construction in the body computes anything.

    An empty tensor is allowed: it tells which device a parent without inputs is on.
    """
    watch = Watch(runner.directory)
    IMPORT_OPERATIONS.clear()
    with watch:
        yield
    for name, line in [*computed_operations(watch), *IMPORT_OPERATIONS]:
        if line.rpartition(":")[0] == file:
            findings.record_verdict("rules", file, f"computes {name} before the forward, at {line}")


def computed_operations(watch: Watch) -> Iterator[tuple[str, str]]:
    """Yield name and line of each operation that gave a tensor with elements."""
    for event in watch.trace.events:
        if any(0 not in shape for shape, _ in event.operation.outputs):
            yield event.operation.name, event.line


def find_components(
    model: nn.Module, folder: Path, directory: Path
) -> dict[str, tuple[nn.Module, str]]:
    """Return module path -> (module, file) of the outermost modules defined in a folder."""
    components: dict[str, tuple[nn.Module, str]] = {}
    for path, module in model.named_modules():
        if (
            path
            and not _is_within(path, components)
            and (file := defining_file(module, folder, directory))
        ):
            components[path] = module, file
    return components


def defining_file(module: nn.Module, folder: Path, directory: Path) -> str | None:
    """Return the file in a folder that defines a module's class, relative to the directory."""
    if isinstance(module, Replica):
        file = module.kdrun_link.file
        return file if file and (directory / file).is_relative_to(folder) else None
    path = _find_class_file(type(module), folder)
    return relative_path(path, directory) if path else None


def outside_tensor_fault(
    model: nn.Module, components: dict[str, tuple[nn.Module, str]]
) -> str | None:
    """Return a fault if a parent holds tensors outside its children, or replaces a forward."""
    for path, (module, file) in components.items():
        is_replaced = module.kdrun_link.own_forward if isinstance(module, Replica) else False
        if is_replaced or "forward" in vars(module):
            return f"replaces the forward of {path} ({file})"
    kinds = (("parameter", weights_of(model)), ("tensor", plain_tensors(model)))
    for kind, tensors_by_name in kinds:
        for name in tensors_by_name:
            if not _is_within(name, components):
                return f"holds the {kind} {name} outside of its children"
    return None


def documented_inputs(node: Node) -> tuple[TensorMeta, ...]:
    """Return the shapes and dtypes of an instance's inputs according to the tree."""
    return _read_metas(node.input_shapes, node.input_dtypes)


def format_metas(metas: tuple[TensorMeta, ...]) -> str:
    """Return a description for people: `float32[10, 64], int64[10]`."""
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in metas) or "nothing"


def count_not_finite(tensor: torch.Tensor) -> int:
    """Return the number of elements that are NaN or infinite; it is counted in pieces."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return 0
    pieces = (piece for piece in pieces_of(tensor) if not all_finite(piece))
    return sum(int(torch.isfinite(piece).logical_not_().sum()) for piece in pieces)


def _is_within(name: str, paths: Collection[str]) -> bool:
    """Return whether a dotted name is one of some paths, or lies below one."""
    while name and name not in paths:
        name = name.rpartition(".")[0]
    return bool(name)


def _shape_fault(component: ComponentFile, results: tuple[TensorMeta, ...]) -> str | None:
    shapes: Callable[[], Any] = component.module.__dict__["get_expected_output_shape"]
    with foreign_code(f"{component.path}: get_expected_output_shape()", component.runner.directory):
        expected = shapes()
        is_one = isinstance(expected, tuple) and all(isinstance(n, int) for n in expected)
        stated_shapes = [tuple(expected)] if is_one else [tuple(shape) for shape in expected]
    actual_shapes = [shape for shape, _ in results]
    if stated_shapes != actual_shapes:
        return (
            f"gives shapes {_format_shapes(actual_shapes)},"
            f" get_expected_output_shape() says {_format_shapes(stated_shapes)}"
        )
    return None


def _format_shapes(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes) or "none"


def _read_metas(
    shapes: Mapping[str, list[int]], dtypes: Mapping[str, str]
) -> tuple[TensorMeta, ...]:
    return tuple((tuple(s), dtypes[name].removeprefix("torch.")) for name, s in shapes.items())


def _find_class_file(cls: type[nn.Module], folder: Path) -> Path | None:
    """Return the file in a folder that defines a class: by its forward, its module or its methods.

    A subclass of a torch class that only defines __init__ has no forward of its own, and the code
    of a decorated forward lies in the decorator's file.
    """
    forward = inspect.getattr_static(cls, "forward")  # A class of torch.jit computes it.
    forward = getattr(forward, "__wrapped__", forward)
    functions = [forward, *vars(cls).values()]
    files = [getattr(getattr(f, "__code__", None), "co_filename", None) for f in functions]
    module = sys.modules.get(cls.__module__)
    known_file = CLASS_FILES.get(cls)
    for name in (files[0], getattr(module, "__file__", known_file), *files[1:]):
        if isinstance(name, str | Path) and Path(name).is_absolute():
            path = Path(name)
            if path.is_relative_to(folder):
                return path
    if module is None and known_file is None:
        # The composition loaded it by path, and it has no code: `class Model(nn.ReLU): pass`.
        kernels = folder if folder.name == KERNEL_FOLDER else folder / KERNEL_FOLDER
        path = kernels / f"{cls.__module__.rpartition('.')[2]}.py"
        return path if path.is_file() else None
    return None
