"""Finds the packages that problems import, and the version or source hash of each.

An installed package is identified by its version. A checkout's version does not say what is in it
today, so a checkout is identified by the sha256 of its Python files.
"""

import ast
import contextlib
import functools
import hashlib
import importlib
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

_INSTALL_FOLDERS = {"site-packages", "dist-packages"}
_OPERATORS_OF_TORCH = {
    *("aten", "prim", "prims", "rngprims", "profiler", "export", "inductor"),
    *("quantized", "quantized_decomposed", "sparse", "onednn", "mkldnn", "mkldnn_prepacked", "mkl"),
}
"""Namespaces of the operators that `import torch` adds and that compute."""
_BUILTIN_PACKAGES = sys.stdlib_module_names | {"torch", "__future__"}


def is_importable(module: str) -> bool:
    """Return whether a child process started in the working directory can import the package."""
    package = module.partition(".")[0]
    return package in _BUILTIN_PACKAGES or _spec(package) is not None


def package_identity(package: str) -> str:
    """Return an installed package's version, a checkout's hash and file count, or `missing`.

    `5.23.0`, or `sha256 1f2e3d4c5b6a of 12 files`.
    """
    spec = _spec(package) if package.isidentifier() else None  # finding `a.b` would import `a`
    if spec is None:
        return "missing"
    locations = [
        Path(location) for location in spec.submodule_search_locations or [spec.origin or ""]
    ]
    if any(_INSTALL_FOLDERS & set(location.parts) for location in locations) and (
        version := _version(package)
    ):
        return version
    digest, count = hashlib.sha256(), 0
    for location in sorted(locations):
        for file in sorted(location.rglob("*.py")) if location.is_dir() else [location]:
            count += 1
            digest.update(f"{file.relative_to(location.parent).as_posix()}\0".encode())
            digest.update(file.read_bytes() + b"\0")
    return f"sha256 {digest.hexdigest()[:12]} of {pluralize(count, 'file')}"


def is_checkout(identity: str) -> bool:
    """Return whether a package identity is that of a checkout, which no package index has."""
    return identity.startswith("sha256 ")


class SiblingSkippingFinder(PathFinder):
    """Finder of modules on `sys.path` that skips files in a problem's folder.

    A problem has to stand alone, and a file beside it may have the name of a package that is
    installed elsewhere. Packages (folders) there are allowed, since they may be a checkout's, and
    so is all of the folder if PYTHONPATH names it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def find_spec(  # type: ignore[override]
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module that Python finds; None if it is a file in the folder."""
        spec = PathFinder.find_spec(name, path, target)
        return None if path is None and spec and self.skips(name, spec) else spec

    def skips(self, name: str, spec: ModuleSpec) -> bool:
        """Return whether a module is a file in the folder."""
        if name in _BUILTIN_PACKAGES or not spec.origin:
            return False
        return Path(spec.origin).parent.resolve() == self.folder

    def install(self) -> None:
        """Replace Python's own finder, or the finder of an earlier problem."""
        python_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        allowed = self.folder in (Path(entry).resolve() for entry in python_path if entry)
        sys.meta_path[:] = [
            (PathFinder if allowed else self)
            if finder is PathFinder or isinstance(finder, SiblingSkippingFinder)
            else finder
            for finder in sys.meta_path
        ]


def imported_packages(path: Path) -> dict[str, str]:
    """Return name -> identity of the packages that a Python file imports itself.

    Torch and the standard library are left out, and so is what those packages import in turn.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(read_file(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return package_identities(names)


def package_identities(modules: set[str]) -> dict[str, str]:
    """Return name -> identity of modules' packages, without torch and the standard library."""
    packages = {module.partition(".")[0] for module in modules} - _BUILTIN_PACKAGES
    return {package: package_identity(package) for package in sorted(packages)}


def find_operator_module(namespace: str) -> str | None:
    """Return the imported module that adds the operators `torch.ops.<namespace>`, or None.

    It is `torch` for torch's own. A package names its operators after itself: `torchvision` for
    `torch.ops.torchvision`, `optimum.quanto` for `torch.ops.quanto`.
    """
    if namespace in _OPERATORS_OF_TORCH:
        return "torch"
    names = (
        name
        for name, module in list(sys.modules.items())
        if name.rpartition(".")[2] == namespace
        and name.count(".") <= 1
        and hasattr(module, "__path__")
    )
    return min(names, key=len, default=None)


def import_installed(module: str) -> None:
    """Import a module if its package is installed; a checkout's code is not run."""
    package = module.partition(".")[0]
    spec = _spec(package) if package.isidentifier() else None
    locations = (spec.submodule_search_locations or [spec.origin or ""]) if spec else []
    if all(_INSTALL_FOLDERS & set(Path(location).parts) for location in locations):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


@functools.cache
def path_within_package(file: str) -> str:
    """Return a file's path from its top package on: `zoo/nets/net.py`, on any machine."""
    root = Path(file).parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return Path(file).relative_to(root).as_posix()


def _spec(package: str) -> ModuleSpec | None:
    """Return the spec of a package, installed or in the working directory; None if in neither.

    Nothing is imported.
    """
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # it is being imported, or was put into sys.modules by hand
        spec = PathFinder.find_spec(package)
    if spec is not None and spec.origin is not None:
        return spec
    local_spec = PathFinder.find_spec(package, [str(Path.cwd())])
    hooks = [finder for finder in sys.meta_path if isinstance(finder, SiblingSkippingFinder)]
    if local_spec is None or any(hook.skips(package, local_spec) for hook in hooks):
        return spec
    return local_spec if local_spec.origin is not None else spec or local_spec


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        distributions = importlib.metadata.packages_distributions().get(package)
        return importlib.metadata.version(distributions[0]) if distributions else None
