"""Find the packages that problems import, and tell which version or source of each is here.

An installed package is known by its version. A checkout has none that says what is in it today: it
is known by the sha256 of its Python files.
"""

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from runner.quantities import pluralize
from runner.untrusted_files import read_file

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
    return f"sha256 {digest.hexdigest()[:12]} of {pluralize(count, 'file')}"


def is_checkout(known: str) -> bool:
    """Whether a package that is known as this was not installed: no index has it."""
    return known.startswith("sha256 ")


class NoFilesBeside(PathFinder):
    """Finder of modules on `sys.path` that skips files beside a problem, which has to stand alone.

    A file there may have the name of a package that others install. Folders may be packages of a
    checkout, and what PYTHONPATH names is wanted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def find_spec(  # type: ignore[override]
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what Python finds; None for a file in the folder."""
        found = PathFinder.find_spec(name, path, target)
        return None if path is None and found and self.skips(name, found) else found

    def skips(self, name: str, found: ModuleSpec) -> bool:
        """Return whether a module is a file in the folder."""
        if name in _NO_PACKAGES or not found.origin:
            return False
        return Path(found.origin).parent.resolve() == self.folder

    def install(self) -> None:
        """Take the place of Python's own finder, or of that for an earlier problem."""
        wanted = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        allowed = self.folder in (Path(place).resolve() for place in wanted if place)
        sys.meta_path[:] = [
            (PathFinder if allowed else self)
            if each is PathFinder or isinstance(each, NoFilesBeside)
            else each
            for each in sys.meta_path
        ]


def imported_packages(path: Path) -> dict[str, str]:
    """What a Python file imports that is neither torch nor Python's own, and as what it is known.

    Only what the file's own text names: what those packages import in turn is theirs.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(read_file(path))):
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
    """Find a package, installed or in the working directory; import nothing. None: in neither."""
    try:
        found = importlib.util.find_spec(package)
    except ValueError:  # it is being imported, or was put into sys.modules by hand
        found = PathFinder.find_spec(package)
    if found is not None and found.origin is not None:
        return found
    here = PathFinder.find_spec(package, [str(Path.cwd())])
    hooks = [each for each in sys.meta_path if isinstance(each, NoFilesBeside)]
    if here is None or any(hook.skips(package, here) for hook in hooks):
        return found
    return here if here.origin is not None else found or here


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        named = importlib.metadata.packages_distributions().get(package)
        return importlib.metadata.version(named[0]) if named else None
