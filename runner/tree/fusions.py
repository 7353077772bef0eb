"""Fusions: which kernels an engineer would name together, and which run as one straight line.

docs/decisions/how-a-model-comes-apart.md states the rules: here are b, c, and what depends on no
input of the model.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runner.graph.recognition.recognize import Kernel
from runner.graph.terms import snake_case
from runner.tree.interface import Program, interface

LARGEST_FUSION = 16
"""Parts of a module call that is drawn as one fusion; a straight line of kernels is one part."""
FEWEST_TURNS = 3
"""Turns of a loop, or calls of one module, that are steps: fusions of however many kernels."""
MOST_KERNELS = 32
"""Kernels in such a fusion."""
LARGEST_BLOCK = 64
"""Kernels in a call that is one block, arithmetic on indices not counted."""
_STAND_ALONE = {"other", "random", "creation"}
CONCATENATIONS = {"cat", "stack", "hstack", "vstack", "dstack"}
_ATTENTION = "attention"
_EXPERTS = {"topk_router", "expert_linear", "expert_combine", "expert_dispatch"}


Statement = tuple[str, int]
"""File and first line."""
Place = tuple[tuple[tuple[str, str, int], ...], Statement]
"""Calls of functions, and the statement that they lead to."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """Kernels (positions in the kernel list) that are drawn together, and why."""

    kernels: tuple[int, ...]
    reason: str
    stem: str | None = None
    """Its name in the field; None where its operations name it."""


class KernelFlow:
    """The kernels' data flow: which kernel reads what of which, looking through views."""

    def __init__(self, program: Program) -> None:
        self.program, self.kernels, self.owner = program, program.kernels, program.owner
        self._readers: dict[str, tuple[frozenset[int], frozenset[int], bool]] = {}
        self.inputs: list[list[tuple[str, int | None]]] = [
            self._inputs(kernel) for kernel in self.kernels
        ]
        self.outputs: list[tuple[str, ...]] = [
            interface(program, kernel.members).outputs for kernel in self.kernels
        ]
        self.constant: list[bool] = []
        for found in self.inputs:  # kernels are in an order in which each reads earlier ones only
            self.constant.append(
                all(made_by is not None and self.constant[made_by] for _, made_by in found)
            )
        for place in self._of_a_loop():
            self.constant[place] = False
        self.contractions = [int(k.kind == "contraction") for k in self.kernels]
        self._exits: dict[int, tuple[frozenset[int], frozenset[int], bool]] = {}
        self.users = [tuple(sorted(self.exits(k)[0])) for k in range(len(self.kernels))]

    def _of_a_loop(self) -> list[int]:
        """Constant kernels of a loop's first turns that are no constants in the turns that follow.

        A statement that gives the same operations three times in a row, or more, is in a loop.
        """
        runs: dict[Hashable, list[int]] = {}
        for k, place in enumerate(self.places(range(len(self.kernels)))):
            if place is not None:
                paths = tuple(scope.path for scope in self.program.scopes[k])
                runs.setdefault((paths, place), []).append(k)
        found = []
        for run in runs.values():
            operations = [self.kernels[k].operation for k in run]
            for size in range(1, len(run) // FEWEST_TURNS + 1):
                if operations[:size] * (len(run) // size) == operations:
                    in_turns = (run[n::size] for n in range(size))
                    mixed = (same for same in in_turns if not all(self.constant[k] for k in same))
                    found += [k for same in mixed for k in same]
                    break
        return found

    def base(self, name: str) -> str:
        """The value that a chain of views between kernels looks at."""
        while True:
            i = self.program.producers.get(name)
            if i is None or i in self.owner or not self.program.graph.operations[i].view:
                return name
            name = next(self.program.graph.operations[i].refs())

    def producer(self, name: str) -> int | None:
        """The kernel that computes what `name` shows."""
        i = self.program.producers.get(self.base(name))
        return None if i is None else self.owner.get(i)

    def _inputs(self, kernel: Kernel) -> list[tuple[str, int | None]]:
        """(name, producing kernel) of what a kernel reads from outside, states left out."""
        inside = {n for i in kernel.members for n in self.program.graph.operations[i].outputs}
        names: dict[str, None] = {}
        for i in kernel.members:
            for name in self.program.graph.operations[i].refs():
                if name not in inside and not self.program.is_state(name):
                    names[name] = None
        return [(name, self.producer(name)) for name in names]

    def activations(self, k: int) -> list[tuple[str, int | None]]:
        """What a kernel reads that depends on the model's inputs: (name, producing kernel)."""
        return [
            (name, made_by)
            for name, made_by in self.inputs[k]
            if made_by is None or not self.constant[made_by]
        ]

    def exits(self, k: int) -> tuple[frozenset[int], frozenset[int], bool]:
        """(kernels that read it, views on the way, whether the model returns some of it)."""
        if k not in self._exits:
            parts = [self.readers(name) for name in self.outputs[k]]
            self._exits[k] = (
                frozenset().union(*(p[0] for p in parts)),
                frozenset().union(*(p[1] for p in parts)),
                any(p[2] for p in parts),
            )
        return self._exits[k]

    def readers(self, name: str) -> tuple[frozenset[int], frozenset[int], bool]:
        """(kernels that read it or a view of it, those views, whether the model returns it)."""
        if name in self._readers:
            return self._readers[name]
        readers: set[int] = set()
        views: set[int] = set()
        returned = name in self.program.returned
        for i in self.program.consumers.get(name, ()):
            if i in self.owner:
                readers.add(self.owner[i])
                continue
            views.add(i)
            for out in self.program.graph.operations[i].outputs:
                below = self.readers(out)
                readers |= below[0]
                views |= below[1]
                returned |= below[2]
        self._readers[name] = (frozenset(readers), frozenset(views), returned)
        return self._readers[name]

    def ancestors(self, k: int, among: Collection[int]) -> set[int]:
        """The kernels of a set that a kernel's result depends on."""
        found: set[int] = set()
        waiting = [k]
        while waiting:
            for _, made_by in self.activations(waiting.pop()):
                if made_by is not None and made_by in among and made_by not in found:
                    found.add(made_by)
                    waiting.append(made_by)
        return found

    def statements(self, kernels: Iterable[int]) -> tuple[Statement | None, ...]:
        """The statement that makes each kernel's result."""
        return tuple(place and place[-1] for place in self.places(kernels))

    def places(self, kernels: Iterable[int]) -> tuple[Place | None, ...]:
        """The statement that makes each kernel's result, after the calls of functions around it."""
        last = (self.program.graph.operations[self.kernels[k].members[-1]].origin for k in kernels)
        return tuple((at.functions, (at.file, at.statement)) if at else None for at in last)

    def functions(self, k: int) -> tuple[tuple[str, str, int], ...]:
        """File, name and line of the call of each function that leads to a kernel's result."""
        origin = self.program.graph.operations[self.kernels[k].members[-1]].origin
        return origin.functions if origin is not None else ()

    def only_reader(self, k: int) -> int | None:
        """The one kernel that reads a kernel's result, where the model does not return it."""
        readers, _, returned = self.exits(k)
        return min(readers) if len(readers) == 1 and not returned else None


# --- joins ----------------------------------------------------------------------------------------


def is_join(flow: KernelFlow, k: int) -> bool:
    """Two streams of activations meet: a residual add, a product of branches, a concatenation."""
    kernel = flow.kernels[k]
    activations = flow.activations(k)
    if len(activations) < 2 or kernel.kind == "contraction":
        return False
    if kernel.operation in CONCATENATIONS:
        return True
    return kernel.kind in {"pointwise", "copy"} and len(_streams(flow, k)) > 1


def _streams(flow: KernelFlow, k: int) -> list[tuple[str, int | None]]:
    """The activations that a kernel reads, of the largest size."""
    activations = flow.activations(k)
    sizes = [flow.program.spec(name).numel for name, _ in activations]
    return [a for a, size in zip(activations, sizes, strict=True) if size == max(sizes)]


def is_residual(flow: KernelFlow, k: int, inside: Collection[int]) -> bool:
    """Whether a kernel adds a value to what a branch made of it; `inside`: the kernels of a layer.

    The value is the layer's own input, or a whole result that the branch reads too.
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
            skip is None
            or (len(flow.exits(skip)[0]) > 1 and skip in flow.ancestors(branch, inside))
        )
        for n, skip in enumerate(makers)
        for branch in (*makers[:n], *makers[n + 1 :])
    )


def is_small(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Whether kernels are few enough for a call that is one block; indices are not counted."""
    return sum(not _is_of_indices(flow, k) for k in kernels) <= LARGEST_BLOCK


def is_branch(flow: KernelFlow, kernels: Collection[int], joins: Collection[int]) -> bool:
    """Whether kernels are all that is between a value and the residual add of it.

    They may end in the add, or in several side by side.
    """
    leaving = [k for k in kernels if not flow.exits(k)[0] <= set(kernels)]
    own = [k for k in joins if k in kernels]
    if own:
        apart = not any(flow.ancestors(k, kernels).intersection(own) for k in own)
        return apart and set(leaving) <= set(own)
    return any(_is_added(flow, k, kernels, joins) for k in leaving)


def _is_added(flow: KernelFlow, k: int, kernels: Collection[int], joins: Collection[int]) -> bool:
    """Whether a result reaches, element by element, the residual add of what it was made of."""
    reader = flow.only_reader(k)
    while reader is not None and reader not in joins and flow.kernels[reader].kind == "pointwise":
        k, reader = reader, flow.only_reader(reader)
    if reader is None or reader not in joins:
        return False
    before = range(min(kernels))
    read = {m for inside in kernels for _, m in flow.activations(inside)}
    above = {a for m in read if m is not None for a in flow.ancestors(m, before)}
    return {m for _, m in _streams(flow, reader)} <= {k, None} | read | above


# --- blocks up to a residual join -----------------------------------------------------------------


def blocks_up_to_joins(
    flow: KernelFlow, stretches: Iterable[Sequence[int]], joins: Collection[int]
) -> list[Fusion]:
    """The part of each unbroken stretch up to a residual join, where it holds a contraction.

    A normalisation that alone reads the join's sum closes the block (post-norm).
    """
    found = []
    for stretch in stretches:
        block: list[int] = []
        for position, k in enumerate(stretch):
            block.append(k)
            after = next(iter(stretch[position + 1 :]), None)
            if k in joins:
                ended = not (_is_norm(flow, after) and flow.only_reader(k) == after)
            else:
                ended = len(block) > 1 and block[-2] in joins
            if ended and any(flow.contractions[m] for m in block):
                join = next(m for m in reversed(block) if m in joins)
                reason = f"all that leads up to the residual add{_at_line(flow, join)}"
                found.append(Fusion(tuple(block), reason, block_stem(flow, block)))
            if ended:
                block = []
    return found


def _at_line(flow: KernelFlow, k: int) -> str:
    """` at line 88`, where the author's line is known."""
    origin = flow.program.graph.operations[max(flow.kernels[k].members)].origin
    return f" at line {origin.line}" if origin is not None and origin.line is not None else ""


def _is_norm(flow: KernelFlow, k: int | None) -> bool:
    return k is not None and flow.kernels[k].kind == "normalization"


def block_stem(flow: KernelFlow, kernels: Sequence[int]) -> str | None:
    """What the field calls a block that ends in a residual add; None where it has no name."""
    operations = [flow.kernels[k].operation for k in kernels]
    special = special_stem(operations)
    if special:
        return special
    if any(name.startswith("conv") for name in operations):
        return "residual_block"
    return "mlp_block" if sum(flow.contractions[k] for k in kernels) > 1 else None


def special_stem(operations: Sequence[str]) -> str | None:
    """`moe_block` where there are experts, `attention_block` where there is attention."""
    if _EXPERTS.intersection(operations):
        return "moe_block"
    return "attention_block" if any(name.endswith(_ATTENTION) for name in operations) else None


# --- what depends on no input ---------------------------------------------------------------------


def constant_fusions(flow: KernelFlow, kernels: Collection[int]) -> list[Fusion]:
    """Connected kernels that depend on parameters and shapes alone.

    They end at the edge of a function that computes more than they.
    """
    left = {k for k in kernels if flow.constant[k]}
    varying = {flow.functions(k)[:1] for k in kernels if not flow.constant[k]}
    function = {k: flow.functions(k)[:1] if flow.functions(k)[:1] in varying else () for k in left}
    found = []
    while left:
        first = min(left)
        waiting, group = [first], set[int]()
        while waiting:
            k = waiting.pop()
            if k in left and function[k] == function[first]:
                left.discard(k)
                group.add(k)
                waiting += [*flow.users[k], *(m for _, m in flow.inputs[k] if m is not None)]
        if len(group) > 1:
            stem = assigned_to(flow, max(group))
            reason = f"its {len(group)} kernels depend on no input of the model"
            found.append(Fusion(tuple(sorted(group)), reason, stem))
    return found


def assigned_to(flow: KernelFlow, k: int) -> str | None:
    """The author's variable for a kernel's result: `relative_position_bias`."""
    origin = flow.program.graph.operations[max(flow.kernels[k].members)].origin
    targets = origin.targets if origin is not None else ()
    return snake_case(targets[0]) if len(targets) == 1 and len(targets[0]) > 2 else None


# --- straight lines -------------------------------------------------------------------------------


def lines(flow: KernelFlow, kernels: Iterable[int], indices: bool = True) -> list[Fusion]:
    """Straight lines of data flow around at most one contraction, each of two kernels or more.

    With `indices`, arithmetic on indices and masks that one line or kernel alone reads is in it.
    """
    chosen = set(kernels)
    line_of: dict[int, list[int]] = {}
    found: list[list[int]] = []
    for k in sorted(chosen):
        line = _continued(flow, k, line_of, chosen)
        if line is None:
            line = []
            found.append(line)
        line.append(k)
        line_of[k] = line
    for line in sorted(found, key=max, reverse=True) if indices else ():
        if (reader := _reader_of_indices(flow, line, line_of)) is not None:
            reader[:] = sorted([*reader, *line])
            line_of.update(dict.fromkeys(line, reader))
            line.clear()
    return [Fusion(tuple(line), _why_line(flow, line)) for line in found if len(line) > 1]


def _reader_of_indices(
    flow: KernelFlow, line: Sequence[int], line_of: Mapping[int, list[int]]
) -> list[int] | None:
    """The one line that reads arithmetic on indices and masks; None for any other line.

    A constant, such as positions, belongs to the arithmetic that reads it, and to nothing else.
    """
    if any(flow.exits(k)[2] or not _is_of_indices(flow, k) for k in line):
        return None
    readers = {reader for k in line for reader in flow.exits(k)[0]}.difference(line)
    if not readers or not readers <= line_of.keys():
        return None
    if any(flow.constant[k] for k in line) and not all(_is_of_indices(flow, k) for k in readers):
        return None
    read_by = {id(line_of[reader]): line_of[reader] for reader in readers}
    return next(iter(read_by.values())) if len(read_by) == 1 else None


def _is_of_indices(flow: KernelFlow, k: int) -> bool:
    """Whether a kernel makes whole numbers or truth values of others, element by element."""
    values = [*flow.outputs[k], *(name for name, _ in flow.inputs[k])]
    exact = all(flow.program.spec(v).dtype.startswith(("int", "uint", "bool")) for v in values)
    return exact and (flow.constant[k] or flow.kernels[k].kind in {"pointwise", "copy"})


def pieces(flow: KernelFlow, kernels: Collection[int]) -> int:
    """How many parts kernels are where each straight line is one."""
    return len(kernels) - sum(len(line.kernels) - 1 for line in lines(flow, kernels))


def fits_fusion(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Whether kernels are few enough for one fusion."""
    if len(kernels) <= LARGEST_FUSION:
        return True
    return len(kernels) <= MOST_KERNELS and pieces(flow, kernels) <= LARGEST_FUSION


def is_dissolved(flow: KernelFlow, kernels: Collection[int]) -> bool:
    """Whether kernels, without their call, would mostly stand alone."""
    return sum(len(line.kernels) for line in lines(flow, kernels)) < len(kernels) / 2


def _why_line(flow: KernelFlow, line: Sequence[int]) -> str:
    """What makes kernels one line, and where it ends, for the log."""
    around = [flow.kernels[k].operation for k in line if flow.contractions[k]]
    chain = f"a chain around one {around[0]}" if around else "a chain"
    reason = f"{chain}: nothing else reads what one kernel hands to the next"
    readers, _, returned = flow.exits(line[-1])
    if returned:
        return f"{reason}; it ends with a result of the model"
    if len(readers) > 1:
        return f"{reason}; it ends where {len(readers)} kernels read the result"
    next_one = f"; it ends before {flow.kernels[min(readers)].operation}" if readers else ""
    return f"{reason}{next_one}"


def _continued(
    flow: KernelFlow, k: int, line_of: dict[int, list[int]], chosen: Collection[int]
) -> list[int] | None:
    """The line that a kernel continues: that of its main input, if nobody else reads it."""
    if flow.kernels[k].kind in _STAND_ALONE or not flow.activations(k):
        return None
    join = is_join(flow, k)
    if join and flow.kernels[k].kind != "pointwise":
        return None
    ends = [m for _, m in _streams(flow, k) if m is not None and m in line_of]
    free = [m for m in ends[: None if join else 1] if _may_continue(flow, k, line_of[m])]
    if not free:
        return None
    return line_of[max(free, key=lambda m: (len(flow.ancestors(m, chosen)), -m))]


def _may_continue(flow: KernelFlow, k: int, line: list[int]) -> bool:
    if flow.only_reader(line[-1]) != k or flow.kernels[line[-1]].kind in _STAND_ALONE:
        return False
    if flow.contractions[k] and any(_is_sum(flow, m) for m in line):
        return False
    if _is_one_of_several(flow, line[-1], k):
        return False
    if _is_norm(flow, k) and _is_norm(flow, line[0]) and _leads_to_contraction(flow, k):
        return False
    if _is_upsampling(flow, k):
        return False
    if any(flow.contractions[m] for m in line) and _reduces_space(flow, k):
        return not any(_reduces_space(flow, m) for m in line)
    return sum(flow.contractions[m] for m in line) + flow.contractions[k] <= 1


def _is_one_of_several(flow: KernelFlow, k: int, reader: int) -> bool:
    """Whether a concatenation has a sibling that the same kernel reads: keys beside values."""
    operation = flow.kernels[k].operation
    siblings = {m for _, m in flow.activations(reader) if m is not None} - {k}
    same = any(flow.kernels[m].operation == operation for m in siblings)
    return operation in CONCATENATIONS and same


def _is_upsampling(flow: KernelFlow, k: int) -> bool:
    """Whether a kernel makes more positions of what comes in: a line begins with it."""
    return "upsample" in flow.kernels[k].operation


def _reduces_space(flow: KernelFlow, k: int) -> bool:
    """Whether a normalisation needs every position of an image or a sequence before it gives one.

    One before a contraction and one after it are two launches at least.
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
    """Whether a norm is the first step of the next contraction's line (pre-activation)."""
    after = flow.only_reader(k)
    while after is not None and not flow.contractions[after] and not is_join(flow, after):
        after = flow.only_reader(after)
    return after is not None and flow.contractions[after] > 0


def _is_sum(flow: KernelFlow, k: int) -> bool:
    """Two streams are added or multiplied: the end of a line, but for what has no contraction."""
    return flow.kernels[k].kind == "pointwise" and is_join(flow, k)


def why_alone(flow: KernelFlow, k: int) -> str:
    """Why a kernel is in no fusion, for the log."""
    kernel = flow.kernels[k]
    if flow.constant[k]:
        return "it depends on no input of the model"
    if kernel.kind in _STAND_ALONE:
        return f"{kernel.operation} is never fused with its neighbours"
    if len(flow.activations(k)) > 1:
        return "several kernels' results meet in it"
    if not flow.contractions[k] and (len(flow.exits(k)[0]) > 1 or flow.exits(k)[2]):
        return "several kernels read its result"
    return "its neighbours are in other parts, or never fused"
