"""Whether a problem of no given level is a whole model, or one building block, a layer."""

from collections import Counter

from runner.tree.fusions import KernelFlow
from runner.tree.inline_blocks import blocks
from runner.tree.interface import Program
from runner.tree.layer_structure import Structure
from runner.tree.module_regions import Region, is_container


def why_a_model(
    flow: KernelFlow, root: Region, straight: set[int], structure: Structure
) -> str | None:
    """Return why the problem is a model; None where it is one building block, a layer.

    A block's first input and output are feature maps of one rank, three or more, and one batch
    size; it repeats no block; and no image, which is four-dimensional with at most four
    channels, comes into modules of its own. `straight`: the ids of regions that are one line.
    """
    program = flow.program
    if not _same_form(program):
        return "what goes out is no feature map like what comes in"
    modules = [r for r in root.walk() if id(r) not in straight]
    scopes = [r.scope for r in modules if r.scope is not None and not is_container(r.scope)]
    classes = Counter(scope.callee for scope in scopes)
    first = program.spec(program.graph.inputs[0].name).shape if program.graph.inputs else ()
    if len(first) == 4 and first[1] <= 4 and bool(modules):
        return "its input is an image"
    name, times = max(classes.items(), key=lambda item: item[1], default=("", 0))
    if times > 2:
        return f"it calls {name} {times} times"
    if found := structure.classes:
        return f"it has layers of the class {', '.join(sorted(found))}"
    for region in (root, *modules):
        for block in blocks(flow, region, straight):
            if block.count > 2:
                return f"it runs the same operations {block.count} times in a row"
    return None


def _same_form(program: Program) -> bool:
    """Input and output are floating, of one rank, three or more, and of one batch size."""
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
