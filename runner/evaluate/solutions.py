"""Finds solutions by the names of a tree's components, and writes templates for new ones."""

import ast
import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.errors import UsageError
from runner.store.result import sha256_of
from runner.tree.document import LEVEL_NUMBER, Level, Tree
from runner.untrusted_files import read_text

CLASS = "ModelNew"
TEST_FUNCTIONS = {"get_inputs", "get_init_inputs", "get_expected_output_shape", "run_tests"}
"""Functions of a component's file that a solution needs not have."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A file that claims to compute what a component computes."""

    name: str
    """Name of the component, which is the file's name without `.py`."""
    level: Level
    component: str
    """The component's path in the decomposition."""
    file: Path
    sha256: str
    nodes: tuple[str, ...]
    """Ids of the component's instances, in the tree's order."""


def find_solutions(tree: Tree, folder: Path, names: Collection[str] = ()) -> list[Solution]:
    """Return a folder's solutions for components of a tree, larger components first.

    `names`: the only components to look at; all if empty.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such directory", hint="name a folder of solutions")
    paths = {Path(node.path).stem: node.path for node in tree.nodes.values()}
    solutions = []
    for file in sorted(folder.glob("*.py")):
        component = paths.get(file.stem)
        if component is None or (names and file.stem not in names):
            continue
        nodes = tuple(key for key, node in tree.nodes.items() if node.path == component)
        level = tree.nodes[nodes[0]].level
        solutions.append(Solution(file.stem, level, component, file, sha256_of(file), nodes))
    return sorted(solutions, key=lambda item: (-LEVEL_NUMBER[item.level], item.name))


def list_strangers(trees: Sequence[Tree], folder: Path) -> list[str]:
    """Return a sentence for each file of a folder that is named as no component of any tree."""
    names = {Path(node.path).stem for tree in trees for node in tree.nodes.values()}
    sentences = []
    for file in sorted(folder.glob("*.py")):
        if file.stem not in names:
            similar = difflib.get_close_matches(file.stem, names, n=1, cutoff=0.4)
            question = f"; is it for {similar[0]}?" if similar else ""
            sentences.append(f"{file}: no component has this name{question}")
    return sentences


def find_component(tree: Tree, name: str) -> str:
    """Return the path of the component with this name; UsageError if there is none."""
    paths = {Path(node.path).stem: node.path for node in tree.nodes.values()}
    stem = name.removesuffix(".py")
    if stem not in paths:
        similar = difflib.get_close_matches(stem, paths, n=1, cutoff=0.3)
        raise UsageError(
            f"{name}: no component has this name",
            hint=f"is it {similar[0]}?" if similar else "`kdrun show DIR --all` lists them",
        )
    return paths[stem]


def write_template(directory: Path, component: str) -> str:
    """Return the text of a solution to begin with: the component's own code, as `ModelNew`."""
    text = read_text(directory / component)
    code = cut_statements(text, dropped=TEST_FUNCTIONS, keeps_imports=True)
    code = re.sub(r"^class Model\(", f"class {CLASS}(", code, flags=re.MULTILINE)
    return f'''"""A solution for {ast.get_docstring(ast.parse(text)) or ""}

Make forward() faster. Keep its parameters, and the names of its weights; if it holds them in
another form, define convert_weights(state_dict), which takes the component's weights by name and
returns those of {CLASS}.
"""

{code}'''


def cut_statements(text: str, *, dropped: Collection[str] = (), keeps_imports: bool = False) -> str:
    """Return a file's text without its docstring, imports, main block and dropped functions."""
    tree = ast.parse(text)
    lines: list[str | None] = list(text.splitlines())
    for n, statement in enumerate(tree.body):
        is_docstring = n == 0 and ast.get_docstring(tree) is not None
        is_import = isinstance(statement, ast.Import | ast.ImportFrom) and not keeps_imports
        is_dropped = isinstance(statement, ast.FunctionDef) and statement.name in dropped
        is_main = isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
        if is_docstring or is_import or is_dropped or is_main:
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(d.lineno for d in decorators)])
            for row in range(first - 1, statement.end_lineno or first):
                lines[row] = None
    kept = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", kept).strip("\n") + "\n"
