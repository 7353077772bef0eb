"""Writes the definitions that several workloads share; the sizes that vary are `var` axes.

Workloads of a family share a definition if the function's code holds no sizes and random inputs are
as good as the model's. Workloads that are one place of a model in several variants of it share one
as well: its code takes the sizes that differ from the axes.

An axis is called after the constant that was varied: `batch`, `seq`, `hidden`, or its own name.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any, cast

from runner.report.definitions import (
    ENTRYPOINT,
    Definition,
    DefinitionSubject,
    build_document,
    component_code,
    component_statements,
    import_lines,
    operation_word,
    stable_uuid,
    tensor_code,
)
from runner.report.families import Sizes, varied_sizes
from runner.report.kernel_function import KernelFunction


def define_workloads(subjects: Sequence[DefinitionSubject]) -> list[Definition]:
    """Return the definitions of workloads: shared ones where possible, else one for each."""
    uses = [subject.workload.uses[0] for subject in subjects]
    sizes = varied_sizes({use.problem: use.variant for use in uses})
    families: dict[tuple[Any, ...], list[DefinitionSubject]] = defaultdict(list)
    for subject in subjects:
        if subject.function is not None and subject.general:
            kind: object = _number_arguments(subject.function)
        else:
            kind = _place_in_original(subject)
        families[(subject.workload.family, kind, subject.ranks)].append(subject)
    definitions: list[Definition] = []
    for members in families.values():
        member_sizes = [sizes[member.workload.uses[0].problem] for member in members]
        definition = None
        if members[0].general:
            definition = _define_family(members, member_sizes)
        elif len(members) > 1:
            definition = _define_variants(members, member_sizes)
        definitions += [definition] if definition else map(_define_one, members)
    return definitions


def _place_in_original(subject: DefinitionSubject) -> tuple[object, ...]:
    """Return what the same workload has in common in all variants of a problem."""
    use = subject.workload.uses[0]
    original = use.variant.source if use.variant is not None else use.problem
    dtypes = tuple(tensor.dtype for tensor in (*subject.inputs, *subject.outputs))
    return original, use.places[0], subject.workload.mode, dtypes


def _name_axis(
    values: tuple[int, ...], default: str, sizes: Sequence[Sizes], used_names: set[str]
) -> str:
    """Return the word of the constant that has these values in the members, else the default."""
    words = set(sizes[0]).intersection(*sizes[1:]) if len(set(values)) > 1 else set()
    for word in sorted(words):
        if tuple(size[word] for size in sizes) == values and word not in used_names:
            return word
    return default


def _collect_axes(
    members: Sequence[DefinitionSubject], sizes: Sequence[Sizes]
) -> tuple[dict[tuple[int, ...], str], dict[str, list[str]], bool]:
    """Return the axes by their values, each tensor's axes, and whether inputs fix all of them."""
    first = members[0]
    slots: dict[tuple[int, ...], str] = {}
    shapes: dict[str, list[str]] = {}
    fixed_by_inputs = True
    tensor_names = {tensor.name for tensor in (*first.inputs, *first.outputs)}
    for position, tensor in enumerate((*first.inputs, *first.outputs)):
        shapes[tensor.name] = []
        for dimension in range(len(tensor.shape)):
            values = tuple((*m.inputs, *m.outputs)[position].shape[dimension] for m in members)
            if values not in slots:
                if len(set(values)) > 1 and position >= len(first.inputs):
                    fixed_by_inputs = False
                default = f"{tensor.name}_d{dimension}"
                slots[values] = _name_axis(
                    values, default, sizes, tensor_names | set(slots.values())
                )
            shapes[tensor.name].append(slots[values])
    return slots, shapes, fixed_by_inputs


def _describe_axes(slots: Mapping[tuple[int, ...], str]) -> dict[str, dict[str, Any]]:
    return {
        name: {"type": "var"} if len(set(values)) > 1 else {"type": "const", "value": values[0]}
        for values, name in slots.items()
    }


