"""Makes mutants of a kernel: copies that are wrong in one respect."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from runner.untrusted_files import read_file
from runner.verify.gates.compare import enlarge
from runner.verify.gates.operation_identity import TensorMeta, meta_of
from runner.verify.gates.power_report import MutantKind
from runner.verify.gates.self_test import make_model
from runner.verify.gates.weights import transfer_weights, weights_of
from runner.verify.loading_files import AnyFiles
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.replay import RecordedCall, ReplayCall, WrongKernel
from runner.verify.runtime.runner import ForwardRunner

Fate: TypeAlias = Literal["shapes", "error"]
"""Outcome of a mutant that fails before it computes a value."""

_MAX_ATTRIBUTES = 3
"""Number of attributes to change among those that leave the output's shape alone."""

_OTHER_WORDS = {
    "none": "tanh",
    "tanh": "none",
    "mean": "sum",
    "sum": "mean",
    "zeros": "replicate",
    "constant": "replicate",
    "reflect": "replicate",
    "replicate": "reflect",
    "circular": "reflect",
    "bilinear": "nearest",
    "nearest": "bilinear",
}
"""Words that say how an operation computes, each with another word that it accepts."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change that makes every use of a kernel file wrong."""

    kind: MutantKind
    change: str
    make_wrong_kernel: Callable[[nn.Module], WrongKernel]
    """Makes the wrong kernel that takes the weights of one instance."""
    fate: Fate | None = None
    """The outcome if it is known before anything is computed; None if only values can tell."""


def mutants_of(
    path: Path, call: RecordedCall, instance: nn.Module, runner: ForwardRunner, files: AnyFiles
) -> Iterator[Mutant]:
    """Yield all mutants of a kernel file that is called in this way."""
    if call.outputs:
        yield Mutant("scaled", _describe_enlargement(call.outputs[0]), lambda _: _enlarge_output)
    inputs = [meta_of(tensor) for tensor in tensors(list(call.arguments))]
    if len(call.outputs) == 1 and call.outputs[0] in inputs:
        position = inputs.index(call.outputs[0])
        change = f"input {position} in place of the output"
        yield Mutant("skipped", change, lambda _: _skip_operation(position))
    if pair := _find_swappable_inputs(inputs):
        change = f"inputs {pair[0]} and {pair[1]} in each other's place"
        yield Mutant("swapped", change, lambda _: _swap_inputs(*pair))
    yield from _attribute_mutants(path, call, instance, runner, files)


def _describe_enlargement(output: TensorMeta) -> str:
    if output[1] == "bool":
        return "output inverted"
    return "output × 1.01" if output[1].startswith(("float", "bfloat", "complex")) else "output + 1"


def _find_swappable_inputs(inputs: list[TensorMeta]) -> tuple[int, int] | None:
    """Return the first two inputs that can take each other's place."""
    for n, meta in enumerate(inputs):
        if meta in inputs[n + 1 :]:
            return n, inputs.index(meta, n + 1)
    return None


def _enlarge_output(call: ReplayCall) -> Any:
    return _map_tensors(call.compute_right(), enlarge)


def _skip_operation(position: int) -> WrongKernel:
    return lambda call: tensors(list(call.args))[position].clone()


def _swap_inputs(first: int, second: int) -> WrongKernel:
    def call_swapped(call: ReplayCall) -> Any:
        inputs = tensors(list(call.args))
        places = {id(inputs[first]): inputs[second], id(inputs[second]): inputs[first]}
        return call.forward(*_map_tensors(call.args, lambda t: places.get(id(t), t)), **call.kwargs)

    return call_swapped


def _map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_tensors(item, change) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_map_tensors(item, change) for item in value)
    return value


