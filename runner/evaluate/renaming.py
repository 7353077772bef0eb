"""Renames the global names of a Python file, so that several files can stand in one.

Names are replaced in the text, so that comments and formatting stay. Local names that are spelled
like a global one stay as they are.
"""

import ast
import re
from collections.abc import Iterator, Mapping

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rename_globals(text: str, names: Mapping[str, str]) -> str:
    """Return a file's text with these global names replaced."""
    collector = _Collector(text, names)
    collector.visit(ast.parse(text))
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for row, begin, end_row, end, new in sorted(collector.replacements, reverse=True):
        tail = lines[end_row - 1][end:]
        lines[row - 1 : end_row] = [lines[row - 1][:begin] + new.encode() + tail]
    return b"".join(lines).decode()


def global_names(tree: ast.Module) -> set[str]:
    """Return the names that a file defines at its top level, imports excluded."""
    names: set[str] = set()
    for statement in tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            names |= set(_bound_names([statement]))
    return names


class _Collector(ast.NodeVisitor):
    """Collects the places in a text where a global name stands."""

    def __init__(self, text: str, names: Mapping[str, str]) -> None:
        self.replacements: list[tuple[int, int, int, int, str]] = []
        """First line, first byte, last line, end byte, new text."""
        self._lines, self._names = text.splitlines(), names
        self._scopes: list[set[str]] = []
        """Local names of the functions around the visited node."""
        self._in_text = False

    def visit_Name(self, node: ast.Name) -> None:
        if self._is_global(node.id):
            new = self._names[node.id]
            if self._in_text:
                node.id = new
            else:
                self._add(node, new)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Write the whole text anew: before Python 3.12 names in it have no positions."""
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and self._is_global(n.id)}
        if not used or self._in_text:
            self.generic_visit(node)
            return
        self._in_text = True
        self.generic_visit(node)
        self._in_text = False
        self._add(node, ast.unparse(node))

    def visit_Global(self, node: ast.Global) -> None:
        if any(name in self._names for name in node.names):
            names = ", ".join(self._names.get(name, name) for name in node.names)
            self._add(node, f"global {names}")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._rename_definition(node, "class")
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        # Names of a class body are not seen by its methods, but by the body itself.
        own = set(_bound_names(node.body))
        for statement in node.body:
            if isinstance(statement, _FUNCTIONS):
                self._visit_function(statement, is_method=True)
            else:
                self._scopes.append(own)
                self.visit(statement)
                self._scopes.pop()

    def _visit_function(self, node: _Function, *, is_method: bool = False) -> None:
        arguments = node.args
        if not isinstance(node, ast.Lambda):
            if not is_method:
                self._rename_definition(node, "def")
            for decorator in node.decorator_list:
                self.visit(decorator)
            if node.returns is not None:
                self.visit(node.returns)
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        defaults = [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]
        annotations = [p.annotation for p in parameters if p.annotation is not None]
        for part in (*defaults, *annotations):
            self.visit(part)
        body: list[ast.stmt] | list[ast.expr]
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        declared = {
            name
            for part in body
            for n in ast.walk(part)
            if isinstance(n, ast.Global)
            for name in n.names
        }
        self._scopes.append((set(_bound_names(body)) | {p.arg for p in parameters}) - declared)
        for statement in body:
            self.visit(statement)
        self._scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _COMPREHENSIONS):
            targets = [generator.target for generator in node.generators]
            self._scopes.append({n for target in targets for n in _target_names(target)})
            super().generic_visit(node)
            self._scopes.pop()
        else:
            super().generic_visit(node)

    def _is_global(self, name: str) -> bool:
        return name in self._names and not any(name in scope for scope in self._scopes)

    def _rename_definition(
        self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, word: str
    ) -> None:
        if not self._is_global(node.name):
            return
        line = self._lines[node.lineno - 1]
        match = re.compile(rf"\b{word}\s+({re.escape(node.name)})\b").search(line, 0)
        assert match is not None
        begin = len(line[: match.start(1)].encode())
        end = begin + len(node.name.encode())
        self.replacements.append((node.lineno, begin, node.lineno, end, self._names[node.name]))

    def _add(self, node: ast.expr | ast.stmt, new: str) -> None:
        end_row, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        self.replacements.append((node.lineno, node.col_offset, end_row, end, new))


def _bound_names(statements: list[ast.stmt] | list[ast.expr]) -> Iterator[str]:
    """Yield the names that statements bind in their own scope."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Lambda | _Comprehension):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
            continue
        if isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id
        pending.extend(ast.iter_child_nodes(node))


def _target_names(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id
