"""This file knows about packages that problems import: whether they are here, and what is in them.

An installed package is known by its version. A checkout has none that says what is in it today: it
is known by the sha256 of its Python files.
"""

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

_INSTALLED = {"site-packages", "dist-packages"}
_NO_PACKAGES = sys.stdlib_module_names | {"torch", "__future__"}


def is_here(module: str) -> bool:
    """Whether a module's package can be found, by a child that starts in the working directory."""
    package = module.partition(".")[0]
    return package in _NO_PACKAGES or _spec(package) is not None


def known_as(package: str) -> str:
    """`5.23.0`, or `sha256 1f2e3d4c5b6a of 12 files` for what is not installed; `missing`."""
    spec = _spec(package) if package.isidentifier() else None  # of a.b, a would be imported
    if spec is None:
        return "missing"
    places = [Path(place) for place in spec.submodule_search_locations or [spec.origin or ""]]
    if any(_INSTALLED & set(place.parts) for place in places) and (version := _version(package)):
        return version
    digest, count = hashlib.sha256(), 0
    for place in sorted(places):
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            count += 1
            digest.update(f"{file.relative_to(place.parent).as_posix()}\0".encode())
            digest.update(file.read_bytes() + b"\0")
    return f"sha256 {digest.hexdigest()[:12]} of {count} file{'' if count == 1 else 's'}"


def imported_packages(path: Path) -> dict[str, str]:
    """What a Python file imports that is neither torch nor Python's own, and as what it is known.

    Only what the file's own text names: what those packages import in turn is theirs.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return packages_of(names)


def packages_of(modules: set[str]) -> dict[str, str]:
    """The packages of modules, torch and Python's own left out, and as what each is known."""
    packages = {module.partition(".")[0] for module in modules} - _NO_PACKAGES
    return {package: known_as(package) for package in sorted(packages)}


@functools.cache
def within_package(file: str) -> str:
    """`zoo/nets/net.py`: a file's path from its package on, the same wherever that is installed."""
    root = Path(file).parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return Path(file).relative_to(root).as_posix()


def _spec(package: str) -> ModuleSpec | None:
    """Where a package is. Nothing is imported; a folder without __init__.py comes last."""
    found = PathFinder.find_spec(package, [str(Path.cwd()), *sys.path])
    if found is not None and found.origin is not None:
        return found
    try:
        return importlib.util.find_spec(package) or found  # hooks of editable installs
    except ValueError:  # it is being imported, or was put into sys.modules by hand
        return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        named = importlib.metadata.packages_distributions().get(package)
        return importlib.metadata.version(named[0]) if named else None
