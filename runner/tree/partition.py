"""Partitions a graph of kernels into model, layers, fusions and kernels.

docs/decisions/how-a-model-comes-apart.md states the rules, and their reasons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from runner.graph.recognition.recognize import Kernel
from runner.graph.terms import snake_case
from runner.tree.document import Level
from runner.tree.function_calls import (
    Call,
    find_function_calls,
    find_large_calls,
    find_loop_calls,
    function_with_loop,
)
from runner.tree.fusions import (
    FEWEST_TURNS,
    LARGEST_FUSION,
    Fusion,
    KernelFlow,
    blocks_up_to_joins,
    constant_fusions,
    fits_fusion,
    is_branch,
    is_join,
    is_mostly_unfused,
    is_residual,
    is_small,
    straight_lines,
)
from runner.tree.inline_blocks import Block, find_blocks, find_loops
from runner.tree.interface import Interface, Program, interface, shared_scopes
from runner.tree.layer_structure import MOSTLY, LayerStructure
from runner.tree.module_regions import Region, build_regions, is_container
from runner.tree.part import Part, order_parts
from runner.tree.part_builder import PartBuilder, describe_class, unwrap_parts
from runner.tree.part_names import attribute, container_stem, fusion_stem
from runner.tree.root_level import reason_for_model

_HEAD_CONTRACTIONS = 3
"""Most linear layers in an output head."""
_STEMS_OF_ANY_LIST = {"blocks_block", "layers_block", "net_block"}
"""Stems of list elements that say less than the class with the list."""


def partition(program: Program, source_level: str, problem_name: str) -> Part:
    """Return the tree of parts of a program, by the rules of its source level."""
    return _Partition(program, source_level, problem_name).root()


class _Partition:
    """The partition of one program."""

    def __init__(self, program: Program, source_level: str, problem_name: str) -> None:
        self.program = program
        self.graph, self.kernels = program.graph, program.kernels
        self.source_level = source_level
        self.problem_stem = snake_case(re.sub(r"^\d+_", "", problem_name)) or "model"
        self.flow = KernelFlow(program)
        self.everything = tuple(range(len(self.graph.operations)))
        self.region = build_regions(self.flow)
        self.straight_ids = {id(r) for r in self.region.walk() if self._is_straight(r)}
        self.structure = LayerStructure(self.flow, self.region, self.straight_ids)
        self.builder = PartBuilder(program, self.flow, self.structure.wrapper_classes)

    def root(self) -> Part:
        """Return the part that is the whole problem."""
        if self.source_level == "level1" or len(self.kernels) < 2:
            return self._root_kernel()
        if self.source_level == "level2":
            kernels = range(len(self.kernels))
            return self._root_part(
                "fusion", self.builder.kernel_parts(kernels), "a problem of level 2 is one fusion"
            )
        why_model = reason_for_model(self.flow, self.region, self.straight_ids, self.structure)
        if why_model is None:
            level: Level = "layer"
            children = self._layer_contents(self.region)
            reason = "one building block: feature maps come in and go out, and no block repeats"
        else:
            level, children, reason = "model", self._model_contents(), f"a whole model: {why_model}"
        if self.source_level != "level3" and len(children) == 1:
            child = children[0]
            reason = f"all of it: {child.reason}"
            return self._root_part(child.level, list(child.children) or children, reason)
        return self._root_part(level, unwrap_parts(children), reason)

    def _root_kernel(self) -> Part:
        if len(self.kernels) == 1:
            kernel = replace(self.kernels[0], members=self.everything)
        else:
            kernel = Kernel(
                self.problem_stem, self.everything, "a problem of level 1 is one kernel", "other"
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
        whole_interface = interface(self.program, self.everything)
        extra = tuple(
            n
            for n in self.program.returned_values
            if n in self.graph.states and n not in whole_interface.states
        )
        return Interface(
            tuple(i.name for i in self.graph.inputs),
            whole_interface.states + extra,
            self.graph.output_names(),
        )

    def _root_part(self, level: Level, children: list[Part], reason: str) -> Part:
        stem = (
            self.problem_stem
            if level != "fusion"
            else fusion_stem([k.operation for k in self.kernels], self.problem_stem)
        )
        parts = order_parts(self.program, self.everything, children)
        root = self._root_interface()
        groups = self.builder.groups(parts) if level == "fusion" else ()
        return Part(
            level, self.problem_stem, stem, self.everything, parts, root, (), reason, groups=groups
        )

    # --- a model ----------------------------------------------------------------------------------

    def _model_contents(self) -> list[Part]:
        """Return the layers, fusions and kernels of a model."""
        parts: list[Part] = []
        loose_by_region: list[tuple[Region, list[int]]] = []
        queue = [self.region]
        while queue:
            region_now = queue.pop()
            loop_calls = self._loop_calls(region_now)
            parts += [self._function_layer(*call, region_now) for call in loop_calls]
            in_loops = {k for _, kernels in loop_calls for k in kernels}
            items = [i for i in region_now.items if isinstance(i, Region) or i not in in_loops]
            rest = Region(region_now.scope, items)
            functions = self._is_mostly(self._large_calls(rest), rest)
            blocks_of_region = [] if functions else find_blocks(self.flow, rest, self.straight_ids)
            parts += [self._block_part(block, region_now) for block in blocks_of_region]
            ids_in_blocks = {id(item) for block in blocks_of_region for item in block.items}
            kernels_in_blocks = {
                item for block in blocks_of_region for item in block.items if isinstance(item, int)
            }
            loose: list[int] = []
            for item in items:
                if isinstance(item, int):
                    loose += [item] if item not in kernels_in_blocks else []
                elif id(item) in ids_in_blocks:
                    continue
                elif not self.structure.is_of_parallel_calls(item) and self._is_model_fusion(item):
                    self.builder.fused_kernels.add(list(item.kernels()))
                    parts.append(self.builder.module_fusion(item, list(item.kernels())))
                elif (
                    self.structure.is_frame(item)
                    or self._is_row_of_blocks(item)
                    or (
                        not self.structure.is_repeated(item)
                        and self._is_mostly(self._large_calls(item), item)
                    )
                ):
                    queue.append(item)
                else:
                    parts.append(self._module_layer(item))
            loose_by_region.append((region_now, loose))
        for region, loose in loose_by_region:
            for name, kernels in self._large_calls(Region(region.scope, list(loose))):
                if self.builder.fused_kernels.allows(kernels):
                    parts.append(self._function_layer(name, kernels, region))
                    inside = set(kernels)
                    loose[:] = [k for k in loose if k not in inside]
        layers = any(part.level == "layer" for part in parts)
        head = (
            self._output_head([k for _, loose in loose_by_region for k in loose])
            if layers
            else None
        )
        kernels_in_fusions = set(head.kernels if head is not None else ())
        for region, loose in loose_by_region:
            fusions = constant_fusions(self.flow, loose)
            kernels_in_fusions |= {k for fusion in fusions for k in fusion.kernels}
            calls = self._function_calls([k for k in loose if k not in kernels_in_fusions], region)
            fusions += calls
            kernels_in_fusions |= {k for fusion in fusions for k in fusion.kernels}
            parts += map(self.builder.fusion_part, fusions)
            parts += self.builder.lines_and_kernels(
                [k for k in loose if k not in kernels_in_fusions]
            )
        return [*parts, self.builder.fusion_part(head)] if head is not None else parts

    def _has_equals(self, region: Region) -> bool:
        """Return whether other calls run the same operators: the last equal block is no head."""
        counts = Counter(
            tuple(self.flow.kernels[k].operation for k in call.kernels())
            for call in self.region.walk()
        )
        return counts[tuple(self.flow.kernels[k].operation for k in region.kernels())] > 1

    def _output_head(self, loose: list[int]) -> Fusion | None:
        """Return the line that ends in a linear layer and the model's result: `rms_norm, linear`.

        It may begin in a module that is only the frame around the layers, but not in the middle of
        a function's call. It includes no call without the linear layer. Of several equal lines none
        is the head, nor is a line in which a value is added to what the linear layer gives.
        """
        lines = [(line, self._operations(line)) for line in straight_lines(self.flow, loose)]
        for line, operations in lines:
            if "linear" not in operations or not self.flow.readers_of_kernel(line.kernels[-1])[2]:
                continue
            after_linear = line.kernels[operations.index("linear") :]
            if any(is_join(self.flow, k) for k in after_linear) or (
                sum(operations == others for _, others in lines) > 1
            ):
                continue
            calls = find_function_calls(self.flow, loose, len(self.kernels), lambda _: True)
            others = {
                k
                for _, call in calls
                if not {*call}.isdisjoint(line.kernels)
                and not (
                    {*call} <= {*line.kernels}
                    and any(self.kernels[m].operation == "linear" for m in call)
                )
                for k in call
            }
            if others:
                return self._output_head([k for k in loose if k not in others])
            return replace(line, stem="output_head")
        return None

    def _operations(self, line: Fusion) -> list[str]:
        return [self.kernels[k].operation for k in line.kernels]

    def _is_row_of_blocks(self, region: Region) -> bool:
        """Return whether a call is little more than consecutive blocks.

        Steps with at most one contraction are no blocks, nor are small turns of a loop with at most
        one, nor the steps of a call that is small enough for a fusion. A class that is called
        several times is a block itself.
        """
        container = region.scope is not None and is_container(region.scope)
        if not container and self.structure.is_repeated(region):
            return False
        is_small = fits_fusion(self.flow, list(region.kernels()))
        turns = self._loop_turns(region)
        if turns and not container and all(map(self._is_small_turn, turns)):
            return False
        larger_blocks = [
            block
            for block in find_blocks(self.flow, region, self.straight_ids)
            if not (self._is_line(block) and not container)
            and (
                block.stem != "step"
                or (
                    not is_small
                    and sum(self.flow.contractions[k] for k in block.region().kernels()) > 1
                )
            )
        ]
        kernels_in_blocks = sum(1 for block in larger_blocks for _ in block.region().kernels())
        return kernels_in_blocks >= MOSTLY * sum(1 for _ in region.kernels())

    def _is_small_turn(self, turn: Sequence[int]) -> bool:
        return fits_fusion(self.flow, turn) and sum(self.flow.contractions[k] for k in turn) < 2

    def _is_mostly(self, calls: list[Call], region: Region) -> bool:
        """Return whether there are several calls and they hold most of a region."""
        kernels_in_calls = sum(len(kernels) for _, kernels in calls)
        return len(calls) > 1 and kernels_in_calls >= MOSTLY * sum(1 for _ in region.kernels())

    def _large_calls(self, region: Region) -> list[Call]:
        """Return the calls of functions that are too large for a fusion and no rows of blocks."""
        loose = [item for item in region.items if isinstance(item, int)]
        calls = find_large_calls(self.flow, loose)
        return [call for call in calls if not self._is_row_of_blocks(Region(None, list(call[1])))]

    def _loop_calls(self, region: Region) -> list[Call]:
        """Return the calls of functions that run a loop of small turns: they become layers."""
        loose = [item for item in region.items if isinstance(item, int)]
        return [
            call
            for call in find_loop_calls(self.flow, loose)
            if all(map(self._is_small_turn, self._loop_turns(Region(None, list(call[1])))))
            and self.builder.fused_kernels.allows(call[1])
        ]

    def _is_model_fusion(self, region: Region) -> bool:
        """Return whether a call in a model is a fusion: with one contraction, or the output head.

        Other calls of its class have one contraction at most too: the first turn of a recurrence
        may compute less than the others. Repeated calls are layers all the same, unless layers call
        their class too.
        A head gives the model's result with a few linear layers and no other contraction.
        """
        kernels = list(region.kernels())
        contractions = [self.kernels[k].operation for k in kernels if self.flow.contractions[k]]
        assert region.scope is not None
        cls = region.scope.callee
        calls = self.structure.calls_by_class.get(cls, [])
        if id(region) in self.straight_ids:
            turns = [r for r in calls if r.scope and r.scope.path == region.scope.path]
            return max(map(self._contractions, [region, *turns])) < 2
        is_layer = cls in self.structure.layer_classes and cls not in self.structure.inner_classes
        if is_layer or not self.builder.may_be_fusion(kernels):
            return False
        head = set(contractions) == {"linear"} and any(
            self.flow.readers_of_kernel(k)[2] for k in kernels
        )
        head = head and not self._has_equals(region)
        if head:
            return len(contractions) <= _HEAD_CONTRACTIONS
        return max(map(self._contractions, [region, *calls])) < 2

    def _block_part(self, block: Block, around: Region) -> Part:
        """Return an inline block as a layer, or as a fusion if it is a module's call and more.

        `MaskedLinear, ReLU`, again and again, is one line around one contraction.
        """
        region = block.region()
        kernels = sorted(region.kernels())
        if self._is_line(block) and self.builder.may_be_fusion(kernels):
            self.builder.fused_kernels.add(kernels)
            stem = fusion_stem(self.builder.item_stems(region), "")
            reason = f"operations that the program runs {block.count} times in a row"
            return self.builder.fusion_part(Fusion(tuple(kernels), reason, stem))
        children = self._layer_contents(region)
        inside = {i for child in children for i in child.operations}
        operations = tuple(sorted(inside | self.builder.views_between(inside, region.kernels())))
        prefix = attribute(around.scope.path) if around.scope is not None else ""
        if block.stem == "block":
            prefix = self._class_around_all(region.kernels())
        stem = f"{prefix}_{block.stem}" if prefix else block.stem
        if block.stem == "step":
            stem = self._step_stem(around, list(region.kernels()))
        reason = f"operations that the program runs {block.count} times in a row"
        name = f"{block.stem}_{block.number}"
        return self.builder.parent_part("layer", name, stem, operations, children, reason)

    def _is_line(self, block: Block) -> bool:
        """Return whether a block is one straight line of a module's kernels and others."""
        varying = [k for k in block.region().kernels() if not self.flow.constant[k]]
        lines = straight_lines(self.flow, varying)
        return block.stem == "stage" and [len(line.kernels) for line in lines] == [len(varying)]

    def _class_around_all(self, kernels: Iterable[int]) -> str:
        """Return the stem of the innermost class of the author's that runs all of these kernels."""
        scopes = shared_scopes(self.program.scopes[k] for k in kernels)
        return next((snake_case(s.cls) for s in reversed(scopes) if not s.builtin and s.path), "")

    def _function_layer(self, name: str, kernels: list[int], around: Region) -> Part:
        """Return a large call of a function as a layer."""
        children = self._layer_contents(Region(around.scope, list(kernels)))
        inside = {i for child in children for i in child.operations}
        operations = tuple(sorted(inside | self.builder.views_between(inside, kernels)))
        if name == "forward" and around.scope is not None:
            name = f"{self._class_stem_around(around)}_forward".strip("_")
        reason = f"a call of the author's function {name}, which holds {len(kernels)} kernels"
        return self.builder.parent_part("layer", name, name, operations, children, reason)

    def _module_layer(self, region: Region) -> Part:
        """Return a call of a module as a layer."""
        assert region.scope is not None
        children = self._layer_contents(region)
        operations = self.builder.with_views(children, region)
        if is_container(region.scope):
            stem = container_stem(region.scope.path)
            if stem in _STEMS_OF_ANY_LIST:
                cls = self._class_around_all(region.kernels()).removesuffix("_block")
                stem = f"{cls}_block" if cls else stem
        else:
            stem = self.builder.class_stem(region)
        contractions = sum(self.flow.contractions[k] for k in region.kernels())
        kernel_count = sum(1 for _ in region.kernels())
        contents = (
            f"{contractions} contractions"
            if contractions > 1
            else f"{kernel_count} kernels that branch"
        )
        reason = f"a call of {describe_class(region.scope)}, which holds {contents}"
        name = attribute(region.scope.path) or stem
        return self.builder.parent_part(
            "layer", name, stem, operations, children, reason, region.scope
        )

    # --- a layer ----------------------------------------------------------------------------------

    def _layer_contents(self, region: Region) -> list[Part]:
        """Return the fusions and kernels of a layer, by rules 5a to 5d."""
        kernels = list(region.kernels())
        inside = set(kernels)
        joins = {k for k in kernels if is_residual(self.flow, k, inside)}
        parts = self._region_parts(region, joins)
        return parts if len(parts) > 1 else self.builder.lines_and_kernels(kernels)

    def _region_parts(self, region: Region, joins: Collection[int]) -> list[Part]:
        turns = self._loop_turns(region)
        steps = self._loop_steps(region, turns)
        kernels_in_fusions = {k for step in steps for k in step.kernels}
        items = list(self._items_of_call(region, kernels_in_fusions, joins))
        own_kernels = {i for i in items if isinstance(i, int)}.difference(*turns)
        constants = constant_fusions(self.flow, own_kernels)
        kernels_in_fusions |= {k for fusion in constants for k in fusion.kernels}
        stretches: list[list[int]] = [[]]
        for item in items:
            if isinstance(item, Part):
                stretches.append([])
            elif item not in kernels_in_fusions:
                stretches[-1].append(item)
        parts = [i for i in items if isinstance(i, Part)]
        parts += map(self.builder.fusion_part, [*steps, *constants])
        loose = {k for stretch in stretches for k in stretch}
        if len(joins) > 1:
            for fusion in blocks_up_to_joins(self.flow, stretches, joins):
                if self.builder.may_be_fusion(fusion.kernels):
                    self.builder.fused_kernels.add(fusion.kernels)
                    parts.append(self.builder.fusion_part(fusion))
                    loose -= set(fusion.kernels)
        for fusion in self._function_calls(sorted(loose), region):
            parts.append(self.builder.fusion_part(fusion))
            loose -= set(fusion.kernels)
        return parts + self.builder.lines_and_kernels(sorted(loose))

    def _function_calls(self, loose: Sequence[int], region: Region) -> Iterator[Fusion]:
        """Yield the calls of the author's functions in a module call, as fusions."""
        around = sum(1 for _ in region.kernels())
        for name, kernels in find_function_calls(
            self.flow, loose, around, self.builder.fused_kernels.allows
        ):
            if name.startswith("forward") and region.inner():
                continue  # the rest of `forward_features`, which calls modules too
            if self.builder.fused_kernels.allows(kernels):
                self.builder.fused_kernels.add(kernels)
                reason = (
                    f"a call of the author's function {name}, which holds {len(kernels)} kernels"
                )
                yield Fusion(tuple(kernels), reason, name)

    def _loop_turns(self, region: Region) -> list[list[int]]:
        """Return the turns of the loops that a call runs, itself or in the functions it calls."""
        loops = find_loops(self.flow, region, self.straight_ids)
        if not loops:
            loose = [item for item in region.items if isinstance(item, int)]
            for _, kernels in find_loop_calls(self.flow, loose):
                loops += find_loops(self.flow, Region(None, list(kernels)), set())
        return [turn for turns in loops for turn in turns]

    def _loop_steps(self, region: Region, turns: list[list[int]]) -> list[Fusion]:
        """Return the turns of the loops that a call runs, as fusions."""
        steps = []
        for turn in turns:
            if len(turn) > 1 and self.builder.fused_kernels.allows(turn):
                self.builder.fused_kernels.add(turn)
                stem = self._step_stem(region, turn)
                steps.append(Fusion(tuple(turn), f"one of {len(turns)} turns of a loop", stem))
        return steps

    def _step_stem(self, region: Region, turn: Collection[int]) -> str:
        """Return the stem of a loop's turn: the function or the class with the loop, and `step`."""
        stem = function_with_loop(self.flow, turn) or self._class_stem_around(region)
        return stem if stem.endswith("step") else f"{stem}_step".strip("_")

    def _class_stem_around(self, region: Region) -> str:
        scope = region.scope
        return snake_case(scope.cls) if scope is not None and not scope.builtin else ""

    def _items_of_call(
        self, region: Region, kernels_in_fusions: set[int], joins: Collection[int]
    ) -> Iterator[int | Part]:
        """Yield the kernels of a call, and its inner calls as fusions, in their order."""
        call_counts = Counter(
            inner.scope.path for inner in region.inner() if inner.scope is not None
        )
        for item in region.items:
            if isinstance(item, int):
                if item not in kernels_in_fusions:
                    yield item
                continue
            kernels = [k for k in item.kernels() if k not in kernels_in_fusions]
            if (
                self._is_body(item, region)
                or self.structure.is_two_blocks(item)
                or self.structure.is_around_shared_parts(item)
            ):
                yield from self._items_of_call(item, kernels_in_fusions, joins)
            elif len(kernels) > LARGEST_FUSION and self.structure.must_be_split(item):
                yield from self._region_parts(item, joins)
            elif len(kernels) == 1:
                yield kernels[0]
            elif kernels and self.builder.may_be_fusion(
                kernels,
                (item.scope is not None and call_counts[item.scope.path] >= FEWEST_TURNS)
                or self._is_one_block(item, kernels, joins),
            ):
                self.builder.fused_kernels.add(kernels)
                yield self.builder.module_fusion(item, kernels)
            elif kernels:
                yield from self._region_parts(item, joins)

    def _is_one_block(
        self, region: Region, kernels: Collection[int], joins: Collection[int]
    ) -> bool:
        """Return whether an author's call has one contraction, or is the branch of a residual add.

        A call without inner calls is also one block if its kernels would otherwise be in no fusion.
        It is none if inner calls with several contractions hold most of its contractions, or if it
        runs a loop: then the turns of the loop are the fusions.
        """
        if region.scope is None or is_container(region.scope) or not is_small(self.flow, kernels):
            return False
        if self._loop_turns(region):
            return False
        contractions = self._contractions(region)
        inner_counts = [self._contractions(inner) for inner in region.inner()]
        while contractions in inner_counts:  # `region` only wraps one call
            region = region.inner()[inner_counts.index(contractions)]
            inner_counts = [self._contractions(inner) for inner in region.inner()]
        in_large_calls = sum(count for count in inner_counts if count > 1)
        if in_large_calls > MOSTLY * contractions:
            return False
        return (
            contractions < 2
            or is_branch(self.flow, kernels, joins)
            or (not region.inner() and self._is_dissolved(kernels))
        )

    def _is_dissolved(self, kernels: Collection[int]) -> bool:
        """Return whether most kernels without their call would be in no line and no function."""
        calls = find_function_calls(self.flow, sorted(kernels), len(kernels), lambda _: True)
        return not calls and is_mostly_unfused(self.flow, kernels)

    def _contractions(self, region: Region) -> int:
        return sum(self.flow.contractions[k] for k in region.kernels())

    def _is_body(self, region: Region, around: Region) -> bool:
        """Return whether a container holds most kernels of the call around it: it is its body."""
        assert region.scope is not None
        kernels = list(region.kernels())
        return (
            is_container(region.scope)
            and len(kernels) >= MOSTLY * sum(1 for _ in around.kernels())
            and sum(self.flow.contractions[k] for k in kernels) > 1
        )

    # --- fusions and kernels ----------------------------------------------------------------------

    def _is_straight(self, region: Region) -> bool:
        """Return whether a call is one straight line.

        Its weights may be computed from parameters first, as in weight standardisation.
        """
        varying = {k for k in region.kernels() if not self.flow.constant[k]}
        straight = straight_lines(self.flow, varying)
        return len(varying) == 1 or (len(straight) == 1 and set(straight[0].kernels) == varying)
