"""This file knows about which adjacent kernels one launch could run.

Those are straight lines around one contraction, and two named patterns with more. A fusion has one
exit: whatever a member computes is read inside, except what the last one gives back. So fusions
can never wait for each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from runner.graph.recognize import Kernel
from runner.tree.interface import Program, interface

_STAND_ALONE = {"other", "random", "creation"}
_JOINS = {"cat", "stack", "hstack", "vstack", "dstack"}
_GATES = {"swiglu", "geglu", "reglu", "glu", "gated_tanh"}
_GATE_LINEAR = {"linear", "matmul", "expert_linear"}


@dataclass(frozen=True, slots=True)
class Chain:
    """Kernels (positions in the kernel list), the views between them, and why they are together."""

    kernels: tuple[int, ...]
    views: tuple[int, ...]
    reason: str
    pattern: str | None = None
    """Its name in the field, for the named patterns."""


class KernelFlow:
    """Which kernel reads what of which, looking through views."""

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
        self.contractions = [int(k.kind == "contraction") for k in self.kernels]
        self._exits: dict[int, tuple[frozenset[int], frozenset[int], bool]] = {}

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


def fuse(flow: KernelFlow, kernels: Iterable[int]) -> list[Chain]:
    """Fusions among some kernels, each of two or more; the others stand alone."""
    chosen = sorted(kernels)
    taken: set[int] = set()
    chains: list[Chain] = []
    for named in (_attention_core, _gated_mlp):
        for k in chosen:
            found = named(flow, k, set(chosen) - taken)
            if found is not None and not taken & set(found):
                pattern = named.__name__.strip("_")
                chains.append(_chain(flow, sorted(found), _REASONS[pattern], pattern))
                taken.update(found)
    line_of: dict[int, list[int]] = {}
    lines: list[list[int]] = []
    for k in chosen:
        if k in taken:
            continue
        line = _joins_line(flow, k, line_of)
        if line is None:
            line = []
            lines.append(line)
        line.append(k)
        line_of[k] = line
    for line in lines:
        if len(line) > 1:
            around = any(flow.contractions[k] for k in line)
            reason = "a straight line of data flow" + (" around one contraction" if around else "")
            chains.append(_chain(flow, line, reason))
    return chains


_REASONS = {
    "attention_core": "attention core: matmul, scale and mask, softmax, matmul",
    "gated_mlp": "gated MLP: two projections of one input, an activation on one, their product",
}


def _chain(flow: KernelFlow, kernels: list[int], reason: str, pattern: str | None = None) -> Chain:
    inside = set(kernels)
    views: set[int] = set()
    for k in kernels:
        readers, between, returned = flow.exits(k)
        if readers and readers <= inside and not returned:
            views |= between
    return Chain(tuple(kernels), tuple(sorted(views)), reason, pattern)


def _joins_line(flow: KernelFlow, k: int, line_of: dict[int, list[int]]) -> list[int] | None:
    """The line that a kernel continues: that of its main input, if nobody else reads it."""
    kernel = flow.kernels[k]
    if kernel.kind in _STAND_ALONE:
        return None
    activations = flow.activations(k)
    if not activations or is_join(flow, k):
        return None
    main = max(activations, key=lambda a: flow.program.spec(a[0]).numel)[1]
    if main is None or main not in line_of or flow.kernels[main].kind in _STAND_ALONE:
        return None
    line = line_of[main]
    if line[-1] != main or not _only_reader(flow, main, k):
        return None
    if sum(flow.contractions[m] for m in line) + flow.contractions[k] > 1:
        return None
    return line


def _only_reader(flow: KernelFlow, k: int, reader: int) -> bool:
    readers, _, returned = flow.exits(k)
    return readers == {reader} and not returned


def is_join(flow: KernelFlow, k: int) -> bool:
    """Two streams of activations meet: a residual add, a product of branches, a concatenation."""
    kernel = flow.kernels[k]
    activations = flow.activations(k)
    if len(activations) < 2 or kernel.kind == "contraction":
        return False
    if kernel.operation in _JOINS:
        return True
    if kernel.kind not in {"pointwise", "copy"}:
        return False
    largest = max(flow.program.spec(name).numel for name, _ in activations)
    return sum(flow.program.spec(name).numel == largest for name, _ in activations) > 1


def _next(flow: KernelFlow, k: int, allowed: set[int]) -> int | None:
    """The only kernel that reads `k`, if it is one of the allowed."""
    readers, _, returned = flow.exits(k)
    if len(readers) != 1 or returned:
        return None
    (reader,) = readers
    return reader if reader in allowed else None


_LAYOUTS = {"contiguous_copy", "merge_heads"}
_BETWEEN = {"pointwise", "copy", "reduction", "normalization"}


def _attention_core(flow: KernelFlow, k: int, allowed: set[int]) -> list[int] | None:
    """softmax(scale(q @ kᵀ) + mask) @ v, and a copy of the result into another layout.

    The query or the keys may be scaled before their product, and scores meet a mask or a bias,
    whoever made it: nothing else reads what is in between.
    """
    if not _is_matmul(flow, k) or k not in allowed:
        return None
    found, softmaxes = [*_scales(flow, k, allowed), k], 0
    while (after := _next(flow, found[-1], allowed)) is not None:
        kernel = flow.kernels[after]
        found.append(after)
        if _is_matmul(flow, after):
            if not softmaxes:
                return None
            copy = _next(flow, after, allowed)
            if copy is not None and flow.kernels[copy].operation in _LAYOUTS:
                found.append(copy)
            return found
        if "softmax" in kernel.operation:
            softmaxes += 1
        elif kernel.kind not in _BETWEEN or (is_join(flow, after) and not _biases(kernel)):
            return None
    return None


def _scales(flow: KernelFlow, k: int, allowed: set[int]) -> list[int]:
    """What multiplies the query or the keys by a number, for this product alone."""
    return sorted(
        made_by
        for _, made_by in flow.activations(k)
        if made_by in allowed
        and flow.kernels[made_by].operation in {"mul", "div"}
        and len(flow.activations(made_by)) == 1
        and _only_reader(flow, made_by, k)
    )


def _biases(kernel: Kernel) -> bool:
    return kernel.operation in {"add", "sub", "mul", "masked_fill", "where"}


def _is_matmul(flow: KernelFlow, k: int) -> bool:
    """A contraction of two activations."""
    kernel = flow.kernels[k]
    named = kernel.operation in {"matmul", "bmm", "baddbmm", "einsum"}
    return kernel.kind == "contraction" and named and len(flow.activations(k)) == 2


def _gated_mlp(flow: KernelFlow, k: int, allowed: set[int]) -> list[int] | None:
    """act(x @ gate) * (x @ up), and the projection down where nobody else reads the product."""
    kernel = flow.kernels[k]
    if k not in allowed or kernel.operation not in {"mul", *_GATES}:
        return None
    sources = [made_by for _, made_by in flow.activations(k)]
    if len(sources) != 2 or not is_join(flow, k):
        return None
    members = {k}
    projections = []
    for source in sources:
        while source is not None and flow.kernels[source].operation not in _GATE_LINEAR:
            pointwise = (
                flow.kernels[source].kind == "pointwise" and len(flow.activations(source)) == 1
            )
            if source not in allowed or not pointwise or len(members) > 4:
                return None
            members.add(source)
            source = flow.activations(source)[0][1]
        if source is None or source not in allowed or len(flow.activations(source)) != 1:
            return None
        projections.append(source)
        members.add(source)
    activated = kernel.operation in _GATES or len(members) > 3
    if len(set(projections)) != 2 or not activated:
        return None
    bases = {flow.base(flow.activations(p)[0][0]) for p in projections}
    closed = all(flow.exits(m)[0] <= members and not flow.exits(m)[2] for m in members - {k})
    if len(bases) != 1 or not closed:
        return None
    down = _next(flow, k, allowed)
    if (
        down is not None
        and flow.kernels[down].operation in _GATE_LINEAR
        and len(flow.activations(down)) == 1
    ):
        members.add(down)
    return sorted(members)
