"""Lists the modules that a component may use, and which of their names.

None of these names tells a program where, when or how it runs. A component has to use a module
through its names, as in `math.sqrt` or `F.relu`: a variable that holds a module could be asked for
anything.
"""

import ast
import importlib
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType
from typing import Self

from runner.torch_internals import FUNCTIONS

_EVERYTHING: frozenset[str] = frozenset()
"""Stands for all names of a module except private ones and other modules."""
_LOGGER = "a logger"
_CHILDREN_PACKAGE = "children"
"""Name of the package that holds a step's components."""
_ALLOWED_NAMES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("math", "cmath", "itertools", "operator", "numbers", "__future__"), _EVERYTHING
    ),
    **dict.fromkeys(("typing", "typing_extensions", "collections", "collections.abc"), _EVERYTHING),
    **dict.fromkeys(("torch", "torch.ops.aten", "torch.autograd"), _EVERYTHING),
    **dict.fromkeys(
        ("torch.autograd.function", "torch.fft", "torch.linalg", "torch.special"), _EVERYTHING
    ),
    **dict.fromkeys(
        ("torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.parameter"), _EVERYTHING
    ),
    **dict.fromkeys(("torch.nn.modules", "torch.nn.attention", "torch.nn.utils"), _EVERYTHING),
    **dict.fromkeys(("torch.nn.utils.rnn", "torch.nn.utils.parametrize", "torch.amp"), _EVERYTHING),
    **dict.fromkeys(("torch.nn.utils.parametrizations", "torch.nn.utils.fusion"), _EVERYTHING),
    **dict.fromkeys(("torch.nested", "torch.sparse", "torch.func", "torch.types"), _EVERYTHING),
    **dict.fromkeys(("torch.functional", "torch.signal", "torch.signal.windows"), _EVERYTHING),
    "torch.ops": frozenset({"aten"}),
    "enum": frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "auto", "unique"}),
    "abc": frozenset({"ABC", "ABCMeta", "abstractmethod"}),
    "copy": frozenset({"copy", "deepcopy"}),
    "types": frozenset({"SimpleNamespace", "MappingProxyType", "NoneType"}),
    "dataclasses": frozenset({"dataclass", "field", "fields", "asdict", "astuple", "replace"}),
    "contextlib": frozenset({"nullcontext", "contextmanager"}),
    "functools": frozenset({"partial", "partialmethod", "reduce", "wraps", "cached_property"}),
    "warnings": frozenset({"warn"}),
    "logging": frozenset({"DEBUG", "INFO", "WARNING", "ERROR"}),
    _LOGGER: frozenset(
        {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}
    ),
}
"""Maps a module to the names in it that a component may use."""


_FORBIDDEN_IN_TORCH = {
    *("load", "save", "from_file", "get_file_path", "typename", "default_generator"),
    *("are_deterministic_algorithms_enabled", "is_grad_enabled", "is_inference_mode_enabled"),
    *("is_autocast_enabled", "is_autocast_cpu_enabled", "get_rng_state", "initial_seed", "seed"),
    *("use_deterministic_algorithms", "get_num_threads", "get_num_interop_threads", "manual_seed"),
    *("is_deterministic_algorithms_warn_only_enabled", "get_deterministic_debug_mode"),
    *("is_inference", "is_warn_always_enabled", "get_default_device"),
}
"""Names in torch and its submodules that read files, or that read or set how a program runs."""
_FORBIDDEN_ELSEWHERE = {
    "attrgetter",
    "methodcaller",
    "get_type_hints",
    "ForwardRef",
    "get_overloads",
}
"""Names in other modules that look attributes up by strings."""


_SCOPES = (ast.ClassDef, ast.FunctionDef, ast.Lambda, ast.Global, ast.Nonlocal)


class _NotAllowedError(Exception):
    """A component may not use this name of a module."""


@lru_cache
def _import_allowed(name: str) -> ModuleType | None:
    """Return a module that a component may use; None if it may not, or if it is not installed."""
    if name not in _ALLOWED_NAMES and not name.startswith("torch.nn.modules."):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _take_name(module: ModuleType, name: str) -> object:
    """Return the object that a module's name stands for; _NotAllowedError if it is not allowed."""
    allowed = _ALLOWED_NAMES.get(module.__name__, _EVERYTHING)
    value = getattr(module, name, None)
    if isinstance(value, ModuleType):
        is_allowed = name in allowed if allowed else _import_allowed(value.__name__) is not None
    else:
        is_private = name.startswith("_") and name not in FUNCTIONS
        is_torch = _top_package(module.__name__) == "torch"
        is_forbidden = is_torch and (name in _FORBIDDEN_IN_TORCH or name.startswith("set_"))
        is_allowed = (
            name in allowed
            if allowed
            else not (is_private or is_forbidden or name in _FORBIDDEN_ELSEWHERE)
        )
    if not is_allowed:
        raise _NotAllowedError
    return value


