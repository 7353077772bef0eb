"""Builds the parts of a tree, fusions and kernels, with the views that belong to them."""

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
    reason_without_fusion,
    special_stem,
    straight_lines,
)
from runner.tree.interface import Program, interface, shared_scopes
from runner.tree.layer_structure import wrapped_class
from runner.tree.module_regions import Region, is_container, is_numbered
from runner.tree.part import Part, order_parts
from runner.tree.part_names import attribute, container_stem, fusion_stem, is_mlp, line_stem


class PartBuilder:
    """Builds the parts of one program, and records which kernels are already together in one."""

    def __init__(self, program: Program, flow: KernelFlow, wrappers: frozenset[str]) -> None:
        self.program, self.graph, self.kernels = program, program.graph, program.kernels
        self.flow = flow
        self.wrappers = wrappers
        self.fused_kernels = GroupedFlow(flow)
        self.call_counts = Counter(program.scopes)
        self.methods: dict[str, set[str]] = {}
        """For each class, the methods that are called by name; empty string for plain calls."""
        for scope in {scope for scopes in program.scopes for scope in scopes}:
            self.methods.setdefault(scope.cls, set()).add(scope.method)
        self.frames = {scopes[:depth] for scopes in program.scopes for depth in range(len(scopes))}
        self.kernel_numbers = {kernel.members: k for k, kernel in enumerate(program.kernels)}
        self.views_by_call: dict[Scope | None, set[int]] = {}
        """For each module call, the views between kernels that it makes."""
        self.views_in_fusions: set[int] = set()
        """Views that a fusion both makes and reads."""
        for i, op in enumerate(self.graph.operations):
            if op.view and i not in self.flow.owner:
                for scope in op.scopes:
                    self.views_by_call.setdefault(scope, set()).add(i)

    def may_be_fusion(self, kernels: Collection[int], step: bool = False) -> bool:
        """Return whether a call can be a fusion.

        It has few parts, or is a `step`, and no part waits for it that it waits for.
        """
        is_small = step or fits_fusion(self.flow, kernels)
        return is_small and self.fused_kernels.allows(kernels)

    def module_fusion(self, region: Region, kernels: list[int]) -> Part:
        """Return a call of a module as a fusion, named by its class or its attribute."""
        assert region.scope is not None
        children = self.kernel_parts(kernels)
        operations = self.with_views(children, region)
        stem = self._call_stem(region, kernels)
        numbered = is_numbered(region.scope) and not is_container(region.scope)
        name = stem if numbered else attribute(region.scope.path) or stem
        reason = f"a call of {describe_class(region.scope)}, which holds {len(kernels)} kernels"
        return self.parent_part("fusion", name, stem, operations, children, reason, region.scope)

    def class_stem(self, region: Region) -> str:
        """Return `transformer_block`, or `attention_residual` for a wrapper class.

        A wrapper has the class that it wraps in front, since it wraps several. A method is added
        only if several methods of the class are called by name: `flow_inverse`.
        """
        assert region.scope is not None
        cls, method = region.scope.cls, region.scope.method
        wrapped_stem = ""
        if region.scope.callee in self.wrappers:
            wrapped = (
                "mlp"
                if is_mlp(self.kernels[k] for k in region.kernels())
                else snake_case(wrapped_class(region))
            )
            wrapped_stem = f"{wrapped}_"
        added_method = len(self.methods.get(cls, ())) > 1 and method
        return (
            wrapped_stem
            + snake_case(cls)
            + (f"_{snake_case(method).strip('_')}" if added_method else "")
        )

    def _call_stem(self, region: Region, kernels: Sequence[int]) -> str:
        """Return the stem for a call: its field's name, its class, or its attribute."""
        scope = region.scope
        assert scope is not None
        class_stem = self.class_stem(region)
        ends = kernels[-2:] if self.kernels[kernels[-1]].kind == "normalization" else kernels[-1:]
        joins = {k for k in kernels if is_residual(self.flow, k, set(kernels))}
        if len(joins) < 2 and not joins.isdisjoint(ends):  # two: a whole transformer block
            field_stem = special_stem([self.kernels[k].operation for k in kernels])
            if field_stem and (
                field_stem.removesuffix("_block") not in class_stem or class_stem in field_stem
            ):
                return field_stem
        if not is_container(scope):
            return class_stem
        if is_numbered(scope):
            if is_mlp(self.kernels[k] for k in kernels):
                return "mlp"
            if any(item.scope is not None and not item.scope.builtin for item in region.inner()):
                words = self.item_stems(region)
                return fusion_stem(words, container_stem(scope.path))
            return line_stem([self.kernels[k] for k in kernels], container_stem(scope.path))
        stem = container_stem(scope.path)
        if stem in {self.kernels[k].operation for k in kernels}:  # `self.linear = Sequential(...)`
            return line_stem([self.kernels[k] for k in kernels], stem)
        return stem

    def item_stems(self, region: Region) -> list[str]:
        """Return each kernel's operation, and the class of each inner call of an author's class."""
        stems: list[str] = []
        for item in region.items:
            if isinstance(item, int):
                stems.append(self.kernels[item].operation)
            elif item.scope is None or item.scope.builtin:
                stems += self.item_stems(item)
            else:
                stems.append(self.class_stem(item))
        return stems

    def fusion_part(self, fusion: Fusion) -> Part:
        """Return a fusion as a part."""
        children = self.kernel_parts(fusion.kernels)
        inside = {i for child in children for i in child.operations}
        between = self.views_between(inside, fusion.kernels)
        self.views_in_fusions |= between
        operations = tuple(sorted(inside | between))
        fallback_stem = authors_name(self.flow, fusion.kernels)
        stem = fusion.stem or line_stem([self.kernels[k] for k in fusion.kernels], fallback_stem)
        return self.parent_part("fusion", stem, stem, operations, children, fusion.reason)

    def parent_part(
        self,
        level: Level,
        name: str,
        stem: str,
        operations: tuple[int, ...],
        children: list[Part],
        reason: str,
        call: Scope | None = None,
    ) -> Part:
        """Return a part with children; `call` is the module call that it is."""
        parts = order_parts(self.program, operations, unwrap_parts(children))
        scopes = shared_scopes(kernel.scopes for part in parts for kernel in part.kernels())
        if call in scopes:  # all children may be in one inner call of it
            scopes = scopes[: scopes.index(call) + 1]
        if stem == level:  # a class called Layer, or a fusion without a name
            stem = f"{_distinguishing_word(parts)}_{level}"
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
        """Return the straight lines among a fusion's kernels; none if it is one line itself."""
        position_of = {self.kernel_numbers[part.operations]: n for n, part in enumerate(parts)}
        fusions = straight_lines(self.flow, position_of, indices=False)
        line_positions = [tuple(sorted(position_of[k] for k in line.kernels)) for line in fusions]
        return tuple(line_positions) if line_positions != [tuple(range(len(parts)))] else ()

    def lines_and_kernels(self, loose: Sequence[int]) -> list[Part]:
        """Return kernels as parts: straight lines as fusions, the others as kernels."""
        fusions = straight_lines(self.flow, loose)
        kernels_in_lines = {k for line in fusions for k in line.kernels}
        single_kernels = [k for k in loose if k not in kernels_in_lines]
        return [
            *map(self.fusion_part, fusions),
            *self.kernel_parts(single_kernels, is_single=True),
        ]

    def kernel_parts(self, kernels: Iterable[int], is_single: bool = False) -> list[Part]:
        """Return each kernel as a part; `is_single` says that it is in no fusion."""
        return [self._kernel_part(k, is_single) for k in kernels]

    def _kernel_part(self, k: int, is_single: bool) -> Part:
        kernel, scopes = self.kernels[k], self.program.scopes[k]
        has_own_module = scopes and self.call_counts[scopes] == 1 and scopes not in self.frames
        name = (attribute(scopes[-1].path) if has_own_module else "") or kernel.operation
        reason = kernel.reason
        if is_single:
            reason += f"; in no fusion, since {reason_without_fusion(self.flow, k)}"
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
        """Return the views of some operations' results that some of them read."""
        computed = {n for i in inside for n in self.graph.operations[i].outputs}
        views: set[int] = set()
        for i in sorted(i for k in kernels for i in self.flow.readers_of_kernel(k)[1]):
            if set(self.graph.operations[i].refs()) <= computed:
                views.add(i)
                computed.update(self.graph.operations[i].outputs)
        read = {n for i in inside for n in self.graph.operations[i].refs()}
        for i in sorted(views, reverse=True):  # views that none of the operations read stay outside
            if read.isdisjoint(self.graph.operations[i].outputs):
                views.remove(i)
            else:
                read.update(self.graph.operations[i].refs())
        return views

    def with_views(self, children: Sequence[Part], region: Region) -> tuple[int, ...]:
        """Return the operations of a module call: those of its parts, and its views between."""
        inside = {i for child in children for i in child.operations}
        views = self.views_by_call.get(region.scope, set()) - (self.views_in_fusions - inside)
        between = self.views_between(inside, region.kernels())
        other_operations = {i for k in region.kernels() for i in self.kernels[k].members} - inside
        return tuple(
            sorted(inside | between | self._views_touching(inside, views, other_operations))
        )

    def _views_touching(
        self, inside: set[int], views: set[int], other_operations: set[int]
    ) -> set[int]:
        """Return the views that read from the parts, or that the parts read.

        `other_operations` are those of the module call that other parts contain; views that these
        read are theirs.
        """
        touching: set[int] = set()
        for i in sorted(views):
            source = next(self.graph.operations[i].refs(), "")
            if self.program.producers.get(source, -1) in inside | touching:
                touching.add(i)
        for i in sorted(views - touching, reverse=True):
            readers = {
                c
                for n in self.graph.operations[i].outputs
                for c in self.program.consumers.get(n, ())
            }
            if readers & (inside | touching) and readers.isdisjoint(other_operations):
                touching.add(i)
        return touching


def _distinguishing_word(parts: Iterable[Part]) -> str:
    """Return `moe` or `attention`, or the operation of most contractions, or of most kernels."""
    kernels = [part.kernel for ancestor in parts for part in ancestor.kernels() if part.kernel]
    if special := special_stem([kernel.operation for kernel in kernels]):
        return special.removesuffix("_block")
    contractions = [kernel for kernel in kernels if kernel.kind == "contraction"]
    return Counter(k.operation for k in contractions or kernels).most_common(1)[0][0]


def describe_class(scope: Scope) -> str:
    """Return the class of a module call, and whether it is torch's or the author's, for the log."""
    return f"{'torch.nn' if scope.builtin else 'the author'}'s class {scope.cls}"


def unwrap_parts(parts: list[Part]) -> list[Part]:
    """Return the parts without a wrapper around all of them."""
    while len(parts) == 1 and parts[0].children:
        reason = f"in no fusion, since {parts[0].stem} would be the whole problem"
        parts = [replace(part, reason=f"{part.reason}; {reason}") for part in parts[0].children]
    return parts
