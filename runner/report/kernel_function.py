"""Rewrites a kernel's class as one function of its tensors, weights included.

`self.fc(x)` with `self.fc = nn.Linear(...)` becomes `F.linear(x, weight, bias)`. A kernel with
other state than its weights (a recurrent layer, a computed table) cannot be rewritten.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

_CONV = (("stride", "1"), ("padding", "0"), ("dilation", "1"), ("groups", "1"))
_TRANSPOSED = (
    ("stride", "1"), ("padding", "0"), ("output_padding", "0"), ("groups", "1"), ("dilation", "1"),
)  # fmt: skip

FUNCTIONS: dict[str, tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "Linear": ("F.linear", ("weight", "bias"), ()),
    **{f"Conv{d}d": (f"F.conv{d}d", ("weight", "bias"), _CONV) for d in (1, 2, 3)},
    **{
        f"ConvTranspose{d}d": (f"F.conv_transpose{d}d", ("weight", "bias"), _TRANSPOSED)
        for d in (1, 2, 3)
    },
    **{
        f"BatchNorm{d}d": (
            "F.batch_norm",
            ("running_mean", "running_var", "weight", "bias"),
            (("eps", "1e-05"),),
        )
        for d in (1, 2, 3)
    },
    "Embedding": ("F.embedding", ("weight",), (("padding_idx", "None"),)),
}
"""Function, weights in its order, and attributes with their defaults, by module class.

Batch norms are those of eval() mode: their statistics are inputs.
"""


SHAPES = {"view", "reshape", "expand", "repeat", "zeros", "ones", "randn", "empty", "full", "rand",
          "arange", "split", "eye"}  # fmt: skip
"""Functions and methods whose integer arguments are sizes."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor argument of `run`."""

    name: str
    weight: str | None
    """Name of the weight in the component; None for an input of the component's forward."""


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A kernel as a function: imports and `def run(x, weight, bias): ...`."""

    arguments: tuple[Argument, ...]
    text: str


def rewrite_as_function(source: str, weights: list[str], mode: str) -> KernelFunction | None:
    """Return a kernel file's code as one function, or None if it cannot be rewritten."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    if len(classes) != 1:
        return None
    methods = {f.name: f for f in classes[0].body if isinstance(f, ast.FunctionDef)}
    forward = methods.get("forward")
    if forward is None:
        return None
    modules = _read_modules(methods.get("__init__"))
    if modules is None or (
        mode == "train" and any("Batch" in kind for kind, _ in modules.values())
    ):
        return None
    rewriter = _Rewriter(modules, weights, {a.arg for a in forward.args.args[1:]})
    body = [rewriter.visit(statement) for statement in forward.body]
    if rewriter.failed or set(rewriter.argument_names) != set(weights):
        return None
    inputs = [Argument(a.arg, None) for a in forward.args.args[1:]]
    arguments = (*inputs, *(Argument(rewriter.argument_names[w], w) for w in weights))
    head = f"def run({', '.join(a.name for a in arguments)}):"
    lines = [f"    {line}" for rewritten in body for line in ast.unparse(rewritten).splitlines()]
    return KernelFunction(arguments, f"{_imports(lines)}\n\n{head}\n" + "\n".join(lines) + "\n")


def has_sizes(text: str) -> bool:
    """Return whether the code holds a number that is a size, and so works for one size only."""
    sizes: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Slice):
            sizes += [node.lower, node.upper]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in SHAPES:
            sizes += node.args
    return any(
        isinstance(number, ast.Constant) and type(number.value) is int and number.value > 1
        for expression in sizes
        if isinstance(expression, ast.Constant | ast.Tuple | ast.List)
        for number in ast.walk(expression)
    )


def _imports(lines: list[str]) -> str:
    text = "\n".join(lines)
    needed = ["import math"] if "math." in text else []
    needed.append("import torch")
    if "F." in text:
        needed.append("import torch.nn.functional as F")
    return "\n".join(needed) + "\n"


def _read_modules(init: ast.FunctionDef | None) -> dict[str, tuple[str, dict[str, str]]] | None:
    """Return the module class and arguments of each attribute, by name.

    None if `__init__` does anything but create modules and parameters. The initial values of
    parameters do not matter: the function gets its weights as arguments.
    """
    modules: dict[str, tuple[str, dict[str, str]]] = {}
    for statement in init.body[1:] if init else []:
        if isinstance(statement, ast.Expr) and "register_buffer" not in ast.unparse(statement):
            continue  # an initial value of a parameter
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return None
        kind = ast.unparse(statement.value.func)
        target = ast.unparse(statement.targets[0])
        if not target.startswith("self.") or kind == "nn.Parameter":
            continue
        if kind.removeprefix("nn.") not in FUNCTIONS or statement.value.args:
            return None
        words = {str(k.arg): ast.unparse(k.value) for k in statement.value.keywords}
        modules[target.removeprefix("self.")] = (kind.removeprefix("nn."), words)
    return modules


class _Rewriter(ast.NodeTransformer):
    """Replaces calls of modules and reads of weights by functions and arguments."""

    def __init__(
        self,
        modules: dict[str, tuple[str, dict[str, str]]],
        weights: list[str],
        input_names: set[str],
    ) -> None:
        self.modules = modules
        self.weights = set(weights)
        self.input_names = input_names
        self.argument_names: dict[str, str] = {}
        """Name of the argument that replaces each weight."""
        self.failed = False

    def _argument(self, weight: str) -> str:
        if weight not in self.argument_names:
            short = weight.rpartition(".")[2]
            used_names = {*self.input_names, *self.argument_names.values()}
            name = short if short not in used_names else weight.replace(".", "_")
            self.argument_names[weight] = name if name not in used_names else f"{name}_of_kernel"
        return self.argument_names[weight]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = ast.unparse(node.func)
        attribute = called.removeprefix("self.")
        if called.startswith("self.") and attribute in self.modules and len(node.args) == 1:
            return self._call(attribute, self.visit(node.args[0]))
        self.generic_visit(node)
        return node

    def _call(self, attribute: str, argument: ast.expr) -> ast.AST:
        kind, words = self.modules[attribute]
        function, names, attributes = FUNCTIONS[kind]
        arguments = [ast.unparse(argument)]
        for name in names:
            weight = f"{attribute}.{name}"
            arguments.append(self._argument(weight) if weight in self.weights else "None")
        while arguments[-1] == "None":
            arguments.pop()
        arguments += [
            f"{name}={words[name]}"
            for name, default in attributes
            if words.get(name, default) != default
        ]
        return ast.parse(f"{function}({', '.join(arguments)})", mode="eval").body

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        text = ast.unparse(node)
        if text.startswith("self."):
            weight = text.removeprefix("self.")
            if weight in self.weights:
                return ast.Name(id=self._argument(weight), ctx=ast.Load())
            self.failed = True
        self.generic_visit(node)
        return node