def _attribute_mutants(
    path: Path, call: RecordedCall, instance: nn.Module, runner: ForwardRunner, files: AnyFiles
) -> Iterator[Mutant]:
    """Yield mutants that give the same shapes; if there are none, one that cannot run."""
    failing_mutants: list[Mutant] = []
    count = 0
    source = read_file(path)

    def build(text: str) -> nn.Module:
        module = files.load_text(path, text)
        model: nn.Module = make_model(module.Model, module.get_init_inputs)
        return model

    runs_without_values = _predict_fate(lambda: build(source.decode()), call, instance) is None
    for change, text in edits(source):
        build_changed = partial(build, text)
        fate = _predict_fate(build_changed, call, instance) if runs_without_values else None
        mutant = Mutant("attribute", change, _rebuild(build_changed, runner, change), fate)
        if fate is None:
            yield mutant
            count += 1
            if count == _MAX_ATTRIBUTES:
                return
        else:
            failing_mutants.append(mutant)
    if not count and failing_mutants:
        yield min(failing_mutants, key=lambda mutant: mutant.fate != "shapes")


def _rebuild(
    build: Callable[[], nn.Module], runner: ForwardRunner, change: str
) -> Callable[[nn.Module], WrongKernel]:
    def load_mutant(instance: nn.Module) -> WrongKernel:
        model = runner.build_bare(f"the kernel in which {change}", build, 0)
        transfer_weights(weights_of(instance), model, {name: name for name in weights_of(model)})
        return lambda call: model(*call.args, **call.kwargs)

    return load_mutant


def _predict_fate(
    build: Callable[[], nn.Module], call: RecordedCall, instance: nn.Module
) -> Fate | None:
    """Build and run a mutant on tensors without values, which is cheap, and return its outcome."""
    try:
        with torch.device("meta"), torch.no_grad():
            model = build().train(instance.training)
            shapes = {name: t.shape for name, t in weights_of(model).items()}
            if shapes != {name: t.shape for name, t in weights_of(instance).items()}:
                return "error"
            output = model(*call.arguments, **call.keywords)
    except Exception:  # a wrong number may lead to any error
        return "error"
    return None if tuple(map(meta_of, tensors(output))) == call.outputs else "shapes"


def edits(source: bytes) -> Iterator[tuple[str, str]]:
    """Yield (change, text): the source with one number, word or switch of class Model replaced."""
    tree = ast.parse(source)
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"]
    methods = [m for c in classes for m in c.body if isinstance(m, ast.FunctionDef)]
    for statement in (statement for method in methods for statement in method.body):
        for holder, constant in list(_replaceable_constants(statement, statement)):
            old_text, value = _describe_node(holder), constant.value
            constant.value = _replacement_of(value)
            new_text = _describe_node(holder)
            change = f"{old_text} becomes {new_text}"
            if old_text == new_text:  # the change lies in the part that was cut off
                change = f"{value!r} becomes {constant.value!r} in {old_text}"
            text = ast.unparse(tree)
            constant.value = value
            yield change, text


_HOLDERS = (ast.keyword, ast.Call, ast.BinOp, ast.Subscript, ast.Assign, ast.Return)


def _replaceable_constants(
    node: ast.AST, holder: ast.AST
) -> Iterator[tuple[ast.AST, ast.Constant]]:
    """Yield each constant that can be replaced, with the smallest expression that explains it."""
    if isinstance(node, ast.Constant):
        if _replacement_of(node.value) is not None:
            yield holder, node
        return
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
        return  # text for people
    inner_holder = node if isinstance(node, _HOLDERS) else holder
    for child in ast.iter_child_nodes(node):
        yield from _replaceable_constants(child, inner_holder)


def _replacement_of(value: object) -> Any:
    """Return another value of the same kind; None if there is none."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 2 if value else 1.0
    return _OTHER_WORDS.get(value) if isinstance(value, str) else None


def _describe_node(holder: ast.AST) -> str:
    if isinstance(holder, ast.keyword):
        return f"{holder.arg}={ast.unparse(holder.value)}"
    text = " ".join(ast.unparse(holder).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
