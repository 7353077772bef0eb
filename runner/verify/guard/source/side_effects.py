"""Finds what an expression may change, and the parts of a file that are only messages."""

import ast
import warnings
from collections.abc import Iterable, Iterator

from runner.verify.guard.source.allowed_names import LOGGER, ImportedNames
from runner.verify.guard.source.name_scopes import Scopes

TEXT_METHODS = {"extra_repr", "__repr__", "__str__"}
"""Methods whose only result is a description."""
_CHANGING_METHODS = {
    *("append", "extend", "insert", "pop", "popitem", "clear", "update", "setdefault", "add"),
    *("remove", "discard", "appendleft", "popleft", "sort", "reverse", "apply"),
}


class SideEffects:
    """Tells which expressions of one file may change something. `methods`: all of the file."""

    def __init__(
        self, scopes: Scopes, names: ImportedNames, methods: Iterable[ast.FunctionDef]
    ) -> None:
        self._scopes, self._names = scopes, names
        self._methods = {method.name for method in methods}
        self._calling = {method.name for method in methods if not self._only_reads(method)}
        """Names of methods, less those of properties that only read attributes."""

    def message_parts(self, part: ast.stmt) -> Iterator[ast.AST]:
        """Yield what only errors, assertions, warnings and descriptions say or ask."""
        for node in ast.walk(part):
            parts: list[ast.expr | None] = []
            if isinstance(node, ast.Raise):
                parts = [node.exc, node.cause]
            elif isinstance(node, ast.Assert):
                parts = [node.test, node.msg]
            elif isinstance(node, ast.If) and not node.orelse:
                parts = [node.test] if all(isinstance(n, ast.Raise) for n in node.body) else []
            elif isinstance(node, ast.FunctionDef) and node.name in TEXT_METHODS:
                parts = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
            elif isinstance(node, ast.Call) and self._only_tells(node):
                parts = list(node.args)
            yield from (n for n in parts if n is not None and self.find_effect(n) is None)

    def _only_tells(self, call: ast.Call) -> bool:
        """Return whether a call is `print(...)`, `warnings.warn(...)` or of a logger."""
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            return self._scopes.find(call.func) is None
        value = self._names.try_value(call.func)
        is_warning = value is warnings.warn and len(call.args) == 1 and not call.keywords
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call
        return is_warning or self._names.try_value(owner) is LOGGER

    def _only_reads(self, method: ast.FunctionDef) -> bool:
        """Return whether a method is a property that calls nothing, and reads no property."""
        is_property = [ast.unparse(decorator) for decorator in method.decorator_list] == [
            "property"
        ]
        if not is_property or not isinstance(method.body[-1], ast.Return):
            return False
        calls = (ast.Call, ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)
        return all(
            not isinstance(node, ast.stmt)
            or isinstance(node, ast.Return)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            for node in method.body
        ) and not any(
            isinstance(node, calls)
            or (isinstance(node, ast.Attribute) and node.attr in self._methods)
            for line in method.body
            for node in ast.walk(line)
        )

    def find_effect(self, expression: ast.expr) -> ast.AST | None:
        """Return a part of an expression that may change something, or None."""
        for node in ast.walk(expression):
            if isinstance(node, ast.NamedExpr | ast.Lambda):
                return node
            if isinstance(node, ast.Attribute) and node.attr in self._calling:
                return node
            if not isinstance(node, ast.Call) or self._names.try_value(node.func) is not None:
                continue
            function = node.func
            if isinstance(function, ast.Attribute):
                changes = function.attr in _CHANGING_METHODS or function.attr.endswith("_")
            elif isinstance(function, ast.Name):
                own = self._scopes.definition(function)
                is_plain = isinstance(own, ast.ClassDef) and not any(
                    isinstance(line, ast.FunctionDef) for line in own.body
                )
                changes = self._scopes.find(function) is not None and not is_plain
            else:
                changes = True
            if changes:
                return node
        return None
