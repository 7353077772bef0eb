"""This file knows about telling whether two kernel files are one workload, whoever wrote them.

Names, docstrings and the values that weights start from make no difference. What runs does, and on
which shapes, dtypes and strides. A family is what is left when sizes are taken away too: the same
operation with the same attributes, on other shapes.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass

from runner.tree.document import Node

SIZES = {
    "in_features", "out_features", "in_channels", "out_channels", "num_features", "num_channels",
    "num_embeddings", "embedding_dim", "normalized_shape", "input_size", "hidden_size",
}  # fmt: skip
"""Arguments of modules that say how large, not what."""

SHAPES = {"view", "reshape", "expand", "repeat", "zeros", "ones", "randn", "empty", "full", "rand",
          "arange", "split", "eye"}  # fmt: skip
"""Calls whose numbers are sizes."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One kernel file's workload and family, as digests; equal exactly when they are the same."""

    workload: str
    family: str


def identify(source: str, node: Node) -> Identity:
    """The identity of the kernel file `source`, which `node` is an instance of.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it has no class Model.
    """
    code = _code(source)
    weights = tuple(tuple(shape) for shape in node.weight_shapes.values())
    strides = tuple(
        "contiguous" if list(stride) == contiguous(shape) else tuple(stride)
        for stride, shape in zip(node.input_strides, node.input_shapes, strict=True)
    )
    exact = (
        node.operations,
        ast.unparse(code),
        tuple(map(tuple, node.input_shapes)),
        node.input_dtypes,
        strides,
        tuple(map(tuple, node.output_shapes)),
        node.output_dtypes,
        weights,
    )
    family = (
        node.operations,
        ast.unparse(without_sizes(code)),
        tuple(map(len, node.input_shapes)),
        node.input_dtypes,
        node.output_dtypes,
        tuple(map(len, weights)),
    )
    return Identity(_digest(exact), _digest(family))


def without_sizes(code: ast.Module) -> ast.Module:
    """The code with `size` for each number that says how large; the code is changed."""
    _WithoutSizes(_channels(code)).visit(code)
    return ast.fix_missing_locations(code)


def signature(node: Node) -> tuple[object, ...]:
    """What a kernel computes on, without its code: for comparing what different authors wrote."""
    return (
        tuple(node.operations),
        tuple(sorted(map(tuple, node.input_shapes))),
        tuple(sorted(node.input_dtypes)),
        tuple(map(tuple, node.output_shapes)),
        tuple(sorted(tuple(shape) for shape in node.weight_shapes.values())),
    )


def contiguous(shape: list[int]) -> list[int]:
    """Strides of a tensor that lies in memory in the order of its dimensions."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(extent, 1))
    return strides[::-1] if shape else []


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def _code(source: str) -> ast.Module:
    """The classes alone, with every name of the author's replaced by a number."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    if "Model" not in {node.name for node in classes}:
        raise ValueError("no class Model")
    module = ast.Module(body=list[ast.stmt](classes), type_ignores=[])
    _Renamed().visit(module)
    return ast.fix_missing_locations(module)


class _Renamed(ast.NodeTransformer):
    """Author's names become `a0, a1, ...`; how weights start is left out."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def _number(self, name: str) -> str:
        return self.names.setdefault(name, f"a{len(self.names)}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
            if argument.arg != "self":
                argument.arg = self._number(argument.arg)
        if node.name == "__init__":
            node.body = [statement for statement in node.body if not _is_drawing(statement)]
        for statement in ast.walk(node):
            if isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
                self._number(statement.id)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            # `self.register_buffer` and the like are nn.Module's names, not the author's.
            if not node.attr.startswith("register_"):
                node.attr = self._number(node.attr)
            return node
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = ast.unparse(node.func)
        if called == "nn.Parameter":
            dtypes = sorted(ast.unparse(k.value) for k in _keywords(node) if k.arg == "dtype")
            node.args = [ast.Constant(value=",".join(dtypes))]
            node.keywords = []
            return node
        if called == "self.register_buffer" and isinstance(node.args[0], ast.Constant):
            node.args[0] = ast.Constant(value=self._number(str(node.args[0].value)))
        self.generic_visit(node)
        return node


def _keywords(node: ast.AST) -> list[ast.keyword]:
    return [found for found in ast.walk(node) if isinstance(found, ast.keyword)]


def _is_drawing(statement: ast.stmt) -> bool:
    """`empty = torch.empty(576, 192)` or `empty.uniform_(-0.1, 0.1)`: a value to start from."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func) == "torch.empty"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func).endswith("_")
    return False


def _channels(code: ast.Module) -> set[int]:
    """Sizes that modules name: `groups=32` beside `in_channels=32` says depthwise, not 32."""
    return {
        keyword.value.value
        for keyword in _keywords(code)
        if keyword.arg in SIZES
        and isinstance(keyword.value, ast.Constant)
        and isinstance(keyword.value.value, int)
    }


class _WithoutSizes(ast.NodeTransformer):
    """Numbers that say how large become `size`."""

    def __init__(self, channels: set[int]) -> None:
        self.channels = channels

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        if node.arg in SIZES or (
            node.arg == "groups"
            and isinstance(node.value, ast.Constant)
            and node.value.value in self.channels - {1}
        ):
            node.value = ast.Name(id="size", ctx=ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func).rpartition(".")[2] in SHAPES:
            node.args = [_sized(argument) for argument in node.args]
        return node

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        for name in ("lower", "upper"):
            bound = getattr(node, name)
            if bound is not None:
                setattr(node, name, _sized(bound))
        return node


def _sized(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
        return ast.Name(id="size", ctx=ast.Load())
    if isinstance(node, ast.Tuple | ast.List):
        node.elts = [_sized(element) for element in node.elts]
    return node
