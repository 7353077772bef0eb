"""Names and docstrings of the package are plain: one class a name, and no pronouns."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "runner"
FILES = sorted([*RUNNER.rglob("*.py"), *RUNNER.with_name("kdrun").rglob("*.py")])
GLOSSARY = RUNNER.parent / "docs" / "glossary.md"
BANNED = set(
    GLOSSARY.read_text(encoding="utf-8").rpartition("compares.")[2].replace(",", " ").split()
)
RIDDLES = ("What ", "Who", "Those ", "Where ", "Which ", "In what ", "This file knows about")
"""Beginnings of a docstring that has no subject and verb."""


def name_of(path: Path) -> str:
    return path.relative_to(RUNNER.parent).as_posix().removeprefix("runner/")


def definitions(path: Path) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Lines and texts of all strings that stand as statements: docstrings, also of fields."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value


def test_a_class_name_stands_for_one_class() -> None:
    places = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name_of(path))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_module_is_called_by_a_word_that_says_nothing() -> None:
    assert [name_of(path) for path in FILES if path.stem in BANNED] == []


EMITTED = RUNNER / "emit" / "checks.py"
"""This file is copied into each decomposition, whose text is kept as it is."""


@pytest.mark.parametrize("path", [file for file in FILES if file != EMITTED], ids=name_of)
def test_no_function_is_called_by_a_word_that_says_nothing(path: Path) -> None:
    names = [f"{node.name}:{node.lineno}" for node in definitions(path)]
    assert [name for name in names if name.partition(":")[0].strip("_") in BANNED] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_docstring_says_what_is_there(path: Path) -> None:
    assert [
        f"{line}: {text[:60]}" for line, text in docstrings(path) if text.startswith(RIDDLES)
    ] == []


def test_a_folder_holds_no_more_files_than_a_reader_keeps_in_mind() -> None:
    folders = {path.parent for path in FILES}
    assert {f.name: n for f in folders if (n := len([*f.glob("*.py")])) > 24} == {}
