"""This file knows about how a graph of kernels comes apart: model, layers, fusions, kernels.

level1 is one kernel, level2 one fusion of kernels; everything else follows the author's modules for
layers and the data flow for fusions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from runner.graph.ir import Scope
from runner.graph.recognize import Kernel
from runner.graph.terms import snake_case
from runner.tree.blocks import Block, blocks
from runner.tree.document import Level
from runner.tree.fusing import Chain, KernelFlow, fuse
from runner.tree.interface import Interface, Program, interface, shared_scopes
from runner.tree.part import Part, in_order
from runner.tree.regions import Region, is_stack, layer_classes, regions
from runner.tree.stems import attribute, container_stem, fusion_stem

_MOSTLY = 0.75
"""Of a call's kernels, what its blocks hold where it is only the frame around them."""


def partition(program: Program, source_level: str, problem_name: str) -> Part:
    """Take a graph apart by the rules of its source level."""
    return _Partition(program, source_level, problem_name).root()


class _Partition:
    def __init__(self, program: Program, source_level: str, problem_name: str) -> None:
        self.program = program
        self.graph, self.kernels = program.graph, program.kernels
        self.source_level = source_level
        self.title = snake_case(re.sub(r"^\d+_", "", problem_name)) or "model"
        self.flow = KernelFlow(program)
        self.everything = tuple(range(len(self.graph.operations)))
        self.calls = Counter(program.scopes)
        self.frames = {scopes[:depth] for scopes in program.scopes for depth in range(len(scopes))}
        self.region = regions(program)
        self.views: dict[Scope | None, set[int]] = {}
        """For each module call the views between kernels that it makes."""
        for i, op in enumerate(self.graph.operations):
            if op.view and i not in self.flow.owner:
                for scope in op.scopes:
                    self.views.setdefault(scope, set()).add(i)

    def root(self) -> Part:
        if self.source_level == "level1" or len(self.kernels) < 2:
            return self._root_kernel()
        if self.source_level == "level2":
            return self._whole(
                "fusion",
                self._kernel_parts(range(len(self.kernels))),
                "level2: a fusion of its kernels",
            )
        if self.source_level == "level3" and self._one_block():
            children, layers = self._contents(self.region), False
        else:
            children, layers = self._model_contents(self.region)
        if self.source_level != "level3" and len(children) == 1:
            only = children[0]
            return self._whole(
                only.level, list(only.children) or children, f"all of it: {only.reason}"
            )
        while len(children) == 1 and children[0].children:
            layers = layers and children[0].level == "layer"
            children = list(children[0].children)
        if layers or not self._same_form():
            return self._whole("model", children, "the whole model")
        return self._whole(
            "layer", children, "one building block: what goes in has the form of what comes out"
        )

    def _one_block(self) -> bool:
        """A single block, also where its parts are modules that could be layers.

        That is: no stack, no class three times, and no image, which is four-dimensional with at
        most four channels.
        """
        fused = {id(r) for r in self.region.walk() if self._is_fusion(r)}
        classes = Counter(
            r.scope.cls for r in self.region.walk() if id(r) not in fused and r.scope is not None
        )
        own = [times for cls, times in classes.items() if cls not in {"Sequential", "ModuleList"}]
        first = self.program.spec(self.graph.inputs[0].name).shape if self.graph.inputs else ()
        image = len(first) == 4 and first[1] <= 4 and bool(classes)
        stacks = layer_classes(self.flow, self.region, fused)
        unrolled = any(b.count > 2 for b in blocks(self.flow, self.region, fused))
        is_one = not stacks and not unrolled and not image and max(own, default=0) < 3
        return self._same_form() and is_one

    def _same_form(self) -> bool:
        """Input and output are floating, of the same rank, three or more: feature maps."""
        inputs = [self.program.spec(i.name) for i in self.graph.inputs]
        outputs = [self.program.spec(n) for n in self.graph.output_names()]
        ends = inputs[:1] + outputs[:1]
        ranks = {len(spec.shape) for spec in ends}
        return len(ranks) == 1 and ranks.pop() >= 3 and all(spec.floating for spec in ends)

    def _root_kernel(self) -> Part:
        if len(self.kernels) == 1:
            kernel = replace(self.kernels[0], members=self.everything)
        else:
            kernel = Kernel(
                self.title, self.everything, "level1: the whole problem is one kernel", "other"
            )
        return Part(
            "kernel",
            kernel.operation,
            kernel.operation,
            self.everything,
            (),
            self._root_interface(),
            (),
            kernel.reason,
            kernel,
        )

    def _root_interface(self) -> Interface:
        found = interface(self.program, self.everything)
        extra = tuple(
            n for n in self.program.returned if n in self.graph.states and n not in found.states
        )
        return Interface(
            tuple(i.name for i in self.graph.inputs),
            found.states + extra,
            self.graph.output_names(),
        )

    def _whole(self, level: Level, children: list[Part], reason: str) -> Part:
        stem = (
            self.title
            if level != "fusion"
            else fusion_stem([k.operation for k in self.kernels], self.title)
        )
        parts = in_order(self.program, self.everything, children)
        root = self._root_interface()
        return Part(level, self.title, stem, self.everything, parts, root, (), reason)

    # --- what a region holds ----------------------------------------------------------------------

    def _contents(self, region: Region) -> list[Part]:
        """Fusions and kernels of a region: a call is a fusion, or its contents stand for it."""
        loose: list[int] = []
        parts: list[Part] = []
        self._dissolve(region, loose, parts)
        return parts + self._fused(loose)

    def _model_contents(self, region: Region) -> tuple[list[Part], bool]:
        """(layers, fusions and kernels of a model, whether there are layers among them)."""
        fused = {id(r) for r in region.walk() if self._is_fusion(r)}
        classes = layer_classes(self.flow, region, fused)
        loose: list[int] = []
        parts: list[Part] = []
        found = False
        queue = [region]
        while queue:
            current = queue.pop()
            repeated = blocks(self.flow, current, fused)
            parts += [self._block(block, current) for block in repeated]
            found |= bool(repeated)
            inside = {id(item) for block in repeated for item in block.items}
            numbers = {item for block in repeated for item in block.items if isinstance(item, int)}
            for item in current.items:
                if isinstance(item, int):
                    loose += [item] if item not in numbers else []
                elif id(item) in inside:
                    continue
                elif id(item) in fused:
                    parts.append(self._region_fusion(item))
                elif is_stack(self.flow, item, fused, classes) or self._is_blocks(item, fused):
                    queue.append(item)
                else:
                    layer = self._layer(item)
                    found |= layer.level == "layer"
                    parts.append(layer)
        return parts + self._fused(loose), found

    def _is_blocks(self, region: Region, fused: set[int]) -> bool:
        """A call that is little more than blocks one after the other."""
        held = sum(1 for b in blocks(self.flow, region, fused) for _ in b.region().kernels())
        return held >= _MOSTLY * sum(1 for _ in region.kernels())

    def _block(self, block: Block, around: Region) -> Part:
        region = block.region()
        children = self._contents(region)
        inside = {i for child in children for i in child.operations}
        made = {n for i in inside for n in self.graph.operations[i].outputs}
        views: set[int] = set()
        for i in sorted(i for k in region.kernels() for i in self.flow.exits(k)[1]):
            if set(self.graph.operations[i].refs()) <= made:
                views.add(i)
                made.update(self.graph.operations[i].outputs)
        read = {n for i in inside for n in self.graph.operations[i].refs()}
        for i in sorted(views, reverse=True):  # those that only others look at stay outside
            if read.isdisjoint(self.graph.operations[i].outputs):
                views.remove(i)
            else:
                read.update(self.graph.operations[i].refs())
        operations = tuple(sorted(inside | views))
        place = attribute(around.scope.path) if around.scope is not None else ""
        stem = f"{place}_{block.stem}" if place and block.stem == "stage" else block.stem
        return Part(
            "layer",
            f"{block.stem}_{block.number}",
            stem,
            operations,
            in_order(self.program, operations, children),
            interface(self.program, operations),
            self._common(region.kernels()),
            f"what the program repeats {block.count} times, one after the other",
        )

    def _is_fusion(self, region: Region) -> bool:
        inside = set(region.kernels())
        chains = fuse(self.flow, inside)
        return len(chains) == 1 and set(chains[0].kernels) == inside

    def _dissolve(self, region: Region, loose: list[int], parts: list[Part]) -> None:
        for item in region.items:
            if not isinstance(item, Region):
                loose.append(item)
            elif self._is_fusion(item):
                parts.append(self._region_fusion(item))
            else:
                self._dissolve(item, loose, parts)

    def _layer(self, region: Region) -> Part:
        assert region.scope is not None
        children = self._contents(region)
        scopes = self._common(region.kernels())
        operations = self._with_views(children, region)
        cls = region.scope.cls
        stem = (
            snake_case(cls)
            if cls not in {"Sequential", "ModuleList"}
            else container_stem(region.scope.path)
        )
        return Part(
            "layer",
            attribute(region.scope.path) or stem,
            stem,
            operations,
            in_order(self.program, operations, children),
            interface(self.program, operations),
            scopes,
            f"a call of {cls}, whose kernels one fusion cannot hold",
        )

    def _with_views(self, children: Sequence[Part], region: Region) -> tuple[int, ...]:
        """Operations of a module call: its parts, and the views between them that it makes."""
        inside = {i for child in children for i in child.operations}
        views = self.views.get(region.scope, set())
        return tuple(sorted(inside | (views & self._between(inside, views))))

    def _between(self, inside: set[int], views: set[int]) -> set[int]:
        """Views that touch the parts: those of outside values for outside readers stay outside."""
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
            if readers & (inside | kept):
                kept.add(i)
        return kept

    def _region_fusion(self, region: Region) -> Part:
        (chain,) = fuse(self.flow, region.kernels())
        assert region.scope is not None
        part = self._fusion(chain)
        return replace(part, name=attribute(region.scope.path) or part.name)

    def _fused(self, loose: list[int]) -> list[Part]:
        chains = fuse(self.flow, loose)
        taken = {k for chain in chains for k in chain.kernels}
        return [self._fusion(chain) for chain in chains] + self._kernel_parts(
            k for k in loose if k not in taken
        )

    def _fusion(self, chain: Chain) -> Part:
        children = self._kernel_parts(chain.kernels)
        operations = tuple(sorted({i for c in children for i in c.operations} | set(chain.views)))
        stem = chain.pattern or self._chain_stem(chain.kernels)
        return Part(
            "fusion",
            stem,
            stem,
            operations,
            in_order(self.program, operations, children),
            interface(self.program, operations),
            self._common(chain.kernels),
            chain.reason,
        )

    def _chain_stem(self, kernels: Sequence[int]) -> str:
        """Its operations; where they are too many, those that tell most about it."""
        for untold in (set[str](), {"copy"}, {"copy", "pointwise"}):
            told = [self.kernels[k] for k in kernels if self.kernels[k].kind not in untold]
            stem = fusion_stem([kernel.operation for kernel in told], "")
            if stem:
                return stem if len(told) > 1 else f"{stem}_fusion"
        return "fusion"

    def _kernel_parts(self, kernels: Iterable[int]) -> list[Part]:
        return [self._kernel_part(k) for k in kernels]

    def _kernel_part(self, k: int) -> Part:
        kernel, scopes = self.kernels[k], self.program.scopes[k]
        alone = scopes and self.calls[scopes] == 1 and scopes not in self.frames
        name = (attribute(scopes[-1].path) if alone else "") or kernel.operation
        return Part(
            "kernel",
            name,
            kernel.operation,
            kernel.members,
            (),
            interface(self.program, kernel.members),
            scopes,
            kernel.reason,
            kernel,
        )

    def _common(self, kernels: Iterable[int]) -> tuple[Scope, ...]:
        return shared_scopes(self.program.scopes[k] for k in kernels)
