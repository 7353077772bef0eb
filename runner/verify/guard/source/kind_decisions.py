"""Finds decisions by what kind of tensor a component gets, or by the mode that it runs in.

A component that computes something else on another device, or in another dtype, could be right for
a judge and wrong for its users.
"""

import ast
from collections.abc import Container, Iterator
from types import ModuleType

import torch

from runner.verify.gates.parent_source import root_name
from runner.verify.guard.source.allowed_names import ImportedNames
from runner.verify.guard.source.name_scopes import Scopes

_KIND_FUNCTIONS = (
    *(torch.finfo, torch.iinfo, torch.result_type, torch.promote_types, torch.can_cast),
)
"""Functions that tell about a dtype."""
_MODE_FUNCTIONS = ("dropout", "alpha_dropout", "feature_", "batch_norm", "instance_norm", "rrelu")
"""Beginnings of names of functions that take whether a model is in training mode."""
_CASTS = {"to", "float", "half", "bfloat16", "double", "long", "int", "bool"}
"""Methods that convert a tensor to another dtype."""


class KindDecisions:
    """Tells where one file decides by a dtype, a device or an identity what it computes."""

    def __init__(self, scopes: Scopes, names: ImportedNames, *, kernel: bool) -> None:
        self._scopes, self._names, self._kernel = scopes, names, kernel

    def fault(self, node: ast.AST, messages: Container[ast.AST]) -> str | None:
        """Return the fault of a comparison, a condition or a choice, or None.

        `messages`: parts of errors and assertions, which may ask.
        """
        tests: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            if any(map(_is_device, operands)):
                return "decides by a device what it computes"
            is_identity = any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
            if is_identity and not (
                any(self._is_same_in_a_copy(n) for n in operands)
                or all(map(self._is_of_model, operands))
            ):
                return "uses is, which a copy answers otherwise,"
            statement = self._scopes.parents[node]
            is_cast = isinstance(statement, ast.If | ast.IfExp) and _only_casts(statement)
            tests = [
                n
                for n in operands
                if not is_cast and (not isinstance(n, ast.Call) or self._tells_kind(n))
            ]
        elif isinstance(node, ast.If | ast.While | ast.IfExp) and node.test not in messages:
            tests = [] if _only_casts(node) else [node.test]
        elif isinstance(node, ast.Subscript):
            tests = [node.slice]
        elif isinstance(node, ast.Match):
            tests = [node.subject]
        if self._kernel and any(map(self.asks_kind, tests)):
            return "decides by a dtype or a device what it computes"
        return None

    def _is_same_in_a_copy(self, operand: ast.expr) -> bool:
        """Return whether an operand is a constant, a name of a module, or `type(x)`."""
        if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Name):
            return operand.func.id == "type"
        return isinstance(operand, ast.Constant) or self._names.try_value(operand) is not None

    def _is_of_model(self, operand: ast.expr) -> bool:
        """Return whether an operand is an attribute of `self`, or what a loop goes through."""
        if isinstance(operand, ast.Attribute | ast.Subscript):
            return root_name(operand) == "self"
        binding = self._scopes.definition(operand)
        loop = self._scopes.parents.get(binding) if binding else None
        while isinstance(loop, ast.Tuple):
            loop = self._scopes.parents.get(loop)
        return isinstance(loop, ast.For | ast.comprehension)

    def asks_kind(self, test: ast.expr) -> bool:
        """Return whether an expression asks a tensor for its dtype or its device.

        Arguments of calls do not count: `table.to(x.device)` is a tensor.
        """
        arguments = {
            id(inner)
            for call in ast.walk(test)
            if isinstance(call, ast.Call)
            for argument in (*call.args, *call.keywords)
            for inner in ast.walk(argument)
        }
        for node in ast.walk(test):
            if id(node) in arguments:
                continue
            binding = self._scopes.definition(node)
            assigned = self._scopes.parents.get(binding) if binding else None
            value = assigned.value if isinstance(assigned, ast.Assign) else node
            is_kind = isinstance(value, ast.Attribute) and value.attr in {"dtype", "device"}
            if is_kind and not isinstance(self._names.try_value(value.value), ModuleType):  # type: ignore[attr-defined]
                return True
            if any(map(self._tells_kind, _owners(value))):
                return True
        return False

    def _tells_kind(self, node: ast.AST) -> bool:
        """Return whether it is a call like `torch.finfo(x.dtype)`."""
        if not isinstance(node, ast.Call):
            return False
        value = self._names.try_value(node.func)
        return any(value is function for function in _KIND_FUNCTIONS)


