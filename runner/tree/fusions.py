"""Decides which kernels form fusions by their data flow: straight lines, and blocks up to a join.

docs/decisions/how-a-model-comes-apart.md states the rules; this module implements b and c, and the
fusions of kernels that depend on no input.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runner.graph.recognition.recognize import Kernel
from runner.graph.terms import snake_case
from runner.tree.interface import Program, interface

LARGEST_FUSION = 16
"""Most parts of a module call that is one fusion; a straight line of kernels is one part."""
FEWEST_TURNS = 3
"""Fewest turns of a loop, or calls of one module, that become fusions of any size."""
MOST_KERNELS = 32
"""Most kernels in a module call that is one fusion."""
LARGEST_BLOCK = 64
"""Most kernels in a call that is one block, not counting arithmetic on indices."""
_STAND_ALONE = {"other", "random", "creation"}
"""Kinds of kernels that are never in a straight line."""
CONCATENATIONS = {"cat", "stack", "hstack", "vstack", "dstack"}
_PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum", "outer", "mv"}
"""Contractions that may have no weights."""
_ATTENTION = "attention"
_EXPERTS = {"topk_router", "expert_linear", "expert_combine", "expert_dispatch"}
"""Operations that make a block a mixture of experts."""


Statement = tuple[str, int]
"""File and first line."""
StatementPath = tuple[tuple[tuple[str, str, int], ...], Statement]
"""The function calls that lead to a statement, and the statement."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """Kernels that become one fusion, and why."""

    kernels: tuple[int, ...]
    """Positions in the program's list of kernels."""
    reason: str
    stem: str | None = None
    """Its name in the field; None if its operations name it."""


