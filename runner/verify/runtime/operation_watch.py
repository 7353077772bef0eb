"""Records the operations of a forward: what each computes, from which tensors, at which line.

It watches the real tensors of a forward that runs anyway, so it costs microseconds an operation.
"""

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from runner.torch_internals import (
    TorchDispatchMode,
    consist_of_plain_tensors,
    is_composite,
    name_of,
    storage_key,
    storage_of,
    without_modes,
)
from runner.verify.gates.operation_identity import (
    COPIES,
    CREATES,
    FILLS,
    SCATTERS,
    BoundArgument,
    DispatchedOperation,
    TensorMeta,
    bind_arguments,
    identify_operation,
    meta_of,
    name_as_copy,
)
from runner.verify.runtime.forward_wrapping import Forward, wrap_forwards
from runner.verify.runtime.operand_sums import OperandSums
from runner.verify.runtime.origins import Identity, Origin, Origins, is_part
from runner.verify.runtime.output_leaves import all_finite, pieces_of, plain_arguments, tensors
from runner.verify.runtime.work_estimate import estimate_effort

_NO_IDENTITY = Identity()


@dataclass(frozen=True, slots=True)
class Event:
    """One operation that ran."""

    operation: DispatchedOperation
    reads: frozenset[int]
    """Numbers of the storages that it reads."""
    writes: frozenset[int]
    constant: bool
    """Whether it computes nothing from an input or a weight.

    Its result depends on neither, it moves a tensor to another device, or it gives all elements of
    a tensor one number.
    """
    line: str
    """Line of the program that called it, `file:line`."""
    component: str | None
    """The component that was running, if components are watched."""
    calls: tuple[str, ...] = ()
    """The author's calls that contain it, outermost first, if a worker reported them."""
    into_part: bool = False
    """Whether it wrote in place into a part of a tensor."""
    into_strided: bool = False
    """Whether it wrote in place into a tensor that is not row-major; a new one might be."""
    identity: Identity = _NO_IDENTITY
    overwrites: frozenset[int] = frozenset()
    """Numbers of the storages of which it replaces every element, and reads none."""
    in_place: bool = False
    """Whether it wrote into a tensor that existed before."""
    into_input: bool = False
    """Whether that was an input of the running component."""


@dataclass(frozen=True, slots=True)
class ComponentCall:
    """One call of a component."""

    component: str
    inputs: tuple[TensorMeta, ...]
    strides: tuple[tuple[int, ...], ...]
    outputs: tuple[TensorMeta, ...]
    event_span: tuple[int, int]
    """Start and end of its events in the trace."""
    plain_arguments: tuple[str, ...] = ()
    """Arguments that are no tensors, as text."""


@dataclass(frozen=True, slots=True)
class ValueRead:
    """A place where a program read the numbers of a tensor into Python."""

    origin: Origin
    """Hashes of all that these numbers come from."""
    is_uncertain: bool
    """Whether an equal program may have other hashes there."""
    component: str | None
    """The component that was running, if components are watched."""
    line: str


@dataclass
class Trace:
    """Everything that one forward did."""

    events: list[Event] = field(default_factory=list)
    calls: list[ComponentCall] = field(default_factory=list)
    parent_faults: list[str] = field(default_factory=list)
    """Faults of the components' parent, which computes something itself, a sentence each."""
    component_faults: dict[str, str] = field(default_factory=dict)
    """Component -> first fault of its own."""
    not_finite: set[str] = field(default_factory=set)
    """Examined components that gave NaN or infinity."""
    effort: int = 0
    """Work of all operations in floating-point operations, counted from sizes alone."""
    reads_values: bool = False
    """Whether it may do something else for other values."""
    value_reads: list[ValueRead] = field(default_factory=list)
    """Each place where the numbers of a tensor were read that is no constant."""


