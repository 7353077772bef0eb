"""The partition of a graph of kernels: model, layers, fusions, kernels.

docs/decisions/how-a-model-comes-apart.md states the rules, and their reasons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from runner.graph.recognition.recognize import Kernel
from runner.graph.terms import snake_case
from runner.tree.document import Level
from runner.tree.function_calls import Call, function_calls, large_calls
from runner.tree.fusions import (
    FEWEST_TURNS,
    LARGEST_FUSION,
    Fusion,
    KernelFlow,
    blocks_up_to_joins,
    constant_fusions,
    fits_fusion,
    is_branch,
    is_dissolved,
    is_residual,
    is_small,
    lines,
)
from runner.tree.inline_blocks import Block, blocks, loops
from runner.tree.interface import Interface, Program, interface
from runner.tree.layer_structure import MOSTLY, Structure, wrappers
from runner.tree.module_regions import Region, is_container, regions
from runner.tree.part import Part, in_order
from runner.tree.part_builder import PartMaker, of_class, opened
from runner.tree.part_names import attribute, container_stem, fusion_stem
from runner.tree.root_level import why_a_model

_HEAD_CONTRACTIONS = 3
"""Linear layers in an output head."""


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
        self.region = regions(self.flow)
        self.make = PartMaker(program, self.flow, wrappers(self.region))
        self.straight = {id(r) for r in self.region.walk() if self._is_straight(r)}
        self.structure = Structure(self.flow, self.region, self.straight)

    def root(self) -> Part:
        if self.source_level == "level1" or len(self.kernels) < 2:
            return self._root_kernel()
        if self.source_level == "level2":
            kernels = range(len(self.kernels))
            return self._whole(
                "fusion", self.make.kernel_parts(kernels), "a problem of level 2 is one fusion"
            )
        why_model = why_a_model(self.flow, self.region, self.straight, self.structure)
        if why_model is None:
            level: Level = "layer"
            children = self._contents(self.region)
            reason = "one building block: feature maps come in and go out, and no block repeats"
        else:
            level, children, reason = "model", self._model_contents(), f"a whole model: {why_model}"
        if self.source_level != "level3" and len(children) == 1:
            only = children[0]
            reason = f"all of it: {only.reason}"
            return self._whole(only.level, list(only.children) or children, reason)
        return self._whole(level, opened(children), reason)

    def _root_kernel(self) -> Part:
        if len(self.kernels) == 1:
            kernel = replace(self.kernels[0], members=self.everything)
        else:
            kernel = Kernel(
                self.title, self.everything, "a problem of level 1 is one kernel", "other"
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
        groups = self.make.groups(parts) if level == "fusion" else ()
        return Part(
            level, self.title, stem, self.everything, parts, root, (), reason, groups=groups
        )

    # --- a model ----------------------------------------------------------------------------------

    def _model_contents(self) -> list[Part]:
        """The layers, fusions and kernels of a model."""
        parts: list[Part] = []
        loose_of: list[tuple[Region, list[int]]] = []
        queue = [self.region]
        while queue:
            current = queue.pop()
            functions = self._is_mostly(self._large_calls(current), current)
            repeated = [] if functions else blocks(self.flow, current, self.straight)
            parts += [self._block(block, current) for block in repeated]
            inside = {id(item) for block in repeated for item in block.items}
            numbers = {item for block in repeated for item in block.items if isinstance(item, int)}
            loose: list[int] = []
            for item in current.items:
                if isinstance(item, int):
                    loose += [item] if item not in numbers else []
                elif id(item) in inside:
                    continue
                elif id(item) in self.straight or self._is_small(item):
                    self.make.drawn_together.add(list(item.kernels()))
                    parts.append(self.make.call(item, list(item.kernels())))
                elif (
                    self.structure.is_frame(item)
                    or self._is_blocks(item)
                    or self._is_around_functions(item)
                ):
                    queue.append(item)
                else:
                    parts.append(self._layer(item))
            loose_of.append((current, loose))
        for region, loose in loose_of:
            for name, kernels in self._large_calls(Region(region.scope, list(loose))):
                if self.make.drawn_together.allows(kernels):
                    parts.append(self._function_layer(name, kernels, region))
                    loose[:] = [k for k in loose if k not in set(kernels)]
        layers = any(part.level == "layer" for part in parts)
        head = self._head([k for _, loose in loose_of for k in loose]) if layers else None
        taken = set(head.kernels if head is not None else ())
        for region, loose in loose_of:
            fusions = constant_fusions(self.flow, loose)
            taken |= {k for fusion in fusions for k in fusion.kernels}
            calls = self._function_calls([k for k in loose if k not in taken], region)
            fusions += calls
            taken |= {k for fusion in fusions for k in fusion.kernels}
            parts += map(self.make.fusion, fusions)
            parts += self.make.lines_and_kernels([k for k in loose if k not in taken])
        return [*parts, self.make.fusion(head)] if head is not None else parts

    def _head(self, loose: list[int]) -> Fusion | None:
        """The line that ends in a linear layer and the model's result: `rms_norm, linear`.

        It may begin in a module that is only the frame around the layers.
        """
        for line in lines(self.flow, loose):
            operations = {self.kernels[k].operation for k in line.kernels}
            if "linear" in operations and self.flow.exits(line.kernels[-1])[2]:
                return replace(line, stem="output_head")
        return None

    def _is_blocks(self, region: Region) -> bool:
        """A call that is little more than blocks in a row.

        Steps of one contraction are none, nor small turns of a loop around one, nor are steps of a
        call that is small enough for a fusion. A class that is called several times is a block
        itself.
        """
        container = region.scope is not None and is_container(region.scope)
        if not container and self.structure.is_repeated(region):
            return False
        small = fits_fusion(self.flow, list(region.kernels()))
        turns = self._turns(region)
        if turns and not container and all(map(self._is_small_turn, turns)):
            return False
        found = [
            block
            for block in blocks(self.flow, region, self.straight)
            if block.stem != "step"
            or (not small and sum(self.flow.contractions[k] for k in block.region().kernels()) > 1)
        ]
        held = sum(1 for block in found for _ in block.region().kernels())
        return held >= MOSTLY * sum(1 for _ in region.kernels())

    def _is_small_turn(self, turn: Sequence[int]) -> bool:
        return fits_fusion(self.flow, turn) and sum(self.flow.contractions[k] for k in turn) < 2

    def _is_around_functions(self, region: Region) -> bool:
        """A call that is little more than several calls of functions too large for fusions."""
        return not self.structure.is_repeated(region) and self._is_mostly(
            self._large_calls(region), region
        )

    def _is_mostly(self, calls: list[Call], region: Region) -> bool:
        held = sum(len(kernels) for _, kernels in calls)
        return len(calls) > 1 and held >= MOSTLY * sum(1 for _ in region.kernels())

    def _large_calls(self, region: Region) -> list[Call]:
        """The calls of functions that are too large for a fusion, and no rows of blocks."""
        loose = [item for item in region.items if isinstance(item, int)]
        calls = large_calls(self.flow, loose)
        return [call for call in calls if not self._is_blocks(Region(None, list(call[1])))]

    def _is_small(self, region: Region) -> bool:
        """A call in a model that is a fusion: with one contraction, or the output head.

        A head gives the model's result with a few linear layers and no other contraction.
        """
        kernels = list(region.kernels())
        contractions = [self.kernels[k].operation for k in kernels if self.flow.contractions[k]]
        assert region.scope is not None
        if region.scope.callee in self.structure.classes or not self.make.may_be_fusion(kernels):
            return False
        head = set(contractions) == {"linear"} and any(self.flow.exits(k)[2] for k in kernels)
        return len(contractions) <= (_HEAD_CONTRACTIONS if head else 1)

    def _block(self, block: Block, around: Region) -> Part:
        region = block.region()
        children = self._contents(region)
        inside = {i for child in children for i in child.operations}
        operations = tuple(sorted(inside | self.make.views_between(inside, region.kernels())))
        place = attribute(around.scope.path) if around.scope is not None else ""
        if block.stem == "step":
            place = self._class_around(around)
        stem = f"{place}_{block.stem}" if place and block.stem != "block" else block.stem
        reason = f"operations that the program runs {block.count} times in a row"
        name = f"{block.stem}_{block.number}"
        return self.make.parent("layer", name, stem, operations, children, reason)

    def _function_layer(self, name: str, kernels: list[int], around: Region) -> Part:
        children = self._contents(Region(around.scope, list(kernels)))
        inside = {i for child in children for i in child.operations}
        operations = tuple(sorted(inside | self.make.views_between(inside, kernels)))
        if name == "forward" and around.scope is not None:
            name = f"{self._class_around(around)}_forward".strip("_")
        reason = f"a call of the author's function {name}, which holds {len(kernels)} kernels"
        return self.make.parent("layer", name, name, operations, children, reason)

    def _layer(self, region: Region) -> Part:
        assert region.scope is not None
        children = self._contents(region)
        operations = self.make.with_views(children, region)
        stem = (
            container_stem(region.scope.path)
            if is_container(region.scope)
            else self.make.class_stem(region)
        )
        contractions = sum(self.flow.contractions[k] for k in region.kernels())
        held = sum(1 for _ in region.kernels())
        what = f"{contractions} contractions" if contractions > 1 else f"{held} kernels that branch"
        reason = f"a call of {of_class(region.scope)}, which holds {what}"
        name = attribute(region.scope.path) or stem
        return self.make.parent("layer", name, stem, operations, children, reason, region.scope)

    # --- a layer ----------------------------------------------------------------------------------

    def _contents(self, region: Region) -> list[Part]:
        """The fusions and kernels of a layer, by rule 5, a to d."""
        kernels = list(region.kernels())
        joins = {k for k in kernels if is_residual(self.flow, k, set(kernels))}
        parts = self._pieces(region, joins)
        return parts if len(parts) > 1 else self.make.lines_and_kernels(kernels)

    def _pieces(self, region: Region, joins: Collection[int]) -> list[Part]:
        steps = self._steps(region)
        taken = {k for step in steps for k in step.kernels}
        items = list(self._items(region, taken, joins))
        own = {i for i in items if isinstance(i, int)}.difference(*self._turns(region))
        constants = constant_fusions(self.flow, own)
        taken |= {k for fusion in constants for k in fusion.kernels}
        stretches: list[list[int]] = [[]]
        for item in items:
            if isinstance(item, Part):
                stretches.append([])
            elif item not in taken:
                stretches[-1].append(item)
        parts = [i for i in items if isinstance(i, Part)]
        parts += map(self.make.fusion, [*steps, *constants])
        loose = {k for stretch in stretches for k in stretch}
        if len(joins) > 1:
            for fusion in blocks_up_to_joins(self.flow, stretches, joins):
                if self.make.may_be_fusion(fusion.kernels):
                    self.make.drawn_together.add(fusion.kernels)
                    parts.append(self.make.fusion(fusion))
                    loose -= set(fusion.kernels)
        for fusion in self._function_calls(sorted(loose), region):
            parts.append(self.make.fusion(fusion))
            loose -= set(fusion.kernels)
        return parts + self.make.lines_and_kernels(sorted(loose))

    def _function_calls(self, loose: Sequence[int], region: Region) -> Iterator[Fusion]:
        """The calls of the author's functions in a module call, as fusions."""
        around = sum(1 for _ in region.kernels())
        for name, kernels in function_calls(
            self.flow, loose, around, self.make.drawn_together.allows
        ):
            if self.make.drawn_together.allows(kernels):
                self.make.drawn_together.add(kernels)
                reason = (
                    f"a call of the author's function {name}, which holds {len(kernels)} kernels"
                )
                yield Fusion(tuple(kernels), reason, name)

    def _turns(self, region: Region) -> list[list[int]]:
        """The turns of the loops that a call runs."""
        return [turn for turns in loops(self.flow, region, self.straight) for turn in turns]

    def _steps(self, region: Region) -> list[Fusion]:
        """The turns of the loops that a call runs, as fusions."""
        turns = self._turns(region)
        stem = f"{self._class_around(region)}_step".strip("_")
        steps = []
        for turn in turns:
            if len(turn) > 1 and self.make.drawn_together.allows(turn):
                self.make.drawn_together.add(turn)
                steps.append(Fusion(tuple(turn), f"one of {len(turns)} turns of a loop", stem))
        return steps

    def _class_around(self, region: Region) -> str:
        scope = region.scope
        return snake_case(scope.cls) if scope is not None and not scope.builtin else ""

    def _items(
        self, region: Region, taken: set[int], joins: Collection[int]
    ) -> Iterator[int | Part]:
        """What a call holds, in the order in which it runs: its own calls as fusions."""
        times = Counter(inner.scope.path for inner in region.inner() if inner.scope is not None)
        for item in region.items:
            if isinstance(item, int):
                if item not in taken:
                    yield item
                continue
            kernels = [k for k in item.kernels() if k not in taken]
            if self._is_body(item, region) or self.structure.is_two_blocks(item):
                yield from self._items(item, taken, joins)
            elif len(kernels) > LARGEST_FUSION and self.structure.is_opened(item):
                yield from self._pieces(item, joins)
            elif len(kernels) == 1:
                yield kernels[0]
            elif kernels and self.make.may_be_fusion(
                kernels,
                (item.scope is not None and times[item.scope.path] >= FEWEST_TURNS)
                or self._is_one_block(item, kernels, joins),
            ):
                self.make.drawn_together.add(kernels)
                yield self.make.call(item, kernels)
            elif kernels:
                yield from self._pieces(item, joins)

    def _is_one_block(
        self, region: Region, kernels: Collection[int], joins: Collection[int]
    ) -> bool:
        """Whether an author's call is around one contraction, or is the branch of a residual add.

        So is one that calls nothing and would be a run of lone kernels. It is not where inner calls
        with several contractions hold most of its contractions, or where it runs a loop: the loop's
        turns are the fusions.
        """
        if region.scope is None or is_container(region.scope) or not is_small(self.flow, kernels):
            return False
        if self._turns(region):
            return False
        contractions = self._contractions(region)
        several = [self._contractions(inner) for inner in region.inner()]
        while contractions in several:  # a wrapper of one call
            region = region.inner()[several.index(contractions)]
            several = [self._contractions(inner) for inner in region.inner()]
        held = sum(count for count in several if count > 1)
        if held > MOSTLY * contractions:
            return False
        return (
            contractions < 2
            or is_branch(self.flow, kernels, joins)
            or (not region.inner() and self._is_dissolved(kernels))
        )

    def _is_dissolved(self, kernels: Collection[int]) -> bool:
        """Whether kernels, without their call, would be a run of lone ones in no function."""
        calls = function_calls(self.flow, sorted(kernels), len(kernels), lambda _: True)
        return not calls and is_dissolved(self.flow, kernels)

    def _contractions(self, region: Region) -> int:
        return sum(self.flow.contractions[k] for k in region.kernels())

    def _is_body(self, region: Region, around: Region) -> bool:
        """A container that holds most of what is around it is no part of it, but its body."""
        assert region.scope is not None
        kernels = list(region.kernels())
        return (
            is_container(region.scope)
            and len(kernels) >= MOSTLY * sum(1 for _ in around.kernels())
            and sum(self.flow.contractions[k] for k in kernels) > 1
        )

    # --- fusions and kernels ----------------------------------------------------------------------

    def _is_straight(self, region: Region) -> bool:
        """One line, whose weights may be made of parameters first (weight standardisation)."""
        inside = {k for k in region.kernels() if not self.flow.constant[k]}
        found = lines(self.flow, inside)
        return len(inside) == 1 or (len(found) == 1 and set(found[0].kernels) == inside)
