"""Finds the author's names for numbers: `dim` where `__init__` writes `nn.Linear(dim, 10)`."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections.abc import Container, Mapping

from runner.emit.code.module_attributes import common_path
from runner.emit.code.number_arguments import LOCAL
from runner.emit.naming.value_names import make_unique
from runner.graph.terms import snake_case
from runner.tree.interface import Program
from runner.tree.part import Part

_BY_POSITION = {
    "Linear": ("in_features", "out_features", "bias"),
    "Conv": ("in_channels", "out_channels", "kernel_size", "stride", "padding"),
    "BatchNorm": ("num_features",),
    "InstanceNorm": ("num_features",),
    **dict.fromkeys(("LayerNorm", "norm_layer"), ("normalized_shape",)),
    "GroupNorm": ("num_groups", "num_channels"),
    "Embedding": ("num_embeddings", "embedding_dim"),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), ("input_size", "hidden_size", "num_layers")),
}
"""Arguments of torch's modules, in their order; `Conv` stands for `Conv1d` and its like."""
_DIMENSIONS = re.compile(r"(Transpose)?[123]d$")


def author_number_names(program: Program, part: Part) -> Mapping[tuple[str, str], str]:
    """Return the names under which the author's `__init__` passes numbers to torch's modules.

    (attribute, keyword) -> a variable's name, after LOCAL if `__init__` computes it, or '' for
    another expression: `("fc1", "in_features")` -> `dim`. In an `nn.Sequential` the attributes are
    those of the emitted class: `conv2d`, `conv2d_2`.
    """
    graph = program.graph
    path = common_path([graph.states[name].path for name in part.io.states], part.module_path)
    parent, _, attribute = re.sub(r"(\.\d+)+$", "", path).rpartition(".")
    origins = [o for i in part.operations if (o := graph.operations[i].origin)]
    files = dict.fromkeys(f for o in origins for f in (o.file, *(file for file, _, _ in o.callers)))
    for file in files:
        if class_numbers := _numbers_in_file(file).get((graph.classes.get(path, ""), "")):
            return class_numbers
        if sequential_numbers := _numbers_in_file(file).get(
            (graph.classes.get(parent, ""), attribute)
        ):
            return sequential_numbers
    return {}


_Numbers = dict[tuple[str, str], str]
"""(attribute, keyword) -> the author's name, as `author_number_names` returns them."""


@functools.cache
def _numbers_in_file(file: str) -> dict[tuple[str, str], _Numbers]:
    """Return the names in a file by (class, ''), and by (class, attribute) for `nn.Sequential`s."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    numbers: dict[tuple[str, str], _Numbers] = {}
    for cls in (item for item in ast.walk(tree) if isinstance(item, ast.ClassDef)):
        for function in cls.body:
            if not isinstance(function, ast.FunctionDef) or function.name != "__init__":
                continue
            for statement in ast.walk(function):
                if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
                    continue
                target, value = statement.targets[0], statement.value
                if isinstance(target, ast.Attribute) and isinstance(value, ast.Call):
                    parameters = {
                        item.arg for item in (*function.args.args, *function.args.kwonlyargs)
                    }
                    if _callee_name(value) == "Sequential":
                        numbers[cls.name, target.attr] = _numbers_in_sequence(value, parameters)
                    call_numbers = _numbers_in_call(target.attr, value, parameters)
                    numbers.setdefault((cls.name, ""), {}).update(call_numbers)
    return numbers


def _numbers_in_sequence(sequence: ast.Call, parameters: Container[str]) -> _Numbers:
    """Return the names in a call such as `nn.Sequential(nn.Linear(width, hidden), nn.ReLU())`."""
    numbers: _Numbers = {}
    attributes: set[str] = set()
    for call in sequence.args:
        if not isinstance(call, ast.Call):
            return {}
        attribute = make_unique(snake_case(_callee_name(call)), attributes)
        attributes.add(attribute)
        numbers |= _numbers_in_call(attribute, call, parameters)
    return numbers


def _callee_name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _numbers_in_call(attribute: str, call: ast.Call, parameters: Container[str]) -> _Numbers:
    """Return the names in a call such as `nn.Linear(dim, hidden)`.

    `parameters`: those of the function in which it stands.
    """
    names = _BY_POSITION.get(_DIMENSIONS.sub("", _callee_name(call)), ())
    arguments = dict(zip(names, call.args, strict=False))
    arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return {
        (attribute, name): _variable_name(value, parameters)
        for name, value in arguments.items()
        if not isinstance(value, ast.Constant)
    }


def _variable_name(value: ast.expr, parameters: Container[str]) -> str:
    """Return a variable's name, after LOCAL if it is no parameter; '' for another expression."""
    if isinstance(value, ast.Name):
        return value.id if value.id in parameters else f"{LOCAL}{value.id}"
    return value.attr if isinstance(value, ast.Attribute) else ""