_TORCH = Path(torch.__file__).parent
_RESTRIDES = {
    *("squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "as_strided_"),
    "set_",
}
"""Operations that change a tensor's shape or strides in place, and none of its numbers."""


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the operations of a forward; `directory` holds the program's own files.

    `other_tensors`: tensors besides weights that a forward may read, such as tables made in
    `__init__`. An operation on these alone is constant, like one on plain numbers. Where no
    components are watched, any tensor that existed before counts as such a table.
    """

    place: ClassVar[str | None] = None
    """`file:line`, set while a worker's forward is repeated, since no frame here has it."""
    calls: ClassVar[tuple[str, ...]] = ()
    """Calls of the author's functions and modules that are open then, outermost first."""
    given: ClassVar[frozenset[int]] = frozenset()
    """Storages of the tensors that the worker's forward had from elsewhere."""
    depends_on_values: ClassVar[bool] = False
    """Whether the worker's forward may do something else for other values."""

    def __init__(
        self,
        directory: Path,
        weights: dict[str, torch.Tensor] | None = None,
        other_tensors: Iterable[torch.Tensor] = (),
        parameters: frozenset[int] = frozenset(),
        *,
        specialised: bool = False,
        compares_operands: bool = False,
    ) -> None:
        """`parameters`: storages of the parameters of the original.

        `specialised`: the program may make tensors of numbers that it read from others.
        `compares_operands`: sums over the operands become part of each operation's identity.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._directory = str(directory.resolve())
        self._numbers: dict[int, int] = {}
        self._storage_references: list[StorageWeakRef] = []
        """Weak references to the storages, by their numbers."""
        self._constant_storages: set[int] = set()
        self._known_storages: set[int] = set()
        self._input_storages: set[int] = set()
        self._open_components: list[tuple[str, str, Any]] = []
        """Each running component: its name, its file, and the frame that called it.

        The frame is stored only if the forward is code of torch.
        """
        self._open_inputs: list[frozenset[int]] = []
        """Storages of each running component's inputs."""
        self.read_into_python: set[int] = set()
        """Storages of tensors of which Python read a number."""
        self._shapes_read: set[int] = set()
        """Storages of tensors whose shape alone an operation read."""
        self._watches_components = False
        self._scatter_targets: dict[int, int] = {}
        """Storage of a scatter's result -> storage of the tensor that it is a changed copy of."""
        self._weights: dict[int, list[str]] = {}
        self._origins = Origins(parameters)
        self._specialised = specialised
        self._compares_operands = compares_operands
        for name, tensor in (weights or {}).items():
            if tensor.numel():
                self._weights.setdefault(self._storage_number(tensor), []).append(name)
        own_tensors = [*(weights or {}).values(), *other_tensors]
        self.own_storages = self.storage_numbers(own_tensors)
        """Storages of the weights and of the other tensors."""
        self._known_storages |= self.own_storages
        self._input_storages = set(self._known_storages)
        self._constant_storages |= self.own_storages - self._weights.keys()

    def register_inputs(self, values: object) -> None:
        """Register the inputs of the forward, which exist before it and which it may read."""
        for position, tensor in enumerate(tensors(values)):
            number = self._storage_number(tensor)
            if number not in self.own_storages:
                self._origins.register_input(number, position)
        self._known_storages |= self.storage_numbers(values)
        self._input_storages = set(self._known_storages)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if consist_of_plain_tensors(types):
            return NotImplemented
        kwargs = kwargs or {}
        if is_composite(func):  # under inference_mode a composite arrives whole
            with self:
                return func.decompose(*args, **kwargs)
        name, bound = name_as_copy(name_of(func), list(bind_arguments(func, args, kwargs)))
        shapes = {id(t): meta_of(t) for argument in bound for t in argument.tensors}
        before = {} if func.is_view else self._find_origins(bound)
        sums: OperandSums = ()
        if self._compares_operands and not func.is_view:
            sums = self._origins.sum_operands(name, bound, before)
        result = func(*args, **kwargs)
        inputs = (tensor for argument in bound for tensor in argument.tensors)
        self.trace.effort += estimate_effort(func, inputs, args, kwargs, result)
        self._record(func, name, bound, shapes, before, sums, result)
        return result

    def _find_origins(self, bound: list[BoundArgument]) -> dict[int, tuple[int, Origin]]:
        """Return number and origin of each tensor among some arguments, by its id()."""
        given = [(t, self._storage_number(t)) for argument in bound for t in argument.tensors]
        return {id(t): (number, self._origins.find(t, number)) for t, number in given}

    @contextmanager
    def watch_components(
        self,
        modules: dict[str, tuple[nn.Module, str]],
        names: dict[str, str],
        examine: frozenset[str] = frozenset(),
    ) -> Iterator[None]:
        """Watch these submodules as components in the body, and the rest as their parent.

        `modules`: module path -> module and the file that defines it. `names`: module path ->
        component file. `examine`: component files whose outputs are examined for NaN and infinity.
        """
        self._watches_components = True
        try:
            with wrap_forwards(
                {path: module for path, (module, _) in modules.items()},
                lambda path, forward: self._wrap_forward(
                    forward, names[path], modules[path][1], examine
                ),
            ):
                yield
        finally:
            self._watches_components = False

    def check_output(self, output: object) -> None:
        """Check the forward's output before anybody reads it."""
        if self._watches_components:
            self._record_new_tensors(output, "returns")

    def is_shape_read(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is empty, or an operation such as zeros_like took its shape."""
        return not tensor.numel() or self._storage_number(tensor) in self._shapes_read

    def retained_tensor_fault(self, component: str | None = None) -> str | None:
        """Return a fault if a tensor of the forward is still alive after its output is freed.

        `component`: the component whose tensors are meant, if components were watched.
        """
        events = (event for event in self.trace.events if event.component == component)
        result_storages = {number for event in events for number in event.writes}
        result_storages -= self._input_storages
        for number, reference in enumerate(self._storage_references):
            if number in result_storages and not reference.expired():  # type: ignore[no-untyped-call]
                return "keeps a tensor that it computed for its next call"
        return None

    def _wrap_forward(
        self, forward: Forward, name: str, file: str, examine: frozenset[str]
    ) -> Forward:
        def record_call(*args: Any, **kwargs: Any) -> Any:
            inputs = tensors([*args, *kwargs.values()])
            metas = tuple(map(meta_of, inputs))
            strides = tuple(tuple(t.stride()) for t in inputs)
            plain = plain_arguments([*args, *kwargs.values()])
            if not self._open_components:
                self._record_new_tensors(inputs, f"gives {name}")
            caller = self._innermost_frame() if _is_of_torch(forward) else None
            self._open_components.append((name, file, caller))
            self._open_inputs.append(self.storage_numbers(inputs))
            first = len(self.trace.events)
            try:
                output = forward(*args, **kwargs)
            finally:
                self._open_components.pop()
                self._open_inputs.pop()
            results = tensors(output)
            if any(
                self._storage_number(t) not in self._known_storages for t in results if t.numel()
            ):
                self._record_fault(name, f"returns a tensor that it did not compute, {_ORIGIN}")
            span = (first, len(self.trace.events))
            self.trace.calls.append(
                ComponentCall(name, metas, strides, tuple(map(meta_of, results)), span, plain)
            )
            if name in examine and not all(_is_finite(t) for t in results):
                self.trace.not_finite.add(name)
            return output

        return record_call

    def _record(
        self,
        func: Any,
        name: str,
        bound: list[BoundArgument],
        shapes: dict[int, TensorMeta],
        before: dict[int, tuple[int, Origin]],
        sums: OperandSums,
        result: Any,
    ) -> None:
        is_factory = name in CREATES
        reads: set[int] = set()
        writes: set[int] = set()
        for argument in bound:
            for tensor in argument.tensors:
                number = self._storage_number(tensor)
                if is_factory:
                    self._shapes_read.add(number)
                if argument.is_written:
                    writes.add(number)
                if not is_factory and tensor.numel() and not self._is_python_number(tensor, number):
                    reads.add(number)
        outputs = tensors(result)
        component, file, caller = (
            self._open_components[-1] if self._open_components else (None, None, None)
        )
        strays = reads - self._known_storages
        if self._specialised:
            self._origins.register_uncertain(strays)
        if strays and Watch.place is not None:
            # torch itself makes a tensor of the numbers in `x[:, [2, 1]]`.
            literals = {
                number
                for argument in bound
                for t in argument.tensors
                if (number := self._storage_number(t)) in strays
                and storage_of(t) not in Watch.given
            }
            strays -= literals
            self._known_storages |= literals
            self._constant_storages |= literals
        if strays:
            if self._watches_components:
                self._record_stray_read(name, component)
            else:
                # These are tables in objects that are no modules.
                self._constant_storages |= strays
        self.trace.reads_values |= Watch.depends_on_values
        if not outputs and not writes:
            self.trace.reads_values = True
            self.read_into_python |= reads
            if not name.startswith("_assert") and not reads <= self._constant_storages:
                self._record_value_read(before)
            return  # it reads a value into Python, or asserts something
        numbers = {self._storage_number(tensor) for tensor in outputs}
        weight = next((self._weights[n][0] for n in reads if n in self._weights), None)
        if self._watches_components and component is None and weight is not None:
            self._record_parent_fault(f"reads the weight {weight} itself", name)
        if name in _RESTRIDES:
            return
        if not writes and reads and numbers <= reads:
            return  # a view by its effect, whatever its name
        if name == "lift_fresh":
            literals = numbers - self._known_storages  # numbers written in Python
            self._constant_storages |= literals
            self._known_storages |= literals
            if self._specialised:
                self._origins.register_uncertain(literals)
        if not writes and (func.is_view or name in {"_unsafe_view", "detach", "alias"}):
            return  # a view of an empty tensor, which shares no storage
        if name == "copy_" and _is_same_memory([t for argument in bound for t in argument.tensors]):
            return  # `x[0] *= 2` copies x[0] onto itself
        line = self._current_line()
        is_move = name in COPIES and _is_move(
            [t for argument in bound for t in argument.tensors], outputs
        )
        if self._watches_components and not is_move:
            if component is None:
                self._record_parent_fault(f"computes {name} itself", None)
            elif line.rpartition(":")[0] != file and (
                caller is None or self._innermost_frame() is not caller
            ):
                self._record_parent_fault(f"computes {name} in the place of {component}", None)
        changed_tensors = [t for argument in bound if argument.is_written for t in argument.tensors]
        fills_all = name in COPIES | FILLS and not any(map(is_part, changed_tensors))
        sources = reads - writes if name in COPIES | FILLS else reads
        random = torch.Tag.nondeterministic_seeded in func.tags
        constant = not random and sources <= self._constant_storages
        if name in SCATTERS:
            # A write through a view of a view becomes two nested scatters, and only one moves
            # elements.
            (source,) = (
                self._storage_number(argument.value) for argument in bound if argument.name == "src"
            )
            (target,) = (
                self._storage_number(argument.value)
                for argument in bound
                if argument.name == "self"
            )
            is_nested = self._scatter_targets.get(source) == target
            self._scatter_targets.update(dict.fromkeys(numbers, target))
        else:
            is_nested = False
        written_storages = writes | numbers
        if constant:
            self._constant_storages |= written_storages if fills_all else written_storages - reads
        else:
            self._constant_storages -= written_storages
        self._known_storages |= written_storages
        operation = identify_operation(name, bound, shapes, outputs)
        identity = self._origins.record(
            name,
            bound,
            before,
            operation,
            list(map(self._storage_number, outputs)),
            random=random,
            sums=sums,
        )
        # A copy or a fill into a part of a tensor that depends on an input stays part of it.
        is_live = bool((reads | writes) - self._constant_storages) or random
        # A program without writes expands the number, which moves no data.
        is_broadcast = name in FILLS and fills_all
        into_part = name not in COPIES | FILLS and any(map(is_part, changed_tensors))
        into_strided = name.endswith("_") and any(not t.is_contiguous() for t in changed_tensors)
        self.trace.events.append(
            Event(
                operation,
                frozenset(reads),
                frozenset(written_storages),
                not is_live or is_nested or is_move or is_broadcast,
                line,
                component,
                Watch.calls,
                into_part,
                into_strided,
                identity,
                frozenset(writes) if fills_all else frozenset(),
                bool(writes),
                bool(self._open_inputs) and not writes.isdisjoint(self._open_inputs[-1]),
            )
        )

    def _record_value_read(self, operands: dict[int, tuple[int, Origin]]) -> None:
        component = self._open_components[-1][0] if self._open_components else None
        numbers = {number for number, _ in operands.values()}
        self.trace.value_reads.append(
            ValueRead(
                frozenset().union(*(origin for _, origin in operands.values())),
                self._origins.is_uncertain(numbers),
                component,
                self._current_line(),
            )
        )

    def _is_python_number(self, tensor: torch.Tensor, number: int) -> bool:
        """Return whether it is the 0 of `x[:1] = 0`, which torch wraps without an operation."""
        return (
            not self._watches_components
            and tensor.dim() == 0
            and number not in self._known_storages
        )

    def _record_stray_read(self, operation: str, component: str | None) -> None:
        fault = (
            f"reads a tensor that was there before ({operation}),"
            f" {_ORIGIN}, at {self._current_line()}"
        )
        if component is None:
            self.trace.parent_faults.append(fault)
        else:
            self._record_fault(component, fault)

    def _record_fault(self, component: str, fault: str) -> None:
        self.trace.component_faults.setdefault(component, fault)

    def _record_new_tensors(self, values: object, action: str) -> None:
        """Record a fault for each tensor that was created between components."""
        for tensor in tensors(values):
            number = self._storage_number(tensor)
            if tensor.numel() and number not in self._known_storages:
                self.trace.parent_faults.append(
                    f"{action} a tensor that no component made, {_ORIGIN}"
                )
                self._known_storages.add(number)

    def _record_parent_fault(self, action: str, detail: str | None) -> None:
        suffix = f" ({detail})" if detail else ""
        self.trace.parent_faults.append(f"{action}{suffix} at {self._current_line()}")

    def _storage_number(self, tensor: torch.Tensor) -> int:
        """Return the number of a tensor's storage.

        A weak reference keeps the storage's address from being reused.
        """
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage_key(storage))
        if number is None:
            number = self._numbers[storage_key(storage)] = len(self._numbers)
            self._storage_references.append(StorageWeakRef(storage))  # type: ignore[no-untyped-call]
        return number

    def storage_numbers(self, value: object) -> frozenset[int]:
        """Return the numbers of all storages in an output."""
        return frozenset(self._storage_number(tensor) for tensor in tensors(value))

    def weights_in(self, numbers: Collection[int]) -> set[str]:
        """Return all names of the weights among some storages."""
        return {name for number in numbers for name in self._weights.get(number, [])}

    def _current_line(self) -> str:
        if Watch.place is not None:
            return Watch.place
        frame = self._innermost_frame()
        if frame is None:
            return "elsewhere"
        return f"{frame.f_code.co_filename[len(self._directory) + 1 :]}:{frame.f_lineno}"

    def _innermost_frame(self) -> Any:
        """Return the innermost frame of the program's own code; None if there is none."""
        frame: Any = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(self._directory):
            frame = frame.f_back
        return frame


def find_reaching_events(
    events: list[Event], outputs: frozenset[int]
) -> tuple[list[bool], set[int]]:
    """Return for each event whether it reaches the outputs, and the storages that do.

    What a storage held before an event that replaces all of it does not reach them.
    """
    needed_storages = set(outputs)
    reaches_output = []
    for event in reversed(events):
        is_used = bool(event.writes & needed_storages)
        if is_used:
            needed_storages -= event.overwrites
            needed_storages |= event.reads - event.overwrites
        reaches_output.append(is_used)
    return reaches_output[::-1], needed_storages


_ORIGIN = "neither an input nor a weight nor computed in this forward"


def _is_of_torch(forward: Any) -> bool:
    """Return whether a module's forward is a torch class's, as in `class Model(nn.Linear)`."""
    code = getattr(getattr(forward, "__func__", forward), "__code__", None)
    return code is not None and Path(code.co_filename).is_relative_to(_TORCH)


def _is_move(inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> bool:
    """Return whether whole tensors go to another device unchanged."""
    all_tensors = [*inputs, *outputs]
    kinds = {(t.dtype, t.shape) for t in all_tensors}
    return (
        len({t.device for t in all_tensors}) > 1
        and len(kinds) == 1
        and not any(map(is_part, inputs))
    )


def _is_same_memory(inputs: list[torch.Tensor]) -> bool:
    """Return whether all tensors are the same elements of the same storage."""
    places = {(storage_of(t), t.storage_offset(), t.shape, t.stride(), t.dtype) for t in inputs}
    return len(inputs) > 1 and len(places) == 1


def _is_finite(tensor: torch.Tensor) -> bool:
    with without_modes():
        return all(map(all_finite, pieces_of(tensor)))