def _only_casts(node: ast.If | ast.While | ast.IfExp) -> bool:
    """Return whether all branches of a condition only convert values to a dtype."""
    if isinstance(node, ast.IfExp):
        name = _cast_name(node.body)
        return name is not None and name == _cast_name(node.orelse)
    return isinstance(node, ast.If) and all(
        isinstance(line, ast.Pass)
        or (isinstance(line, ast.Assign) and _cast_name(line.value) == _only_target(line))
        for line in [*node.body, *node.orelse]
    )


def _cast_name(value: ast.expr) -> str | None:
    """Return x of an expression that is `x`, `x.float()` or `x.to(y.dtype)`; None for others."""
    if isinstance(value, ast.Name):
        return value.id
    if not isinstance(value, ast.Call) or value.keywords:
        return None
    is_dtype = all(
        isinstance(n, ast.Attribute) and (n.attr == "dtype" or root_name(n) == "torch")
        for n in value.args
    )
    function = value.func
    is_cast = isinstance(function, ast.Attribute) and function.attr in _CASTS and is_dtype
    owner = function.value if isinstance(function, ast.Attribute) else None
    return owner.id if is_cast and isinstance(owner, ast.Name) else None


def _only_target(assignment: ast.Assign) -> str:
    return ", ".join(map(ast.unparse, assignment.targets))


def _is_device(value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and value.args:  # str(x.device)
        value = value.args[0]
    while isinstance(value, ast.Attribute) and value.attr in {"type", "index"}:
        value = value.value
    return isinstance(value, ast.Attribute) and value.attr == "device"


def is_device_type(node: ast.expr) -> bool:
    """Return whether an expression is like `x.device.type`."""
    owner = node.value if isinstance(node, ast.Attribute) and node.attr == "type" else None
    return isinstance(owner, ast.Attribute) and owner.attr == "device"


def names_a_device(node: ast.AST) -> bool:
    """Return whether it compares a device with a text, as in `x.device.type == "cpu"`."""
    operands = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    return any(map(_is_device, operands)) and any(isinstance(n, ast.Constant) for n in operands)


def _owners(value: ast.AST) -> Iterator[ast.AST]:
    """Yield an expression, and those that its attributes are of: of `a().b`, also `a()`."""
    yield value
    while isinstance(value, ast.Attribute):
        value = value.value
        yield value


def find_mode_decision(part: ast.stmt) -> ast.AST | None:
    """Return a use of `self.training` that is no argument of a suitable operation, or None."""
    allowed: set[int] = set()
    for node in ast.walk(part):
        if isinstance(node, ast.Call):
            allowed.update(map(id, _mode_arguments(node)))
    return next(
        (
            node
            for node in ast.walk(part)
            if isinstance(node, ast.Attribute)
            and node.attr == "training"
            and isinstance(node.ctx, ast.Load)
            and id(node) not in allowed
        ),
        None,
    )


def _mode_arguments(call: ast.Call) -> Iterator[ast.AST]:
    """Yield the parts of a call's arguments that may be `self.training`."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    takes_mode = function.lstrip("_").startswith(_MODE_FUNCTIONS)
    for argument in (*call.args, *call.keywords):
        value = argument.value if isinstance(argument, ast.keyword) else argument
        name = argument.arg if isinstance(argument, ast.keyword) else ""
        probability = name in {"dropout_p", "p"} or takes_mode
        if takes_mode:
            yield from ast.walk(value)
        if probability and isinstance(value, ast.IfExp):
            yield value.test
