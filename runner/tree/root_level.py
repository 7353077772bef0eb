"""Decides whether a problem without a given level is a model, or one building block, a layer."""

from collections import Counter

from runner.tree.fusions import KernelFlow
from runner.tree.inline_blocks import find_blocks
from runner.tree.interface import Program
from runner.tree.layer_structure import LayerStructure
from runner.tree.module_regions import Region, is_container


def reason_for_model(
    flow: KernelFlow, root: Region, straight_ids: set[int], structure: LayerStructure
) -> str | None:
    """Return why the problem is a model; None if it is one building block, a layer.

    A block's first input and output are feature maps with the same number of dimensions, three or
    more, and the same batch size. It repeats no block. If it calls modules of its own, its input is
    no image: a tensor of four dimensions with at most four channels. `straight_ids` holds the ids
    of regions that are one line.
    """
    program = flow.program
    if not _has_feature_map_form(program):
        return "what goes out is no feature map like what comes in"
    modules = [r for r in root.walk() if id(r) not in straight_ids]
    scopes = [r.scope for r in modules if r.scope is not None and not is_container(r.scope)]
    classes = Counter(scope.callee for scope in scopes)
    first = program.spec(program.graph.inputs[0].name).shape if program.graph.inputs else ()
    if len(first) == 4 and first[1] <= 4 and bool(modules):
        return "its input is an image"
    name, times = max(classes.items(), key=lambda item: item[1], default=("", 0))
    if times > 2:
        return f"it calls {name} {times} times"
    if layer_classes := structure.layer_classes:
        return f"it has layers of the class {', '.join(sorted(layer_classes))}"
    if structure.stacks_of_containers:
        return f"it has layers in the list {structure.stacks_of_containers[0]}"
    for region in (root, *modules):
        for block in find_blocks(flow, region, straight_ids):
            if block.count > 2:
                return f"it runs the same operations {block.count} times in a row"
    return None


def _has_feature_map_form(program: Program) -> bool:
    """Return whether the first input and output have the form of feature maps.

    They are floating-point, with equally many dimensions, three or more, and one batch size.
    """
    inputs = [program.spec(i.name) for i in program.graph.inputs]
    outputs = [program.spec(n) for n in program.graph.output_names()]
    ends = inputs[:1] + outputs[:1]
    forms = {(len(spec.shape), *spec.shape[:1]) for spec in ends}
    return (
        len(ends) == 2
        and len(forms) == 1
        and min(forms)[0] >= 3
        and all(spec.floating for spec in ends)
    )
