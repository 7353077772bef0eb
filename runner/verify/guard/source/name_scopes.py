"""Resolves the names of a file: which import, definition or assignment a name stands for."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True, eq=False)
class NameScope:
    """A file, a class, a function or a comprehension, and the names that it binds."""

    node: ast.AST
    outer: "NameScope | None" = None
    bindings: dict[str, list[ast.AST]] = field(default_factory=dict)
    """Maps a name to the nodes that bind it: a name, an argument, an alias or a definition."""

    @property
    def is_function(self) -> bool:
        """Whether the names of this scope are local variables."""
        return isinstance(self.node, _FUNCTIONS + _COMPREHENSIONS)


class Scopes:
    """The scope in which each node of a file lies, and the parent of each node."""

    def __init__(self, tree: ast.Module) -> None:
        self.file = NameScope(tree)
        self.parents: dict[ast.AST, ast.AST] = {}
        self._scopes: dict[ast.AST, NameScope] = {}
        pending: list[tuple[ast.AST, NameScope]] = [(tree, self.file)]
        while pending:  # Without recursion, because a stranger's file may nest deeply.
            node, scope = pending.pop()
            self._scopes[node] = scope
            self._bind(node, scope)
            for child, inner in _children(node, scope, self.parents.get(node)):
                self.parents[child] = node
                pending.append((child, inner))

    def scope(self, node: ast.AST) -> NameScope:
        """Return the scope in which a node lies."""
        return self._scopes[node]

    def find(self, name: ast.Name) -> tuple[NameScope, list[ast.AST]] | None:
        """Return the scope that a name belongs to, with its bindings; None for a builtin."""
        first: NameScope | None = self._scopes[name]
        scope = first
        while scope is not None:
            is_visible = scope is first or not isinstance(scope.node, ast.ClassDef)
            if is_visible and name.id in scope.bindings:
                return scope, scope.bindings[name.id]
            scope = scope.outer
        return None

    def definition(self, name: ast.AST) -> ast.AST | None:
        """Return the only node that binds a name; None for a builtin or for several."""
        found = self.find(name) if isinstance(name, ast.Name) else None
        return found[1][0] if found and len(found[1]) == 1 else None

    def _bind(self, node: ast.AST, scope: NameScope) -> None:
        names: list[str | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names = [node.id]
            if isinstance(self.parents[node], ast.NamedExpr):
                while isinstance(scope.node, _COMPREHENSIONS) and scope.outer:
                    scope = scope.outer
        elif isinstance(node, ast.alias):
            names = [node.asname or node.name.partition(".")[0]]
        elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler):
            names = [node.name]
        elif isinstance(node, ast.MatchMapping):
            names = [node.rest]
        for name in names:
            if name is not None:
                scope.bindings.setdefault(name, []).append(node)


def _children(
    node: ast.AST, scope: NameScope, parent: ast.AST | None
) -> Iterator[tuple[ast.AST, NameScope]]:
    """Yield the child nodes, each with the scope in which it lies."""
    inner: list[ast.AST] = []
    own = NameScope(node, scope)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inner = list(node.body)
    elif isinstance(node, ast.Lambda):
        inner = [node.body]
    elif isinstance(node, _COMPREHENSIONS):
        inner = list(ast.iter_child_nodes(node))
    elif isinstance(node, ast.comprehension) and scope.outer:
        # What the first `for` goes through is evaluated outside of the comprehension.
        is_first = isinstance(parent, _COMPREHENSIONS) and parent.generators[0] is node
        inner, own = ([node.iter] if is_first else []), scope.outer
    if isinstance(node, _FUNCTIONS):
        for argument in ast.iter_child_nodes(node.args):
            if isinstance(argument, ast.arg):
                own.bindings[argument.arg] = [argument]
    inner_ids = set(map(id, inner))
    for child in ast.iter_child_nodes(node):
        yield child, own if id(child) in inner_ids else scope