class KernelFlow:
    """The data flow between kernels, looking through views."""

    def __init__(self, program: Program) -> None:
        self.program, self.kernels, self.owner = program, program.kernels, program.owner
        self._readers_of_value: dict[str, tuple[frozenset[int], frozenset[int], bool]] = {}
        self.inputs: list[list[tuple[str, int | None]]] = [
            self._inputs(kernel) for kernel in self.kernels
        ]
        self.outputs: list[tuple[str, ...]] = [
            interface(program, kernel.members).outputs for kernel in self.kernels
        ]
        self.constant: list[bool] = []
        for inputs in self.inputs:  # each kernel reads earlier ones only
            self.constant.append(
                all(producer is not None and self.constant[producer] for _, producer in inputs)
            )
        for index in self._kernels_varying_in_loops():
            self.constant[index] = False
        self._activations = [
            [(name, k) for name, k in inputs if k is None or not self.constant[k]]
            for inputs in self.inputs
        ]
        self.contractions = [int(k.kind == "contraction") for k in self.kernels]
        self._readers_of_kernel: dict[int, tuple[frozenset[int], frozenset[int], bool]] = {}
        self.users = [tuple(sorted(self.readers_of_kernel(k)[0])) for k in range(len(self.kernels))]

    def _kernels_varying_in_loops(self) -> list[int]:
        """Return the kernels of loops that are constant in some turns of the loop only.

        A statement that gives the same operations three times in a row, or more, is in a loop. In
        the first turns its operands may be constants.
        """
        runs: dict[Hashable, list[int]] = {}
        for k, path in enumerate(self.statement_paths(range(len(self.kernels)))):
            if path is not None:
                paths = tuple(scope.path for scope in self.program.scopes[k])
                runs.setdefault((paths, path), []).append(k)
        kernels = []
        for run in runs.values():
            operations = [self.kernels[k].operation for k in run]
            for size in range(1, len(run) // FEWEST_TURNS + 1):
                if operations[:size] * (len(run) // size) == operations:
                    in_turns = (run[n::size] for n in range(size))
                    mixed_positions = (
                        kernels_at_position
                        for kernels_at_position in in_turns
                        if not all(self.constant[k] for k in kernels_at_position)
                    )
                    kernels += [
                        k for kernels_at_position in mixed_positions for k in kernels_at_position
                    ]
                    break
        return kernels

    def base(self, name: str) -> str:
        """Return the value that a chain of views between kernels shows."""
        while True:
            i = self.program.producers.get(name)
            if i is None or i in self.owner or not self.program.graph.operations[i].view:
                return name
            name = next(self.program.graph.operations[i].refs())

    def producer(self, name: str) -> int | None:
        """Return the kernel that computes the value that `name` shows, or None."""
        i = self.program.producers.get(self.base(name))
        return None if i is None else self.owner.get(i)

    def _inputs(self, kernel: Kernel) -> list[tuple[str, int | None]]:
        """Return (name, producing kernel) of each value that a kernel reads from outside.

        Parameters, buffers and constants of the model are not included.
        """
        inside = {n for i in kernel.members for n in self.program.graph.operations[i].outputs}
        names: dict[str, None] = {}
        for i in kernel.members:
            for name in self.program.graph.operations[i].refs():
                if name not in inside and not self.program.is_state(name):
                    names[name] = None
        return [(name, self.producer(name)) for name in names]

    def activations(self, k: int) -> list[tuple[str, int | None]]:
        """Return (name, producing kernel) of each value that depends on the model's inputs."""
        return self._activations[k]

    def readers_of_kernel(self, k: int) -> tuple[frozenset[int], frozenset[int], bool]:
        """Return the readers of a kernel's results: (kernels, views, whether the model does).

        The kernels read a result or a view of it; the views are those in between. The model reads
        the values that it returns.
        """
        if k not in self._readers_of_kernel:
            parts = [self.readers_of_value(name) for name in self.outputs[k]]
            self._readers_of_kernel[k] = (
                frozenset().union(*(p[0] for p in parts)),
                frozenset().union(*(p[1] for p in parts)),
                any(p[2] for p in parts),
            )
        return self._readers_of_kernel[k]

    def readers_of_value(self, name: str) -> tuple[frozenset[int], frozenset[int], bool]:
        """Return the readers of a value: (kernels, views, whether the model reads it).

        The kernels read the value or a view of it; the views are those in between. The model reads
        the values that it returns.
        """
        if name in self._readers_of_value:
            return self._readers_of_value[name]
        readers: set[int] = set()
        views: set[int] = set()
        returned = name in self.program.returned_values
        for i in self.program.consumers.get(name, ()):
            if i in self.owner:
                readers.add(self.owner[i])
                continue
            views.add(i)
            for out in self.program.graph.operations[i].outputs:
                below = self.readers_of_value(out)
                readers |= below[0]
                views |= below[1]
                returned |= below[2]
        self._readers_of_value[name] = (frozenset(readers), frozenset(views), returned)
        return self._readers_of_value[name]

    def ancestors(self, k: int, among: Collection[int]) -> set[int]:
        """Return the kernels among `among` that a kernel's result depends on."""
        ancestors: set[int] = set()
        waiting = [k]
        while waiting:
            for _, producer in self.activations(waiting.pop()):
                if producer is not None and producer in among and producer not in ancestors:
                    ancestors.add(producer)
                    waiting.append(producer)
        return ancestors

    def has_weights(self, k: int) -> bool:
        """Return whether a kernel reads tensors of the model, or constants computed from them."""
        members = (self.program.graph.operations[i] for i in self.kernels[k].members)
        reads_states = any(self.program.is_state(name) for op in members for name in op.refs())
        return reads_states or len(self.inputs[k]) > len(self.activations(k))

    def reads_value(self, k: int, name: str, among: Collection[int]) -> bool:
        """Return whether a kernel reads a value or a view of it, directly or through `among`."""
        value = self.base(name)
        return any(
            self.base(read) == value
            for reader in (k, *self.ancestors(k, among))
            for read, _ in self.activations(reader)
        )

    def depends_on(self, k: int, source: int, among: Collection[int]) -> bool:
        """Return whether a kernel's result depends on `source` directly or through `among`."""
        seen, waiting = {k}, [k]
        while waiting:
            for _, producer in self.activations(waiting.pop()):
                if producer == source:
                    return True
                if producer is None or producer < source:  # A kernel reads earlier ones alone.
                    continue
                if producer in among and producer not in seen:
                    seen.add(producer)
                    waiting.append(producer)
        return False

    def statements(self, kernels: Iterable[int]) -> tuple[Statement | None, ...]:
        """Return the statement that makes each kernel's result."""
        return tuple(path and path[-1] for path in self.statement_paths(kernels))

    def statement_paths(self, kernels: Iterable[int]) -> tuple[StatementPath | None, ...]:
        """Return the statement that makes each kernel's result, with the function calls to it."""
        origins = (
            self.program.graph.operations[self.kernels[k].members[-1]].origin for k in kernels
        )
        return tuple(
            (origin.functions, (origin.file, origin.statement)) if origin else None
            for origin in origins
        )

    def functions(self, k: int) -> tuple[tuple[str, str, int], ...]:
        """Return file, name and line of each function call that leads to a kernel's result."""
        origin = self.program.graph.operations[self.kernels[k].members[-1]].origin
        return origin.functions if origin is not None else ()

    def is_in_loop(self, k: int, depth: int) -> bool:
        """Return whether a kernel runs in a loop of a function `depth` calls below the forward."""
        origin = self.program.graph.operations[self.kernels[k].members[-1]].origin
        return origin is not None and origin.loops[depth : depth + 1] == (True,)

    def only_reader(self, k: int) -> int | None:
        """Return the only kernel that reads a kernel's result.

        Returns None if several do, or if the model returns the result.
        """
        readers, _, returned = self.readers_of_kernel(k)
        return min(readers) if len(readers) == 1 and not returned else None


# --- joins ----------------------------------------------------------------------------------------


def is_join(flow: KernelFlow, k: int) -> bool:
    """Return whether activations meet: a residual add, a product of branches, a concatenation."""
    kernel = flow.kernels[k]
    activations = flow.activations(k)
    if len(activations) < 2 or kernel.kind == "contraction":
        return False
    if kernel.operation in CONCATENATIONS:
        return True
    return kernel.kind in {"pointwise", "copy"} and len(_streams(flow, k)) > 1


def _streams(flow: KernelFlow, k: int) -> list[tuple[str, int | None]]:
    """Return the largest activations that a kernel reads."""
    activations = flow.activations(k)
    sizes = [flow.program.spec(name).numel for name, _ in activations]
    return [a for a, size in zip(activations, sizes, strict=True) if size == max(sizes)]


def is_residual(flow: KernelFlow, k: int, inside: Collection[int]) -> bool:
    """Return whether a kernel adds a value to the result of a branch that reads the value.

    `inside` are the kernels of a layer. The value is the layer's own input, or a whole result that
    the branch reads too.
    """
    if flow.kernels[k].operation != "add" or not is_join(flow, k):
        return False
    streams = _streams(flow, k)
    size = flow.program.spec(streams[0][0]).numel
    if any(flow.program.spec(flow.base(name)).numel != size for name, _ in streams):
        return False
    makers = [m if m in inside else None for _, m in streams]
    return any(
        branch is not None
        and (
            flow.reads_value(branch, streams[n][0], inside)
            if skip is None
            else len(flow.readers_of_kernel(skip)[0]) > 1 and flow.depends_on(branch, skip, inside)
        )
        and not _is_mix_or_state(flow, branch, streams[n][0], inside)
        for n, skip in enumerate(makers)
        for branch in (*makers[:n], *makers[n + 1 :])
    )


def _is_mix_or_state(flow: KernelFlow, branch: int, value: str, inside: Collection[int]) -> bool:
    """Return whether a value plus a branch that reads it is another thing than a residual add.

    It may mix two values, `x + a * (y - x)`, where no contraction computes y from x. Or it may be
    the new state of a recurrence, `S + k.T @ (v - w @ S)`, where no contraction has weights.
    """
    path = _path_from(flow, value, branch, inside)
    factor: int | None = branch
    while factor is not None and flow.kernels[factor].operation == "mul":
        makers = [m for _, m in flow.activations(factor) if m in path]
        factor = next((m for m in makers if flow.kernels[m].operation in {"mul", "sub"}), None)
    if factor is not None and flow.kernels[factor].operation == "sub":
        names = [flow.base(name) for name, _ in flow.activations(factor)]
        from_value = flow.ancestors(factor, path)
        if flow.base(value) in names and not any(flow.contractions[k] for k in from_value):
            return True
    products = [k for k in path if flow.contractions[k]]
    return (
        bool(products)
        and all(flow.kernels[k].operation in _PRODUCTS for k in products)
        and not any(flow.kernels[k].kind == "softmax" or flow.has_weights(k) for k in path)
    )


def _path_from(flow: KernelFlow, value: str, k: int, inside: Collection[int]) -> set[int]:
    """Return the kernels inside a layer that compute a kernel's result from a value."""
    source, base = flow.producer(value), flow.base(value)
    after = {m for m in inside if (source is None or m > source) and m <= k}
    path = set[int]()
    for m in sorted({k, *flow.ancestors(k, after)}):
        if any(flow.base(n) == base or maker in path for n, maker in flow.activations(m)):
            path.add(m)
    return path


def is_small(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Return whether a call has few enough kernels for one block, not counting those of indices."""
    return sum(not _is_of_indices(flow, k) for k in kernels) <= LARGEST_BLOCK


def is_branch(flow: KernelFlow, kernels: Collection[int], joins: Collection[int]) -> bool:
    """Return whether kernels are everything between a value and the residual add of it.

    They may include the add, or several adds side by side, as their last kernels.
    """
    inside = set(kernels)
    leaving = [k for k in kernels if not flow.readers_of_kernel(k)[0] <= inside]
    own_joins = [k for k in joins if k in kernels]
    if own_joins:
        is_side_by_side = not any(
            flow.ancestors(k, kernels).intersection(own_joins) for k in own_joins
        )
        return is_side_by_side and set(leaving) <= set(own_joins)
    return any(_reaches_residual_add(flow, k, kernels, joins) for k in leaving)


def _reaches_residual_add(
    flow: KernelFlow, k: int, kernels: Collection[int], joins: Collection[int]
) -> bool:
    """Return whether a result is added, element by element, to a value it was computed from."""
    reader = flow.only_reader(k)
    while reader is not None and reader not in joins and flow.kernels[reader].kind == "pointwise":
        k, reader = reader, flow.only_reader(reader)
    if reader is None or reader not in joins:
        return False
    read = {m for member in kernels for _, m in flow.activations(member)}
    others = {m for _, m in _streams(flow, reader) if m is not None} - read - {k}
    if not others:
        return True
    earlier = range(min(others), min(kernels))  # a kernel reads earlier ones alone
    ancestors = {a for m in read if m is not None for a in flow.ancestors(m, earlier)}
    return others <= ancestors


# --- blocks up to a residual join -----------------------------------------------------------------


def blocks_up_to_joins(
    flow: KernelFlow, stretches: Iterable[Sequence[int]], joins: Collection[int]
) -> list[Fusion]:
    """Return, for each unbroken stretch of kernels, the part up to a residual join.

    The part must have a contraction. It includes a normalisation that is the only reader of the
    join's sum (post-norm).
    """
    fusions = []
    for stretch in stretches:
        block: list[int] = []
        for position, k in enumerate(stretch):
            block.append(k)
            next_kernel = next(iter(stretch[position + 1 :]), None)
            if k in joins:
                ends = not (_is_norm(flow, next_kernel) and flow.only_reader(k) == next_kernel)
            else:
                ends = len(block) > 1 and block[-2] in joins
            if ends and any(flow.contractions[m] for m in block):
                join = next(m for m in reversed(block) if m in joins)
                reason = f"all that leads up to the residual add{_at_line(flow, join)}"
                fusions.append(Fusion(tuple(block), reason, block_stem(flow, block)))
            if ends:
                block = []
    return fusions


def _at_line(flow: KernelFlow, k: int) -> str:
    """Return ` at line 88`; empty if the author's line is not known."""
    origin = flow.program.graph.operations[max(flow.kernels[k].members)].origin
    return f" at line {origin.line}" if origin is not None and origin.line is not None else ""


def _is_norm(flow: KernelFlow, k: int | None) -> bool:
    return k is not None and flow.kernels[k].kind == "normalization"


def block_stem(flow: KernelFlow, kernels: Sequence[int]) -> str | None:
    """Return the field's name for a block that ends in a residual add; None if it has none."""
    operations = [flow.kernels[k].operation for k in kernels]
    special = special_stem(operations)
    if special:
        return special
    if any(name.startswith("conv") for name in operations):
        return "residual_block"
    if "softmax" in operations and not _PRODUCTS.isdisjoint(operations):
        return "attention_block"
    return "mlp_block" if sum(flow.contractions[k] for k in kernels) > 1 else None


def special_stem(operations: Sequence[str]) -> str | None:
    """Return `moe_block` for experts, `attention_block` for attention, else None."""
    if _EXPERTS.intersection(operations):
        return "moe_block"
    return "attention_block" if any(name.endswith(_ATTENTION) for name in operations) else None


# --- constants ------------------------------------------------------------------------------------


def constant_fusions(flow: KernelFlow, kernels: Collection[int]) -> list[Fusion]:
    """Return fusions of connected kernels that depend on parameters and shapes alone.

    A fusion does not cross the boundary of a function that also computes something from inputs.
    """
    remaining = {k for k in kernels if flow.constant[k]}
    varying_functions = {flow.functions(k)[:1] for k in kernels if not flow.constant[k]}
    function = {
        k: flow.functions(k)[:1] if flow.functions(k)[:1] in varying_functions else ()
        for k in remaining
    }
    fusions = []
    while remaining:
        first = min(remaining)
        waiting, group = [first], set[int]()
        while waiting:
            k = waiting.pop()
            if k in remaining and function[k] == function[first]:
                remaining.discard(k)
                group.add(k)
                waiting += [*flow.users[k], *(m for _, m in flow.inputs[k] if m is not None)]
        if len(group) > 1:
            stem = assigned_variable(flow, max(group))
            reason = f"its {len(group)} kernels depend on no input of the model"
            fusions.append(Fusion(tuple(sorted(group)), reason, stem))
    return fusions


def assigned_variable(flow: KernelFlow, k: int) -> str | None:
    """Return the author's variable for a kernel's result: `relative_position_bias`."""
    origin = flow.program.graph.operations[max(flow.kernels[k].members)].origin
    targets = origin.targets if origin is not None else ()
    return snake_case(targets[0]) if len(targets) == 1 and len(targets[0]) > 2 else None


# --- straight lines -------------------------------------------------------------------------------


def straight_lines(flow: KernelFlow, kernels: Iterable[int], indices: bool = True) -> list[Fusion]:
    """Return straight lines of data flow around at most one contraction, of two kernels or more.

    With `indices`, arithmetic on indices and masks is part of the line that is its only reader.
    """
    line_of: dict[int, list[int]] = {}
    all_lines: list[list[int]] = []
    depth: dict[int, int] = {}
    for k in sorted(set(kernels)):
        depth[k] = 1 + max(
            (depth.get(m, 0) for _, m in flow.activations(k) if m is not None), default=0
        )
        line = _line_to_continue(flow, k, line_of, depth)
        if line is None:
            line = []
            all_lines.append(line)
        line.append(k)
        line_of[k] = line
    for line in sorted(all_lines, key=max, reverse=True) if indices else ():
        if (reader := _line_reading_indices(flow, line, line_of)) is not None:
            reader[:] = sorted([*reader, *line])
            line_of.update(dict.fromkeys(line, reader))
            line.clear()
    return [Fusion(tuple(line), _line_reason(flow, line)) for line in all_lines if len(line) > 1]


def _line_reading_indices(
    flow: KernelFlow, line: Sequence[int], line_of: Mapping[int, list[int]]
) -> list[int] | None:
    """Return the only line that reads arithmetic on indices and masks; None for any other line.

    A constant, such as positions, belongs only to a line that is arithmetic on indices itself.
    """
    if any(flow.readers_of_kernel(k)[2] or not _is_of_indices(flow, k) for k in line):
        return None
    readers = {reader for k in line for reader in flow.readers_of_kernel(k)[0]}.difference(line)
    if not readers or not readers <= line_of.keys():
        return None
    if any(flow.constant[k] for k in line) and not all(_is_of_indices(flow, k) for k in readers):
        return None
    reading_lines = {id(line_of[reader]): line_of[reader] for reader in readers}
    return next(iter(reading_lines.values())) if len(reading_lines) == 1 else None


def _is_of_indices(flow: KernelFlow, k: int) -> bool:
    """Return whether a kernel computes integers or booleans from others, element by element."""
    values = [*flow.outputs[k], *(name for name, _ in flow.inputs[k])]
    exact = all(flow.program.spec(v).dtype.startswith(("int", "uint", "bool")) for v in values)
    return exact and (flow.constant[k] or flow.kernels[k].kind in {"pointwise", "copy"})


def count_parts(flow: KernelFlow, kernels: Collection[int]) -> int:
    """Return how many parts kernels make if each straight line is one part."""
    return len(kernels) - sum(len(line.kernels) - 1 for line in straight_lines(flow, kernels))


def fits_fusion(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Return whether kernels are few enough for one fusion."""
    if len(kernels) <= LARGEST_FUSION:
        return True
    return len(kernels) <= MOST_KERNELS and count_parts(flow, kernels) <= LARGEST_FUSION


def is_mostly_unfused(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Return whether most kernels would be in no straight line without the call around them."""
    return sum(len(line.kernels) for line in straight_lines(flow, kernels)) < len(kernels) / 2


def _line_reason(flow: KernelFlow, line: Sequence[int]) -> str:
    """Return why kernels are one line, and where it ends, for the log."""
    around = [flow.kernels[k].operation for k in line if flow.contractions[k]]
    chain = f"a chain around one {around[0]}" if around else "a chain"
    reason = f"{chain}: nothing else reads what one kernel hands to the next"
    readers, _, returned = flow.readers_of_kernel(line[-1])
    if returned:
        return f"{reason}; it ends with a result of the model"
    if len(readers) > 1:
        return f"{reason}; it ends where {len(readers)} kernels read the result"
    next_one = f"; it ends before {flow.kernels[min(readers)].operation}" if readers else ""
    return f"{reason}{next_one}"


def _line_to_continue(
    flow: KernelFlow, k: int, line_of: dict[int, list[int]], depth: Mapping[int, int]
) -> list[int] | None:
    """Return the line that a kernel continues: that of its main input, if nobody else reads it.

    Of several streams that meet in a kernel, the main one is that of most kernels in a row. A
    running sum, as in a loop, belongs to the line of its new term if that has a contraction.
    """
    if flow.kernels[k].kind in _STAND_ALONE or not flow.activations(k):
        return None
    join = is_join(flow, k)
    if join and flow.kernels[k].kind != "pointwise":
        return None
    ends = [m for _, m in _streams(flow, k) if m is not None and m in line_of]
    continuable = [m for m in ends[: None if join else 1] if _may_continue(flow, k, line_of[m])]
    if len(continuable) < 2:
        return line_of[continuable[0]] if continuable else None
    if flow.kernels[k].operation == "add":
        sums = {m for m in continuable if flow.kernels[m].operation == "add"}
        terms = [
            m
            for m in continuable
            if m not in sums and any(flow.contractions[n] for n in line_of[m])
        ]
        continuable = terms if sums and terms else continuable
    return line_of[max(continuable, key=lambda m: (depth[m], -m))]


def _may_continue(flow: KernelFlow, k: int, line: list[int]) -> bool:
    """Return whether a kernel may be the next one in a line."""
    if flow.only_reader(line[-1]) != k or flow.kernels[line[-1]].kind in _STAND_ALONE:
        return False
    sums = (m for m in line if flow.kernels[m].kind == "pointwise" and is_join(flow, m))
    if flow.contractions[k] and any(True for _ in sums):
        return False  # a sum or product of two streams ends a contraction's line
    if _is_one_of_several(flow, line[-1], k):
        return False
    if _is_norm(flow, k) and _is_norm(flow, line[0]) and _leads_to_contraction(flow, k):
        return False
    if "upsample" in flow.kernels[k].operation:
        return False  # a line begins where there are more positions
    if any(flow.contractions[m] for m in line) and _reduces_space(flow, k):
        return not any(_reduces_space(flow, m) for m in line)
    return sum(flow.contractions[m] for m in line) + flow.contractions[k] <= 1


def _is_one_of_several(flow: KernelFlow, k: int, reader: int) -> bool:
    """Return whether `reader` reads several concatenations, such as those of keys and of values."""
    operation = flow.kernels[k].operation
    siblings = {m for _, m in flow.activations(reader) if m is not None} - {k}
    same = any(flow.kernels[m].operation == operation for m in siblings)
    return operation in CONCATENATIONS and same


def _reduces_space(flow: KernelFlow, k: int) -> bool:
    """Return whether a normalisation needs every position of an image or a sequence at once.

    One before a contraction and one after it need at least two kernel launches.
    """
    if not _is_norm(flow, k):
        return False
    operations = [flow.program.graph.operations[i] for i in flow.kernels[k].members]
    return any(
        op.name in {"group_norm", "instance_norm"}
        or (op.name == "batch_norm" and op.arg("training") is True)
        or (isinstance(over := op.arg("normalized_shape"), tuple) and len(over) > 1)
        for op in operations
    )


def _leads_to_contraction(flow: KernelFlow, k: int) -> bool:
    """Return whether a norm is the first step of the next contraction's line (pre-activation)."""
    reader = flow.only_reader(k)
    while reader is not None and not flow.contractions[reader] and not is_join(flow, reader):
        reader = flow.only_reader(reader)
    return reader is not None and flow.contractions[reader] > 0


def reason_without_fusion(flow: KernelFlow, k: int) -> str:
    """Return why a kernel is in no fusion, for the log."""
    kernel = flow.kernels[k]
    if flow.constant[k]:
        return "it depends on no input of the model"
    if kernel.kind in _STAND_ALONE:
        return f"{kernel.operation} is never fused with its neighbours"
    if len(flow.activations(k)) > 1:
        return "several kernels' results meet in it"
    if not flow.contractions[k] and (
        len(flow.readers_of_kernel(k)[0]) > 1 or flow.readers_of_kernel(k)[2]
    ):
        return "several kernels read its result"
    return "its neighbours are in other parts, or never fused"
