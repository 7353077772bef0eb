"""Recognises texts that no value decides: constants of a file, and numbers that it counts.

`f"block_{n}"` with `for n in range(4)` is one. A component may use it as an attribute's name. The
text of any other value could tell a component what it computes with.
"""

import ast

from runner.verify.guard.source.name_scopes import Scopes


class CountedTexts:
    """Tells which expressions of one file give only its constants, and numbers that it counts."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._counters: dict[int, bool] = {}
        """Maps the id() of a name's bindings to whether they are loops that count."""

    def is_counted(self, expression: ast.expr) -> bool:
        """Return whether a text holds only what the file spells out, and numbers that it counts."""
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and not self._is_counter(node):
                return False
            if isinstance(node, ast.Attribute | ast.Call | ast.Subscript | ast.NamedExpr):
                return False
        return True

    def _is_counter(self, name: ast.Name) -> bool:
        found = self._scopes.find(name)
        if found is None:
            return False
        if id(found[1]) not in self._counters:
            self._counters[id(found[1])] = False  # A name that is made from itself is none.
            self._counters[id(found[1])] = all(map(self._is_counted_binding, found[1]))
        return self._counters[id(found[1])]

    def is_number_counter(self, name: ast.Name) -> bool:
        """Return whether a name is the target of `for n in range(...)`, or the n of enumerate."""
        for binding in (self._scopes.find(name) or (None, []))[1]:
            target, parent = binding, self._scopes.parents.get(binding)
            counts = "range"
            if isinstance(parent, ast.Tuple) and parent.elts[0] is binding:
                target, parent, counts = parent, self._scopes.parents.get(parent), "enumerate"
            if not isinstance(parent, ast.For | ast.comprehension) or parent.target is not target:
                return False
            if not self._calls_builtin(parent.iter, {counts}):
                return False
        return True

    def _is_counted_binding(self, target: ast.AST) -> bool:
        binding, parent = target, self._scopes.parents.get(target)
        while isinstance(parent, ast.Tuple):
            target, parent = parent, self._scopes.parents.get(parent)
        if isinstance(parent, ast.Assign):
            return target is binding and self._is_spelled_out(parent.value)
        if not isinstance(parent, ast.For | ast.comprehension) or parent.target is not target:
            return False
        call = parent.iter
        counts = self._calls_builtin(call, {"enumerate"}) and isinstance(target, ast.Tuple)
        return (counts and target.elts[0] is binding) or self._is_spelled_out(call)  # type: ignore[attr-defined]

    def _is_spelled_out(self, node: ast.expr) -> bool:
        """Return whether an expression gives only constants of the file, and numbers it counts."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Tuple | ast.List):
            return all(map(self._is_spelled_out, node.elts))
        if isinstance(node, ast.Dict):
            parts = [*node.keys, *node.values]
            return all(part is not None and self._is_spelled_out(part) for part in parts)
        if isinstance(node, ast.Name):
            return self._is_counter(node)
        if self._calls_builtin(node, {"range"}):
            return True
        if self._calls_builtin(node, {"zip", "enumerate", "reversed", "sorted"}):
            return all(map(self._is_spelled_out, node.args))  # type: ignore[attr-defined]
        is_view = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_view and node.func.attr in {"items", "keys", "values"} and not node.args:  # type: ignore[attr-defined]
            return self._is_spelled_out(node.func.value)  # type: ignore[attr-defined]
        return False

    def _calls_builtin(self, node: ast.expr, names: set[str]) -> bool:
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return is_call and node.func.id in names and self._scopes.find(node.func) is None  # type: ignore[attr-defined]
