"""This file knows about the composition test: the whole model, from kernel files alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from runner.counting import counted
from runner.emit.body import write_class
from runner.emit.component import Component, Emitter, is_large, main
from runner.emit.items import Call, Item
from runner.emit.lines import WIDTH, indented
from runner.emit.names import camel, identifier, unique
from runner.emit.steps import comparison, original_name
from runner.graph.ir import Ref
from runner.tree.interface import Program
from runner.tree.part import Part, schedule

_HEAD = '''"""{title}, put together from its kernel files alone, computes what the original does.

{instances} from {files}.
"""

import importlib.util
import sys
from pathlib import Path

import torch
from torch import nn
from torch.testing import assert_close

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parent / "level_0_kernel"


def load(path):
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def kernel(name):
    """The Model of a kernel file."""
    return load(KERNELS / f"{{name}}.py").Model


'''

_TESTS = '''
def run_tests():
    """Composed and original agree for %(seeds)s; a wrong kernel is noticed."""
    torch.backends.mha.set_fastpath_enabled(False)
    problem = load(HERE.parent / "original.py")
    compare(problem, seed=%(first)s)
    if not compare(problem, seed=%(second)s, control=True):
        print("vacuous: a last kernel that is a hundredth off goes unnoticed")


def compare(problem, seed, control=False):
    """Same weights, same inputs. `control`: whether a wrong last kernel is noticed."""
    torch.manual_seed(seed)
    original = build(problem).%(mode)s()
    composed = ComposedModel().%(mode)s()
    theirs, mine = weights_of(original), weights_of(composed)
    for name, source in WEIGHTS.items():
        given = theirs[source].data
        is_buffer = not isinstance(mine[name], nn.Parameter)
        mine[name].data = given.clone() if is_buffer else given
    ran = []  # names of kernels, in the order in which they end
    for name, module in composed.named_modules():
        if type(module).__name__ == "Model":
            module.register_forward_hook(lambda *_, name=name: ran.append(name))
    torch.manual_seed(seed)
    args = problem.get_inputs()
    kwargs = getattr(problem, "get_input_kwargs", dict)()
    with torch.no_grad():
        torch.manual_seed(seed)
        expected = %(expected)s
        del original, theirs
        torch.manual_seed(seed)
        actual = tensors(composed(*args, **kwargs))
    assert_equal(actual, expected)
    del actual
    if not (control and ran):
        return False
    last = composed.get_submodule(ran[-1])
    last.register_forward_hook(lambda kernel, inputs, output: wrong(output))
    with torch.no_grad():
        torch.manual_seed(seed)
        actual = tensors(composed(*args, **kwargs))
    try:
        assert_equal(actual, expected)
    except AssertionError:
        return True
    return False


def wrong(output):
    """A hundredth more; integers one more, booleans the other way round."""
    if isinstance(output, tuple):
        return tuple(wrong(part) for part in output)
%(place)s    if output.dtype == torch.bool:
        return torch.logical_not(output%(out)s)
    if output.is_floating_point() or output.is_complex():
        return torch.mul(output, 1.01%(out)s)
    return torch.add(output, 1%(out)s)


def build(problem):
    """The author's model, from the author's arguments."""
    arguments = problem.get_init_inputs() if hasattr(problem, "get_init_inputs") else []
    if isinstance(arguments, dict):
        return problem.Model(**arguments)
    if len(arguments) == 2:
        positional, named = arguments
        if isinstance(positional, (list, tuple)) and isinstance(named, dict):
            return problem.Model(*positional, **named)
    return problem.Model(*arguments)

'''

_IN_PLACE = {
    "place": "    place = output if output.is_contiguous() else None  # no room for another\n",
    "out": ", out=place",
}
"""Where nothing else shares the output: what it is compared with is in a file."""


def write_composition(
    emitter: Emitter, root: Part, components: Mapping[str, Component], title: str
) -> str:
    """The text of `verification/composition_test.py`."""
    program = emitter.program
    kernels = list(root.kernels())
    names = {emitter.workload(k).name for k in kernels}
    classes = {name: camel(name) for name in sorted(names)}
    taken: set[str] = set()
    calls: dict[int, Call] = {}
    for k in kernels:
        name = emitter.workload(k).name
        attribute = unique(
            identifier(k.module_path if k.name != k.stem else f"{k.module_path}_{k.stem}"), taken
        )
        taken.add(attribute)
        calls[id(k)] = Call(k, attribute, classes[name], components[name].written.weights)
    inside = {i for k in kernels for i in k.operations}
    units = schedule(program, kernels, set(root.operations) - inside)
    items: list[Item] = [calls[id(u)] if isinstance(u, Part) else u for u in units]
    plain = program.graph.plain_call
    inputs = emitter.namer.parameters(root)
    written = write_class(
        program,
        emitter.namer,
        "ComposedModel",
        root,
        items,
        docstring="The original, from kernels alone.",
        returns=lambda value: f"return {structured(program.graph.output, value)}",
        signature=None if plain else "self, *args, **kwargs",
        prologue=[] if plain or not inputs else [f"{_unpacked(inputs)} = tensors((args, kwargs))"],
    )
    weights: dict[str, str] = {w.local: original_name(emitter, root, w) for w in written.weights}
    compare, expected = comparison(emitter, root, "original(*args, **kwargs)")
    in_place = _IN_PLACE if is_large(emitter, root) else {"place": "", "out": ""}
    made = "\n".join(indented((f'{classes[name]} = kernel("{name}")' for name in sorted(names)), 0))
    return (
        _HEAD.format(
            title=title,
            instances=counted(len(kernels), "kernel instance"),
            files=counted(len(names), "file"),
        )
        + f"{made}\n\n\n{written.text}\n\n\n"
        + "# Parameter or buffer of ComposedModel -> that of the original.\n"
        + _mapping(weights)
        + compare
        + "\n"
        + _TESTS % {"mode": program.graph.mode, "expected": expected, **in_place, **_seeds(program)}
        + main(emitter, root)
    )


def _unpacked(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) > 1 else f"({names[0]},)"


def _mapping(weights: Mapping[str, str]) -> str:
    if not weights:
        return "WEIGHTS = {}\n\n"
    rows = indented((f"{json.dumps(k)}: {json.dumps(v)}," for k, v in weights.items()), 4)
    wide = "  # noqa: E501"
    rows = [row + wide if len(row) > WIDTH else row for row in rows]
    return "\n".join(["WEIGHTS = {", *rows, "}"]) + "\n\n"


def _seeds(program: Program) -> dict[str, str]:
    """A program that values steered is the original for the values that it was captured with."""
    if program.graph.specialisations:
        return {"seeds": "the traced seed", "first": "0", "second": "0"}
    return {"seeds": "two seeds", "first": "1", "second": "2"}


def structured(output: object, value: Callable[[str], str]) -> str:
    """The returned structure as Python: tuples, lists and dicts as the author returns them."""
    if isinstance(output, Ref):
        return value(output.name)
    if isinstance(output, dict):
        return "{" + ", ".join(f"{k!r}: {structured(v, value)}" for k, v in output.items()) + "}"
    if isinstance(output, list):
        return "[" + ", ".join(structured(v, value) for v in output) + "]"
    if isinstance(output, tuple):
        inner = ", ".join(structured(v, value) for v in output)
        return f"({inner},)" if len(output) == 1 else f"({inner})"
    return repr(output)
