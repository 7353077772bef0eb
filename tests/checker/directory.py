"""A decomposition directory as anybody finds it: JSON, Python files, nothing else."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

LEVELS = {"model": 3, "layer": 2, "fusion": 1, "kernel": 0}


@dataclass
class Directory:
    """The files of a decomposition, read once."""

    path: Path
    _texts: dict[str, str] = field(default_factory=dict)

    @cached_property
    def tree(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text("decomposition_tree.json"))
        return found

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        nodes: dict[str, dict[str, Any]] = self.tree["nodes"]
        return nodes

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.tree["metadata"]
        return metadata

    @cached_property
    def components(self) -> tuple[str, ...]:
        """Component files, relative; highest level first."""
        files = [f.relative_to(self.path).as_posix() for f in self.path.glob("level_*/*.py")]
        return tuple(sorted(files, reverse=True))

    @cached_property
    def steps(self) -> tuple[str, ...]:
        return tuple(
            sorted(f.parent.relative_to(self.path).as_posix()
                   for f in self.path.glob("steps/*/refactored.py"))
        )  # fmt: skip

    @cached_property
    def used(self) -> dict[str, list[dict[str, Any]]]:
        """Component file -> the nodes that are its instances."""
        found: dict[str, list[dict[str, Any]]] = {}
        for node in self.nodes.values():
            found.setdefault(node["path"], []).append(node)
        return found

    @property
    def kernels(self) -> Iterator[dict[str, Any]]:
        return (node for node in self.nodes.values() if not node["children"])

    def text(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = (self.path / name).read_text(encoding="utf-8")
        return self._texts[name]

    def parsed(self, name: str) -> ast.Module:
        return ast.parse(self.text(name))

    @contextmanager
    def loaded(self, name: str) -> Iterator[ModuleType]:
        """A file as a module, with its own folder to import from; nothing of it stays behind."""
        path = self.path.resolve() / name
        known = set(sys.modules)
        module = ModuleType(f"checked_{path.stem}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module
        sys.path.insert(0, str(path.parent))
        try:
            exec(compile(self.text(name), str(path), "exec"), module.__dict__)
            yield module
        finally:
            sys.path.remove(str(path.parent))
            for other in set(sys.modules) - known:
                where = getattr(sys.modules[other], "__file__", None) or ""
                package = [str(p) for p in getattr(sys.modules[other], "__path__", [])]
                if any(w.startswith(str(self.path.resolve())) for w in (where, *package)):
                    del sys.modules[other]
