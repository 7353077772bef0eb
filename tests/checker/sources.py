"""What a component file's text says before it runs: imports, constants, whether two are one."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from checker.directory import Directory

ALLOWED = {"torch", "__future__"} | set(sys.stdlib_module_names)
MOST_NUMBERS = 16
"""In one literal: more is a table that was pasted."""
LONGEST_TEXT = 200


def foreign_imports(tree: ast.Module) -> Iterator[str]:
    """What a file needs besides torch and the standard library."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in {"__import__", "exec", "eval"} or called.endswith("import_module"):
                yield f"calls {called} (line {node.lineno})"
        for name in names:
            if name.partition(".")[0] not in ALLOWED:
                yield f"imports {name} (line {node.lineno})"  # type: ignore[attr-defined]


def pasted_constants(tree: ast.Module) -> Iterator[str]:
    """Literals that hold a table."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)) and id(node) not in inside:
            parts = list(ast.walk(node))
            inside |= {id(part) for part in parts}
            numbers = sum(
                isinstance(p, ast.Constant) and isinstance(p.value, (int, float, complex))
                for p in parts
                if not isinstance(p, ast.Call)
            )
            calls = any(isinstance(p, ast.Call) for p in parts)
            if numbers > MOST_NUMBERS and not calls:
                yield f"a literal of {numbers} numbers (line {node.lineno})"
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            text = node.value if isinstance(node.value, (str, bytes)) else ""
            if len(text) > LONGEST_TEXT:
                yield f"a literal of {len(text)} characters (line {node.lineno})"


def sameness(directory: Directory, file: str) -> str:
    """The class and the inputs of a file, its variables numbered as they come: equal for twins."""
    tree = directory.parsed(file)
    kept = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        or (isinstance(node, ast.FunctionDef) and node.name == "get_inputs")
    ]
    names: dict[str, str] = {}
    own = _own_names(kept)

    def numbered(name: str) -> str:
        return names.setdefault(name, f"n{len(names)}") if name in own else name

    for root in kept:
        for node in ast.walk(root):
            if isinstance(node, ast.Name):
                node.id = numbered(node.id)
            elif isinstance(node, ast.arg):
                node.arg = numbered(node.arg)
            elif isinstance(node, ast.Attribute):
                node.attr = numbered(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                node.value = numbered(node.value)
    return "\n".join(ast.dump(node) for node in kept)


def _own_names(roots: list[ast.stmt]) -> set[str]:
    """Variables, arguments and attributes that a file gives names to."""
    found: set[str] = set()
    for root in roots:
        for node in ast.walk(root):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.arg) and node.arg != "self":
                found.add(node.arg)
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
                and not node.attr.startswith("register_")
            ):
                found.add(node.attr)
    return found
