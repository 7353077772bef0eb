"""Finds files in a decomposition's folder that would affect its users but not its judge."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from runner.untrusted_files import read_file

_CODE_SUFFIXES = {".py", ".pyc", ".so", ".pyd"}
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
        stem = path.name.partition(".")[0]
        if path.is_dir():
            hides = stem in _PROTECTED_MODULES and (path / "__init__.py").exists()
        else:
            hides = path.suffix in _CODE_SUFFIXES and stem in _PROTECTED_MODULES
        if hides and path.parent.name != "__pycache__":
            yield name, f"hides the module {stem} from files beside it: give it another name"
        elif path.name == "__init__.py" and not _is_empty(path):
            yield name, "does something when it is imported: leave it empty"
        elif path.suffix == ".pyc" and _is_unchecked(path):
            yield name, "is bytecode that Python runs instead of the source: delete it"


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
