"""Finds files in a decomposition's folder that would affect its users but not its judge."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from runner.tree.document import LEVEL_FOLDER
from runner.untrusted_files import read_file

_FOLDERS = (
    rf"({'|'.join(LEVEL_FOLDER.values())}|steps|steps/[^/]+|steps/[^/]+/children|verification)"
)
_LAYOUT = re.compile(
    rf"original\.py|({_FOLDERS}/)?__init__\.py|({'|'.join(LEVEL_FOLDER.values())})/[^/]+\.py"
    r"|steps/[^/]+/((original|refactored)\.py|children/[^/]+\.py)"
    r"|verification/(composition_test|checks)\.py|values/stored_values\.py"
)
"""Python files of the documented layout."""
_HELD = re.compile(rf"({'|'.join(LEVEL_FOLDER.values())}|steps|verification)/")
"""Folders that Python may search when a file of the layout runs; it imports no other."""
_BINARY_SUFFIXES = {".so", ".pyd"}
_PYTEST_SETTINGS = {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"}
_SHARED_SETTINGS = {"pyproject.toml", "tox.ini", "setup.cfg"}
"""Files in which other tools have settings, too."""
_CODE_SUFFIXES = {".py", ".pyc", *_BINARY_SUFFIXES}
_PROTECTED_MODULES = set(sys.stdlib_module_names) | {
    "torch",
    "numpy",
    "sitecustomize",
    "usercustomize",
}
_PROTECTED_MODULES |= {"conftest", "pytest"}
_HASH_FLAG = 1
"""Flag of bytecode with a hash of its source (PEP 552), which Python does not write by default."""


def find_extra_files(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield each file that should not be there, with the reason."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if fault := _find_fault(path, name):
            yield name, fault


def _find_fault(path: Path, name: str) -> str | None:
    stem = path.name.partition(".")[0]
    if path.is_dir():
        hides = stem in _PROTECTED_MODULES and (path / "__init__.py").exists()
    else:
        hides = path.suffix in _CODE_SUFFIXES and stem in _PROTECTED_MODULES
    if hides and path.parent.name != "__pycache__":
        return f"hides the module {stem} from files beside it: give it another name"
    if path.is_dir():
        return None
    if path.name == "__init__.py" and path.parent.name in _PROTECTED_MODULES:
        return None  # its folder is told
    if path.suffix == ".py" and not _LAYOUT.fullmatch(name) and _HELD.match(name):
        return "is no file of the layout, and files beside it could import it: delete it"
    if path.name == "__init__.py" and not _is_empty(path):
        return "does something when it is imported: leave it empty"
    if path.suffix == ".pyc" and _is_unchecked(path):
        return "is bytecode that Python runs instead of the source: delete it"
    if path.suffix in _BINARY_SUFFIXES:
        return "is machine code that Python imports instead of a source: delete it"
    is_shared = path.name in _SHARED_SETTINGS
    if path.name in _PYTEST_SETTINGS or (is_shared and not _is_harmless(path)):
        return "changes how tests of this directory run: delete it"
    return None


def _is_harmless(path: Path) -> bool:
    """Return whether it is a project's settings without any for pytest."""
    try:
        return b"pytest" not in read_file(path)
    except OSError:
        return False


def _is_empty(path: Path) -> bool:
    try:
        body = ast.parse(read_file(path)).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in body)


def _is_unchecked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            flags = int.from_bytes(file.read(8)[4:], "little")
    except OSError:
        return True
    return bool(flags & _HASH_FLAG) or path.parent.name != "__pycache__"