def _workload_records(
    members: Sequence[DefinitionSubject], slots: Mapping[tuple[int, ...], str], kind: str
) -> list[dict[str, Any]]:
    varied = {name: values for values, name in slots.items() if len(set(values)) > 1}
    return [
        {
            "uuid": stable_uuid(member),
            "axes": {name: values[i] for name, values in varied.items()},
            "inputs": {tensor.name: {"type": kind} for tensor in members[0].inputs},
        }
        for i, member in enumerate(members)
    ]


def _define_one(subject: DefinitionSubject) -> Definition:
    """Return the definition of one workload: constant axes, inputs as the component draws them."""
    slots, shapes, _ = _collect_axes([subject], [{}])
    name, axes = subject.workload.name, _describe_axes(slots)
    document = build_document(name, subject, axes, shapes, component_code(subject))
    document["custom_inputs_entrypoint"] = ENTRYPOINT
    workloads = _workload_records([subject], slots, "custom")
    return Definition(name, document, workloads, (subject,), custom=True)


def _define_family(members: list[DefinitionSubject], sizes: Sequence[Sizes]) -> Definition | None:
    """Return one definition with varying sizes as axes; None if only outputs have such a size."""
    first = members[0]
    assert first.function is not None
    slots, shapes, fixed_by_inputs = _collect_axes(members, sizes)
    if not fixed_by_inputs:
        return None
    name = first.workload.name
    if len(members) > 1:
        shared = f"{first.workload.family} {first.ranks} {_number_arguments(first.function)}"
        name = f"{operation_word(first)}_{hashlib.sha256(shared.encode()).hexdigest()[:12]}"
    document = build_document(name, first, _describe_axes(slots), shapes, first.function.text)
    workloads = _workload_records(members, slots, "random")
    return Definition(name, document, workloads, tuple(members), custom=False)


def _define_variants(members: list[DefinitionSubject], sizes: Sequence[Sizes]) -> Definition | None:
    """Return one definition of a place in several variants of a model, or None if there is none.

    The members' code has to be the same except for sizes, and each of these a multiple of an axis.
    """
    first = members[0]
    if any([t.name for t in m.inputs] != [t.name for t in first.inputs] for m in members):
        return None
    slots, shapes, fixed_by_inputs = _collect_axes(members, sizes)
    code = _share_code([member.source for member in members], slots)
    if code is None or not fixed_by_inputs or _assigned_names(code) & set(slots.values()):
        return None
    axes = _describe_axes(slots)
    reference = _variant_code(first, code, shapes, axes)
    shared = f"{_place_in_original(first)} {first.ranks} {reference}"
    name = f"{operation_word(first)}_{hashlib.sha256(shared.encode()).hexdigest()[:12]}"
    document = build_document(name, first, axes, shapes, reference)
    document["custom_inputs_entrypoint"] = ENTRYPOINT
    workloads = _workload_records(members, slots, "custom")
    return Definition(name, document, workloads, tuple(members), custom=True)


def _share_code(
    sources: Sequence[str], slots: Mapping[tuple[int, ...], str]
) -> list[ast.stmt] | None:
    """Return the imports, classes and `get_inputs` of all sources, with axes for their sizes."""
    bodies = [component_statements(source) for source in sources]
    merged = [_merge(nodes, slots) for nodes in zip(*bodies, strict=False)]
    same_length = len({len(body) for body in bodies}) == 1
    if not same_length or any(node is None for node in merged):
        return None
    return [node for node in merged if isinstance(node, ast.stmt)]


