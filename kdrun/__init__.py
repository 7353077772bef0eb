"""Takes PyTorch models apart into kernels at their exact shapes, from Python.

    import kdrun

    parts = kdrun.decompose(model, (tokens,), name="my_llama", output="parts")

See docs/python.md. Importing this package loads neither torch nor the rest of kdrun; the first use
of a function does.
"""

import importlib
from typing import TYPE_CHECKING

from runner import __version__

if TYPE_CHECKING:
    from kdrun.functions import decompose, open, verify, workloads
    from kdrun.parts import ObjectComparison, Parts, PartsComponent, PartsVerification
    from kdrun.tree_view import TreeNode, TreeView
    from runner.errors import KdrunError

_MODULES = {
    "decompose": "kdrun.functions",
    "open": "kdrun.functions",
    "verify": "kdrun.functions",
    "workloads": "kdrun.functions",
    "PartsComponent": "kdrun.parts",
    "ObjectComparison": "kdrun.parts",
    "Parts": "kdrun.parts",
    "PartsVerification": "kdrun.parts",
    "TreeNode": "kdrun.tree_view",
    "TreeView": "kdrun.tree_view",
    "KdrunError": "runner.errors",
}
"""Module of each public name, which is imported when the name is first used (PEP 562)."""

__all__ = [
    "KdrunError",
    "ObjectComparison",
    "Parts",
    "PartsComponent",
    "PartsVerification",
    "TreeNode",
    "TreeView",
    "__version__",
    "decompose",
    "open",
    "verify",
    "workloads",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'kdrun' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
