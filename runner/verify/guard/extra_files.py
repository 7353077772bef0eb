"""Finds files in a decomposition's folder that would affect its users but not its judge."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from runner.tree.document import LEVEL_FOLDER
from runner.untrusted_files import read_file, walk

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
_COMPARE = """
import json, marshal, sys
from importlib.util import MAGIC_NUMBER
equal = []
for bytecode, source in json.load(sys.stdin):
    with open(bytecode, "rb") as one, open(source, "rb") as other:
        stored, text = one.read(), other.read()
    level = bytecode.rpartition(".opt-")[2].partition(".")[0]
    code = compile(text, source, "exec", optimize=int(level) if level.isdecimal() else 0)
    equal.append(stored[:4] == MAGIC_NUMBER and marshal.loads(stored[16:]) == code)
print(json.dumps(equal))
"""
"""Program that compares bytecode with what its source compiles to; wrong bytecode may crash it."""
_BYTECODE_FAULT = "is bytecode that Python runs instead of the source: delete it"


def find_extra_files(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield each file that should not be there, with the reason."""
    sources: dict[Path, Path] = {}
    for path in sorted(walk(directory)):
        name = path.relative_to(directory).as_posix()
        if fault := _find_fault(path, name):
            yield name, fault
        elif path.suffix == ".pyc" and (source := _source_in_use(path)):
            sources[path] = source
    for path in _find_other_bytecode(sources) if sources else ():
        yield path.relative_to(directory).as_posix(), _BYTECODE_FAULT


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
        return _BYTECODE_FAULT
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


def _source_in_use(path: Path) -> Path | None:
    """Return the source that Python imports as this bytecode, since it has its time and size."""
    with suppress(OSError, ValueError):
        source = Path(importlib.util.source_from_cache(str(path)))
        state = source.stat()
        with path.open("rb") as file:
            header = file.read(16)
        time, size = (int.from_bytes(header[n : n + 4], "little") for n in (8, 12))
        if (time, size) == (int(state.st_mtime) & 0xFFFFFFFF, state.st_size & 0xFFFFFFFF):
            return source
    return None


def _find_other_bytecode(sources: dict[Path, Path]) -> list[Path]:
    """Return the bytecode that is not what its source compiles to with this Python."""
    paths = list(sources)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _COMPARE],
        input=json.dumps([[str(path), str(source)] for path, source in sources.items()]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return paths
    return [path for path, equal in zip(paths, json.loads(done.stdout), strict=True) if not equal]
