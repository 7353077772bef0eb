"""Making parts: the fusions and kernels of a tree, with the views that are theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from runner.graph.dataflow import GroupedFlow
from runner.graph.ir import Scope
from runner.graph.terms import snake_case
from runner.tree.document import Level
from runner.tree.function_calls import authors_name
from runner.tree.fusions import (
    Fusion,
    KernelFlow,
    fits_fusion,
    is_residual,
    lines,
    special_stem,
    why_alone,
)
from runner.tree.interface import Program, interface, shared_scopes
from runner.tree.layer_structure import wrapped
from runner.tree.module_regions import Region, is_container, is_numbered
from runner.tree.part import Part, in_order
from runner.tree.part_names import attribute, container_stem, line_stem


class PartMaker:
    """Makes the parts of one program; knows which kernels are drawn together so far."""

    def __init__(self, program: Program, flow: KernelFlow, wrappers: frozenset[str]) -> None:
        self.program, self.graph, self.kernels = program, program.graph, program.kernels
        self.flow = flow
        self.wrappers = wrappers
        self.drawn_together = GroupedFlow(flow)
        self.calls = Counter(program.scopes)
        self.methods: dict[str, set[str]] = {}
        """By class: the methods that are called by name, the empty one for calls of modules."""
        for scope in {scope for scopes in program.scopes for scope in scopes}:
            self.methods.setdefault(scope.cls, set()).add(scope.method)
        self.frames = {scopes[:depth] for scopes in program.scopes for depth in range(len(scopes))}
        self.number = {kernel.members: k for k, kernel in enumerate(program.kernels)}
        self.views: dict[Scope | None, set[int]] = {}
        """For each module call the views between kernels that it makes."""
        self.in_fusions: set[int] = set()
        """Views of what a fusion makes that the fusion itself reads."""
        for i, op in enumerate(self.graph.operations):
            if op.view and i not in self.flow.owner:
                for scope in op.scopes:
                    self.views.setdefault(scope, set()).add(i)

    def may_be_fusion(self, kernels: Collection[int], step: bool = False) -> bool:
        """Whether a call's parts are few, or a step, and wait for no part that waits for them."""
        few = step or fits_fusion(self.flow, kernels)
        return few and self.drawn_together.allows(kernels)

    def call(self, region: Region, kernels: list[int]) -> Part:
        """A call of a module as a fusion, named by its class or its attribute."""
        assert region.scope is not None
        children = self.kernel_parts(kernels)
        operations = self.with_views(children, region)
        stem = self._call_stem(region, kernels)
        numbered = is_numbered(region.scope) and not is_container(region.scope)
        name = stem if numbered else attribute(region.scope.path) or stem
        reason = f"a call of {of_class(region.scope)}, which holds {len(kernels)} kernels"
        return self.parent("fusion", name, stem, operations, children, reason, region.scope)

    def class_stem(self, region: Region) -> str:
        """`transformer_block`, or `attention_residual` where a class wraps one of several.

        A method is told only where several of the class are called by name: `flow_inverse`.
        """
        assert region.scope is not None
        cls, method = region.scope.cls, region.scope.method
        inside = f"{snake_case(wrapped(region))}_" if region.scope.callee in self.wrappers else ""
        several = len(self.methods[cls]) > 1 and method
        return inside + snake_case(cls) + (f"_{snake_case(method).strip('_')}" if several else "")

    def _call_stem(self, region: Region, kernels: Sequence[int]) -> str:
        scope = region.scope
        assert scope is not None
        own = self.class_stem(region)
        ends = kernels[-2:] if self.kernels[kernels[-1]].kind == "normalization" else kernels[-1:]
        if any(is_residual(self.flow, k, set(kernels)) for k in ends):
            special = special_stem([self.kernels[k].operation for k in kernels])
            if special and (special.removesuffix("_block") not in own or own in special):
                return special
        if not is_container(scope):
            return own
        if is_numbered(scope):
            return line_stem([self.kernels[k] for k in kernels], container_stem(scope.path))
        return attribute(scope.path)

    def fusion(self, fusion: Fusion) -> Part:
        children = self.kernel_parts(fusion.kernels)
        inside = {i for child in children for i in child.operations}
        between = self.views_between(inside, fusion.kernels)
        self.in_fusions |= between
        operations = tuple(sorted(inside | between))
        otherwise = authors_name(self.flow, fusion.kernels)
        stem = fusion.stem or line_stem([self.kernels[k] for k in fusion.kernels], otherwise)
        return self.parent("fusion", stem, stem, operations, children, fusion.reason)

    def parent(
        self,
        level: Level,
        name: str,
        stem: str,
        operations: tuple[int, ...],
        children: list[Part],
        reason: str,
        call: Scope | None = None,
    ) -> Part:
        parts = in_order(self.program, operations, opened(children))
        scopes = shared_scopes(kernel.scopes for part in parts for kernel in part.kernels())
        if call in scopes:  # not the only call within it
            scopes = scopes[: scopes.index(call) + 1]
        if stem == level:  # a class called Layer, or a fusion without a name
            stem = f"{_main_operation(parts)}_{level}"
            name = stem if name == level else name
        return Part(
            level,
            name,
            stem,
            operations,
            parts,
            interface(self.program, operations),
            scopes,
            reason,
            groups=self.groups(parts) if level == "fusion" else (),
        )

    def groups(self, parts: Sequence[Part]) -> tuple[tuple[int, ...], ...]:
        """The straight lines among a fusion's kernels, none where it is one itself."""
        place = {self.number[part.operations]: n for n, part in enumerate(parts)}
        straight = lines(self.flow, place, indices=False)
        found = [tuple(sorted(place[k] for k in line.kernels)) for line in straight]
        return tuple(found) if found != [tuple(range(len(parts)))] else ()

    def lines_and_kernels(self, loose: Sequence[int]) -> list[Part]:
        found = lines(self.flow, loose)
        taken = {k for line in found for k in line.kernels}
        alone = [k for k in loose if k not in taken]
        return [*map(self.fusion, found), *self.kernel_parts(alone, alone=True)]

    def kernel_parts(self, kernels: Iterable[int], alone: bool = False) -> list[Part]:
        return [self._kernel_part(k, alone) for k in kernels]

    def _kernel_part(self, k: int, alone: bool) -> Part:
        kernel, scopes = self.kernels[k], self.program.scopes[k]
        own = scopes and self.calls[scopes] == 1 and scopes not in self.frames
        name = (attribute(scopes[-1].path) if own else "") or kernel.operation
        reason = kernel.reason
        if alone:
            reason += f"; in no fusion, since {why_alone(self.flow, k)}"
        return Part(
            "kernel",
            name,
            kernel.operation,
            kernel.members,
            (),
            interface(self.program, kernel.members),
            scopes,
            reason,
            kernel,
        )

    # --- views ------------------------------------------------------------------------------------

    def views_between(self, inside: set[int], kernels: Iterable[int]) -> set[int]:
        """The views of what some operations make that some of them read."""
        made = {n for i in inside for n in self.graph.operations[i].outputs}
        views: set[int] = set()
        for i in sorted(i for k in kernels for i in self.flow.exits(k)[1]):
            if set(self.graph.operations[i].refs()) <= made:
                views.add(i)
                made.update(self.graph.operations[i].outputs)
        read = {n for i in inside for n in self.graph.operations[i].refs()}
        for i in sorted(views, reverse=True):  # those that only others look at stay outside
            if read.isdisjoint(self.graph.operations[i].outputs):
                views.remove(i)
            else:
                read.update(self.graph.operations[i].refs())
        return views

    def with_views(self, children: Sequence[Part], region: Region) -> tuple[int, ...]:
        """Operations of a module call: its parts, and the views between them that it makes."""
        inside = {i for child in children for i in child.operations}
        views = self.views.get(region.scope, set()) - (self.in_fusions - inside)
        between = self.views_between(inside, region.kernels())
        others = {i for k in region.kernels() for i in self.kernels[k].members} - inside
        return tuple(sorted(inside | between | self._between(inside, views, others)))

    def _between(self, inside: set[int], views: set[int], others: set[int]) -> set[int]:
        """Views that touch the parts: those of outside values for outside readers stay outside.

        `others` are operations of the module call that other parts hold; so do they what they read.
        """
        kept: set[int] = set()
        for i in sorted(views):
            source = next(self.graph.operations[i].refs(), "")
            if self.program.producers.get(source, -1) in inside | kept:
                kept.add(i)
        for i in sorted(views - kept, reverse=True):
            readers = {
                c
                for n in self.graph.operations[i].outputs
                for c in self.program.consumers.get(n, ())
            }
            if readers & (inside | kept) and readers.isdisjoint(others):
                kept.add(i)
        return kept


def _main_operation(parts: Iterable[Part]) -> str:
    """The operation that most contractions of parts are, else most kernels."""
    kernels = [part.kernel for whole in parts for part in whole.kernels() if part.kernel]
    contractions = [kernel for kernel in kernels if kernel.kind == "contraction"]
    return Counter(k.operation for k in contractions or kernels).most_common(1)[0][0]


def of_class(scope: Scope) -> str:
    """Whose class a module call is of, for the log."""
    return f"{'torch.nn' if scope.builtin else 'the author'}'s class {scope.cls}"


def opened(parts: list[Part]) -> list[Part]:
    """Parts without a wrapper around all of them."""
    while len(parts) == 1 and parts[0].children:
        why = f"in no fusion, since {parts[0].stem} would be the whole problem"
        parts = [replace(part, reason=f"{part.reason}; {why}") for part in parts[0].children]
    return parts