@dataclass(slots=True)
class ImportedModules:
    """The names by which a file refers to modules."""

    modules: dict[str, ModuleType] = field(default_factory=dict)
    """Maps a name in the file to its module."""
    forbidden: set[str] = field(default_factory=set)
    """Names of modules, or imported from modules, that a component may not use."""
    _renaming_nodes: set[int] = field(default_factory=set)
    """id() of nodes that only give a module a new name.

    `nn.functional` in `F = nn.functional`, `logging.getLogger` in `log = logging.getLogger(...)`.
    """

    @classmethod
    def from_tree(cls, tree: ast.Module) -> Self:
        """Read all imports of a file, at any depth, and the assignments that rename a module."""
        modules = cls()
        for node in ast.walk(tree):
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                if isinstance(node, ast.ImportFrom):
                    modules._add_from_import(node, alias)
                elif _top_package(alias.name) != _CHILDREN_PACKAGE:
                    modules._add_import(alias)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                modules._add_assignment(node.targets[0], node.value)
        return modules

    def find_fault(self, part: ast.AST, *, seeds: bool) -> tuple[str, ast.AST] | None:
        """Return the text and the node of a forbidden use in a part of a file, or None.

        `seeds`: the part may seed torch's generator and use Python's `random`.
        """
        inner = {id(node.value) for node in ast.walk(part) if isinstance(node, ast.Attribute)}
        local = local_variables(part)
        for node in ast.walk(part):
            if isinstance(node, ast.alias) and node.name == "*":
                return "import *", node
            root = None if id(node) in self._renaming_nodes else _root_name(node)
            if root is None or id(root) in local or not isinstance(root.ctx, ast.Load):
                continue
            if root.id in self.forbidden and not (seeds and root.id == "random"):
                return root.id, root
            try:
                value = self._resolve(node)
            except _NotAllowedError:
                if not (seeds and isinstance(node, ast.Attribute) and node.attr == "manual_seed"):
                    return ast.unparse(node), node
            else:
                if isinstance(value, ModuleType) and id(node) not in inner:
                    return f"{ast.unparse(node)} as a value", node
        return None

    def is_of_torch(self, node: ast.expr) -> bool:
        """Return whether an expression is torch or a part of torch."""
        root = _root_name(node)
        module = self.modules.get(root.id) if root else None
        return module is not None and _top_package(module.__name__) == "torch"

    def _add_import(self, alias: ast.alias) -> None:
        name = alias.asname or _top_package(alias.name)
        module = _import_allowed(alias.name)
        if module and not alias.asname:
            module = _import_allowed(name)
        if module:
            self.modules[name] = module
        else:
            self.forbidden.add(name)

    def _add_from_import(self, node: ast.ImportFrom, alias: ast.alias) -> None:
        if _top_package(node.module or "") == _CHILDREN_PACKAGE:
            return
        name, module = alias.asname or alias.name, _import_allowed(node.module or "")
        try:
            value = _take_name(module, alias.name) if module and not node.level else None
        except _NotAllowedError:
            value = None
        if isinstance(value, ModuleType):
            self.modules[name] = value
        elif value is None:
            self.forbidden.add(name)

    def _add_assignment(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            return
        module: object = None
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "logging.getLogger":
            value, module = value.func, ModuleType(_LOGGER)
        elif isinstance(value, ast.Attribute):
            with suppress(_NotAllowedError):
                module = self._resolve(value)
        if isinstance(module, ModuleType):
            self.modules[target.id] = module
            self._renaming_nodes.add(id(value))

    def _resolve(self, node: ast.AST) -> object:
        """Return the object that `torch.nn.functional` stands for; None if it is of no module."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        owner = self._resolve(node.value) if isinstance(node, ast.Attribute) else None
        if isinstance(owner, ModuleType) and isinstance(node, ast.Attribute):
            return _take_name(owner, node.attr)
        return None


def _root_name(node: ast.AST) -> ast.Name | None:
    """Return the `a` of `a` and of `a.b.c`; None for any other expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _top_package(name: str) -> str:
    return name.partition(".")[0]


def local_variables(part: ast.AST) -> set[int]:
    """Return the id() of all uses of local variables in functions.

    A local variable hides a module of the same name. Functions that contain other functions or
    classes are left out: there, every name is taken for a global one.
    """
    variable_ids: set[int] = set()
    for function in ast.walk(part):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = [node for line in function.body for node in ast.walk(line)]
        if any(isinstance(node, _SCOPES) for node in nodes):
            continue
        targets = [n.target for n in nodes if isinstance(n, ast.comprehension)]
        comprehension_names = {id(node) for target in targets for node in ast.walk(target)}
        uses = [
            node
            for node in nodes
            if isinstance(node, ast.Name) and id(node) not in comprehension_names
        ]
        parameters = function.args
        names = {a.arg for a in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)}
        names |= {node.id for node in uses if isinstance(node.ctx, ast.Store)}
        names -= {_top_package(n.asname or n.name) for n in nodes if isinstance(n, ast.alias)}
        variable_ids.update(id(node) for node in uses if node.id in names)
    return variable_ids
