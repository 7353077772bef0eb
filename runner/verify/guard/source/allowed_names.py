"""Lists what a component may use: modules and their names, builtins, attributes of values.

None of these names tells a program where, when or how it runs. Most are taken from torch's own
public lists, so that a name that nobody thought of is not allowed.
"""

import ast
import builtins
import collections
import importlib
import inspect
import types
import typing
from collections.abc import Iterable
from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.overrides import get_overridable_functions

from runner.torch_internals import FUNCTIONS, OpOverload, find_operator, schema
from runner.verify.guard.source.name_scopes import Scopes

_ATEN = "torch.ops.aten"
LOGGER = ModuleType("a logger")
_NO_IMPORT = object()
OPAQUE = object()
"""Stands for what a parent imports from its children's files."""
_PACKAGE_NAMESPACE, _PACKAGE_OPERATOR = object(), object()
"""Stand for `torch.ops.torchvision` and for what it holds."""
_PUBLIC = ("math", "cmath", "itertools", "numbers", "operator", "__future__", "collections.abc")
"""Modules whose public names are all allowed, except for `_REFUSED_NAMES`."""
_LISTED = (
    *("torch.nn.init", "torch.nn.utils.rnn", "torch.nn.utils.parametrizations", "torch.sparse"),
    *("torch.signal.windows", "torch.nested", "torch.types", "torch.functional"),
)
"""Modules whose names in `__all__` are allowed."""
_OVERRIDABLE = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
"""Modules whose functions are allowed that take a tensor and can be overridden."""
_ALLOWED_NAMES = {
    "torch": {
        *("Tensor", "Size", "Generator", "dtype", "device", "finfo", "iinfo", "layout"),
        *("no_grad", "enable_grad", "inference_mode", "autocast", "vmap", "memory_format"),
        *(
            "newaxis",
            "broadcast_shapes",
            "is_tensor",
            "unique",
            "unravel_index",
            "lu",
            "pca_lowrank",
        ),
        *("svd_lowrank", "is_floating_point", "is_complex"),
        *(f"{kind}Tensor" for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int")),
        *("BoolTensor", "ByteTensor"),
    },
    "torch.nn.functional": {
        *("sigmoid", "tanh", "hardsigmoid", "hardswish", "logsigmoid", "threshold", "threshold_"),
        *("relu_", "elu_", "celu_", "selu_", "rrelu_", "leaky_relu_", "hardtanh_"),
        *("upsample", "upsample_nearest", "upsample_bilinear"),
    },
    "torch.nn": {"Parameter", "Buffer"},
    "torch.nn.parameter": {"Parameter", "Buffer"},
    "torch.nn.utils": {"weight_norm", "spectral_norm"},
    "torch.amp": {"autocast"},
    "torch.func": {"vmap"},
    "typing": {"cast", "final", "overload"},
    "enum": {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "auto", "unique"},
    "abc": {"ABC", "abstractmethod"},
    "collections": {"OrderedDict", "defaultdict", "deque", "namedtuple", "Counter"},
    "copy": {"copy", "deepcopy"},
    "types": {"SimpleNamespace", "MappingProxyType", "ModuleType", "NoneType"},
    "dataclasses": {"dataclass", "field", "fields", "asdict", "astuple", "replace"},
    "contextlib": {"nullcontext"},
    "functools": {"partial", "partialmethod", "reduce", "wraps", "cached_property"},
    "warnings": {"warn"},
    "logging": {"DEBUG", "INFO", "WARNING", "ERROR", "getLogger"},
    LOGGER.__name__: {"debug", "info", "warning", "error", "critical"},
}
"""Maps a module to names in it that are allowed besides those that the lists above stand for."""
_OTHER_MODULES = ("torch.ops", _ATEN, "torch.signal", "torch.nn.modules", "typing_extensions")
_REFUSED_NAMES = {
    *("attrgetter", "methodcaller", "ForwardRef", "from_file", "get_device", "hash_tensor"),
    *(
        "is_",
        "is_not",
        "from_numpy",
        "frombuffer",
        "asarray",
        "cudnn_is_acceptable",
        "set_",
        "get_overloads",
        "mod",
        "imod",
    ),
}

BUILTINS = {
    *("abs", "all", "any", "bool", "callable", "classmethod", "complex", "dict", "divmod"),
    *("enumerate", "filter", "float", "int", "isinstance", "issubclass", "iter", "len", "list"),
    *("map", "max", "min", "next", "object", "pow", "property", "range", "reversed", "round"),
    *("slice", "sorted", "staticmethod", "sum", "super", "tuple", "zip", "NotImplemented"),
    *("Ellipsis", "True", "False", "None"),
}
EXCEPTIONS = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
TEXT_BUILTINS = {"str", "type", "repr", "set", "frozenset", "sorted", "print"}
"""Builtins that may be used in messages of errors, where nothing can read the text."""

LAYOUT_ATTRIBUTES = {
    *("is_contiguous", "stride", "storage_offset", "layout", "is_floating_point", "is_complex"),
    *("element_size", "itemsize", "nbytes", "is_sparse", "is_quantized", "type", "index"),
}
"""Attributes that describe how a tensor lies in memory: only errors and assertions may ask."""
_REFUSED_ATTRIBUTES = LAYOUT_ATTRIBUTES - {"type", "index", "stride"} | {
    *("apply_", "map_", "map2_", "numpy", "tofile", "set_", "storage", "untyped_storage"),
    *("storage_type", "data_ptr", "const_data_ptr", "share_memory_", "share_memory"),
    *("pin_memory", "record_stream", "requires_grad", "grad", "grad_fn", "grad_dtype"),
    *("retain_grad", "retains_grad", "backward", "output_nr", "get_device", "names", "volatile"),
    *("dim_order", "module_load", "reinforce", "hash_tensor", "extra_repr", "compile"),
    *("get_extra_state", "set_extra_state", "format", "format_map", "encode", "as_subclass"),
    *("dump_patches", "call_super_init", "to_mkldnn", "resize", "seed", "load_state_dict"),
    *("state_dict", "set_submodule", "to_empty", "zero_grad", "register", "translate"),
    *("maketrans", "to_bytes", "from_bytes", "hex", "fromhex"),
}
"""Public attributes that tell who runs a component, that give away memory or text, or that change
what others share, as `abc.ABC.register`."""
_ALLOWED_TYPES: tuple[object, ...] = (
    *(torch.Tensor, str, list, dict, tuple, int, float, complex, bool, range, slice, torch.Size),
    *(set, collections.deque, collections.Counter, collections.OrderedDict),
    *(torch.finfo(torch.float32), torch.iinfo(torch.int8), nn.utils.rnn.PackedSequence),
)
_OTHER_ATTRIBUTES = {
    *(
        "setter",
        "getter",
        "deleter",
        "name",
        "value",
        "running_mean",
        "running_var",
        "num_batches_tracked",
        "in_proj_weight",
    ),
    *("in_proj_bias", "out_proj", "parametrizations", "original", "original0", "original1"),
    *(
        f"{kind}_{of}_l{layer}{direction}"
        for kind in ("weight", "bias")
        for of in ("ih", "hh", "hr")
        for layer in range(8)
        for direction in ("", "_reverse")
    ),
}
DUNDERS = {"__init__", "__name__", "__call__", "__len__", "__getitem__"}
_DANGEROUS: tuple[object, ...] = (
    *(value for value in vars(types).values() if isinstance(value, type)),
    *(type, typing.ForwardRef("n"), typing.TypeVar("T"), typing.Any),
    *(torch.Tensor, nn.Module(), torch.no_grad(), torch.Generator, torch.UntypedStorage),
    torch.TypedStorage,
)
"""Objects with attributes that no file may ask for, even if it has attributes of these names."""


class NotAllowedError(Exception):
    """A component may not use the name of a module that `node` stands for."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node


@lru_cache
def allowed_attributes() -> frozenset[str]:
    """Return the attributes that a component may ask any value for."""
    names = set(_OTHER_ATTRIBUTES)
    modules = [cls for cls in vars(nn).values() if _is_module_class(cls)]
    results = [kind for kind in vars(torch.return_types).values() if isinstance(kind, type)]
    for kind in (*_ALLOWED_TYPES, *results, *modules):
        names.update(dir(kind))
    for cls in modules:
        names.update(inspect.signature(cls.__init__).parameters, getattr(cls, "__constants__", ()))
        names.update(name for base in cls.__mro__ for name in vars(base).get("__annotations__", ()))
    names = {n for n in names if not n.startswith(("_", "is_")) and not n.endswith(_HOOKS)}
    return frozenset(names - _REFUSED_ATTRIBUTES | {"is_integer"} | DUNDERS)


_HOOKS = ("_hook", "_hooks")


@lru_cache
def refused_attributes() -> frozenset[str]:
    """Return the attributes that a component may not ask for even if it defines them."""
    names = {name for value in _DANGEROUS for name in dir(value)}
    names |= {name for name in dir(OpOverload) if name.startswith("_")}
    return frozenset((names | _REFUSED_ATTRIBUTES) - allowed_attributes())


def _is_module_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, nn.Module)


@lru_cache
def _import_allowed(name: str) -> ModuleType | None:
    """Return a module that a component may use; None if it may not, or if it is not installed."""
    known = {*_PUBLIC, *_LISTED, *_OVERRIDABLE, *_ALLOWED_NAMES, *_OTHER_MODULES}
    if name not in known and not name.startswith("torch.nn.modules."):
        return None
    try:
        return torch.ops.aten if name == _ATEN else importlib.import_module(name)
    except ImportError:
        return None


def _is_allowed(module: ModuleType, name: str, value: object) -> bool:
    """Return whether a component may use an object by its name in a module."""
    owner = module.__name__
    if name in _REFUSED_NAMES or (name.startswith("_") and owner not in {"torch", _ATEN}):
        return False
    if isinstance(value, ModuleType):
        return owner.startswith("torch") and _import_allowed(value.__name__) is value
    if owner == _ATEN:
        overloads = value.overloads() if hasattr(value, "overloads") else ()
        return any(_computes_tensors(getattr(value, overload)) for overload in overloads)
    if owner.startswith("torch.nn") and _is_module_class(value):
        return True
    if name in _ALLOWED_NAMES.get(owner, ()) or owner in _PUBLIC:
        return True
    if owner in _LISTED:
        return name in module.__all__
    if owner.startswith("typing"):
        return name[0].isupper()
    if owner not in _OVERRIDABLE:
        return False
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format | float):
        return True
    if name.startswith("_"):
        return name in FUNCTIONS and _gives_tensors(name)
    overridable: dict[object, list[object]] = _overridable_functions()
    known = [*overridable[module], *(overridable[torch.functional] if owner == "torch" else ())]
    is_known = name in FUNCTIONS or any(value is function for function in known)
    return is_known and not name.startswith("is_")


@lru_cache
def _overridable_functions() -> dict[object, list[object]]:
    return dict(get_overridable_functions())


def _gives_tensors(name: str) -> bool:
    operator = find_operator(f"aten::{name}")
    returns = schema(operator).returns if operator else ()
    return bool(returns) and all(str(value.type) == "Tensor" for value in returns)


def _computes_tensors(operator: Any) -> bool:
    """Return whether an operator gives or writes tensors, and is no question such as `_version`."""
    returns, arguments = schema(operator).returns, schema(operator).arguments
    writes = any(argument.is_out or argument.alias_info for argument in arguments)
    return any("Tensor" in str(value.type) for value in returns) or (not returns and writes)


class ImportedNames:
    """Tells what the names of a file stand for that come from modules."""

    def __init__(self, scopes: Scopes, opaque_packages: Iterable[str]) -> None:
        self._scopes = scopes
        self._opaque = frozenset(opaque_packages)
        self._operator_packages = {
            binding.name.rpartition(".")[2]
            for bindings in scopes.file.bindings.values()
            for binding in bindings
            if isinstance(binding, ast.alias) and isinstance(scopes.parents[binding], ast.Import)
        }
        """Names that may follow `torch.ops.`: of packages that the file imports."""
        self._imports: dict[int, object] = {}
        """Maps the id() of a name's bindings to the result of `_find_import`."""

    def value(self, node: ast.AST, *, renamed: bool = True) -> object:
        """Return what `torch.nn.functional` stands for; None if it comes from no module.

        `renamed`: follow an assignment such as `F = nn.functional`.

        Raises:
            NotAllowedError: a component may not use this name of a module.
        """
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value, renamed=renamed)
            if owner is torch.ops and node.attr in self._operator_packages:
                return _PACKAGE_NAMESPACE
            if owner is _PACKAGE_NAMESPACE:
                return _PACKAGE_OPERATOR
            if owner is _PACKAGE_OPERATOR and not hasattr(type(torch.ops.aten.add), node.attr):
                return owner  # One of its overloads.
            if isinstance(owner, ModuleType):
                value = getattr(owner, node.attr, None)
                if not _is_allowed(owner, node.attr, value):
                    raise NotAllowedError(node)
                return value
            overloads = getattr(owner, "overloads", None)
            if not overloads or node.attr not in overloads():
                return None
            if not _computes_tensors(getattr(owner, node.attr)):
                raise NotAllowedError(node)
            return owner
        found = self._scopes.find(node) if isinstance(node, ast.Name) else None
        if found is None:
            return None
        bindings = found[1]
        if id(bindings) not in self._imports:
            self._imports[id(bindings)] = self._find_import(bindings)
        value = self._imports[id(bindings)]
        if value is None:
            raise NotAllowedError(node)
        if value is not _NO_IMPORT:
            return value
        return self._renamed(bindings[0]) if renamed and len(bindings) == 1 else None

    def try_value(self, node: ast.AST) -> object:
        """Return what an expression stands for; None if it comes from no module or is refused."""
        try:
            return self.value(node)
        except NotAllowedError:
            return None

    def is_renaming(self, node: ast.AST) -> bool:
        """Return whether a node only gives a module a new name, as in `F = nn.functional`."""
        parent = self._scopes.parents.get(node)
        is_plain = isinstance(parent, ast.Assign) and len(parent.targets) == 1
        return is_plain and self._scopes.definition(parent.targets[0]) is parent.targets[0]  # type: ignore[union-attr]

    def _renamed(self, binding: ast.AST) -> object:
        parent = self._scopes.parents.get(binding)
        if not isinstance(parent, ast.Assign) or len(parent.targets) > 1:
            return None
        if is_get_logger(parent.value):
            return LOGGER
        value = self.value(parent.value, renamed=False)
        return value if isinstance(value, ModuleType) else None

    def _find_import(self, bindings: list[ast.AST]) -> object:
        """Return what all bindings of a name import.

        `_NO_IMPORT` if none is an import; None if they differ, or if the import is not allowed.
        """
        values = [self._imported(b) for b in bindings if isinstance(b, ast.alias)]
        if not values:
            return _NO_IMPORT
        is_one = len(values) == len(bindings) and all(value is values[0] for value in values)
        return values[0] if is_one else None

    def _imported(self, alias: ast.alias) -> object:
        """Return what an import gives a name; None if it is not allowed."""
        statement = self._scopes.parents[alias]
        source = statement.module or "" if isinstance(statement, ast.ImportFrom) else alias.name
        if source.partition(".")[0] in self._opaque:
            return OPAQUE
        if isinstance(statement, ast.Import):
            source = source if alias.asname else source.partition(".")[0]
        elif statement.level:  # type: ignore[attr-defined]
            return None
        module = _import_allowed(source)
        if module is None or isinstance(statement, ast.Import):
            return module
        value = getattr(module, alias.name, None)
        return value if value is not None and _is_allowed(module, alias.name, value) else None


def is_get_logger(node: ast.AST) -> bool:
    """Return whether an expression is `logging.getLogger(...)`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger"