def _assigned_names(code: Sequence[ast.stmt]) -> set[str]:
    nodes = [node for statement in code for node in ast.walk(statement)]
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _merge(nodes: Sequence[Any], slots: Mapping[tuple[int, ...], str]) -> Any:
    """Return the nodes' common syntax tree, with axes where integers differ; None if none is."""
    first = nodes[0]
    if any(type(node) is not type(first) for node in nodes):
        return None
    if isinstance(first, ast.Constant):
        return _merge_constants([node.value for node in nodes], slots)
    merged = copy.copy(first)
    for name in first._fields:
        values = [getattr(node, name, None) for node in nodes]
        if isinstance(values[0], ast.AST):
            merged_value = _merge(values, slots)
            if merged_value is None:
                return None
        elif isinstance(values[0], list):
            if any(not isinstance(v, list) or len(v) != len(values[0]) for v in values):
                return None
            merged_value = [
                _merge(items, slots) if isinstance(items[0], ast.AST) else items[0]
                for items in zip(*values, strict=True)
            ]
            if any(
                item is None and before is not None
                for item, before in zip(merged_value, values[0], strict=True)
            ):
                return None
        elif any(value != values[0] for value in values):
            return None
        else:
            merged_value = values[0]
        setattr(merged, name, merged_value)
    return merged


def _merge_constants(
    values: Sequence[object], slots: Mapping[tuple[int, ...], str]
) -> ast.expr | None:
    if all(value == values[0] for value in values):
        return ast.Constant(cast("Any", values[0]))
    numbers = [value for value in values if type(value) is int]
    if len(numbers) != len(values):
        return None
    for sizes, name in slots.items():
        if len(set(sizes)) > 1 and 0 not in sizes:
            factor = numbers[0] // sizes[0]
            if all(size * factor == number for size, number in zip(sizes, numbers, strict=True)):
                axis = ast.Name(name, ast.Load())
                return axis if factor == 1 else ast.BinOp(axis, ast.Mult(), ast.Constant(factor))
    return None


def _variant_code(
    first: DefinitionSubject,
    code: Sequence[ast.stmt],
    shapes: Mapping[str, Sequence[str]],
    axes: Mapping[str, Mapping[str, Any]],
) -> str:
    """Return code with `run` and `make_inputs`, in which the axes are arguments of the model."""
    varied = [name for name, axis in axes.items() if axis["type"] == "var"]
    sources = {}
    for tensor in reversed(first.inputs):
        for dimension, axis in enumerate(shapes[tensor.name]):
            sources[axis] = f"{tensor.name}.shape[{dimension}]"
    classes = [node for node in code if isinstance(node, ast.ClassDef)]
    (get_inputs,) = (node for node in code if isinstance(node, ast.FunctionDef))
    arguments = ", ".join(varied)
    mapping, inputs_tuple, assignments = tensor_code(first)
    train = first.workload.mode == "train"
    values = ", ".join(sources[axis] for axis in varied)
    build = "\n\n".join(indent(ast.unparse(node), "    ") for node in classes)
    drawing = "\n".join(indent(ast.unparse(node), "    ") for node in get_inputs.body)
    chosen = ", ".join(f"axes_and_scalars[{axis!r}]" for axis in varied)
    return "\n\n\n".join(
        [
            import_lines(code),
            f"def _build({arguments}):\n{build}\n\n    return Model()",
            f"def _draw({arguments}):\n{drawing}",
            f"@functools.cache\ndef _model(device, {arguments}):\n"
            f"    return _build({arguments}).train({train}).to(device)",
            f"@torch.no_grad()\ndef run({', '.join(t.name for t in first.inputs)}):\n"
            f"    model = _model(str({first.inputs[0].name}.device), {values})\n"
            f"    inputs = {inputs_tuple}\n"
            f"    return torch.func.functional_call(model, {{{mapping}}}, inputs)",
            f"def {ENTRYPOINT}(axes_and_scalars, device):\n    sizes = ({chosen},)\n"
            "    with torch.device(device):  # made there: moving a view would pack it together\n"
            "        state, drawn, made = _build(*sizes).state_dict(), _draw(*sizes), {}\n"
            f"{assignments}\n    return made\n",
        ]
    )


def _number_arguments(function: KernelFunction) -> str:
    """Return the function's text with numbered arguments: their names are the authors' choice."""
    numbers = {argument.name: f"a{i}" for i, argument in enumerate(function.arguments)}
    code = ast.parse(function.text)
    for node in ast.walk(code):
        if isinstance(node, ast.arg):
            node.arg = numbers[node.arg]
        elif isinstance(node, ast.Name):
            node.id = numbers.get(node.id, node.id)
    return ast.unparse(code)
