"""Finds source that makes a component depend on more than its inputs and weights.

A component that asks where, when or how it runs could be right for a judge and wrong for its users.
Other modules watch and compare what runs; this one reads the source. It lists what a component may
say (statements, names, attributes, ways to make text and to decide) and refuses everything else.
"""

import abc
import ast
import builtins
import contextlib
import dataclasses
import enum
import functools
import typing
from collections.abc import Iterable, Iterator
from types import ModuleType

import torch
from torch import nn

from runner.verify.gates.parent_source import ALLOWED_PACKAGES, root_name
from runner.verify.guard.source.allowed_names import (
    BUILTINS,
    EXCEPTIONS,
    LAYOUT_ATTRIBUTES,
    TEXT_BUILTINS,
    ImportedNames,
    NotAllowedError,
    allowed_attributes,
    is_get_logger,
    refused_attributes,
)
from runner.verify.guard.source.counted_texts import CountedTexts
from runner.verify.guard.source.kind_decisions import (
    KindDecisions,
    find_mode_decision,
    is_device_type,
    names_a_device,
)
from runner.verify.guard.source.name_scopes import Scopes
from runner.verify.guard.source.side_effects import TEXT_METHODS, SideEffects
from runner.verify.guard.source.statement_roles import (
    EXPRESSIONS,
    TEST_FUNCTIONS,
    StatementRoles,
    component_code,
    drawing_functions,
    is_main,
)

_STATEMENTS = (
    *(ast.FunctionDef, ast.ClassDef, ast.Return, ast.Delete, ast.Assign, ast.AugAssign),
    *(ast.AnnAssign, ast.For, ast.While, ast.If, ast.With, ast.Match, ast.Raise, ast.Assert),
    *(ast.Import, ast.ImportFrom, ast.Expr, ast.Pass, ast.Break, ast.Continue),
)
_CONTEXTS: tuple[object, ...] = (
    *(torch.no_grad, torch.enable_grad, torch.inference_mode, torch.autocast, torch.amp.autocast),
    contextlib.nullcontext,
)
"""Contexts that a `with` may enter."""
_AUTOCASTS = (torch.autocast, torch.amp.autocast)
_DECORATORS: tuple[object, ...] = (
    *(torch.no_grad, torch.enable_grad, torch.inference_mode, dataclasses.dataclass, enum.unique),
    *(functools.cached_property, functools.wraps, abc.abstractmethod, typing.final),
    typing.overload,
)
_BUILTIN_DECORATORS = {"staticmethod", "classmethod", "property"}
_ASSIGNABLE_DUNDERS = {"__all__", "__version__", "__author__", "__slots__", "__constants__"}
"""Python's own names that a file may assign."""
_CLASS_FIELDS = {"_version", "__constants__", "__slots__", "__doc__", "forward"}
"""Names of nn.Module that a class may assign."""
_MODULES_THAT_ACT = {"antigravity", "this", "idlelib", "turtledemo", "test", "__phello__"}
_MODULES_THAT_ACT |= {"__hello__"}
_OWN_METHODS = {
    *("__init__", "forward", "reset_parameters", "__len__", "__iter__", "__getitem__"),
    *("__contains__", "__post_init__", "__enter__", "__exit__", *TEXT_METHODS),
}
"""Methods of nn.Module, or Python's own, that a class may define."""
_OWN_NAMES = {"names", "layout", "seed", "grad"}
"""Attributes of tensors that a model may have as well, for values of its own."""
_CLASS_OF_A_CHILD = "Model"
_LOADING = {"exec_module", "run_path"}
"""Attributes that load a file by its path."""
_NAMING_METHODS = {"register_buffer", "register_parameter", "add_module", "register_module"}


def surroundings_fault(tree: ast.Module, *, kernel: bool, seeds: bool = False) -> str | None:
    """Return what a component asks or changes besides its inputs and weights, or None.

    `seeds`: it may seed torch's generator, as the original does. Its tests may ask anything:
    `run_tests`, `main`, and functions that only these call.
    """
    return _Reading(tree, kernel=kernel, seeds=seeds).fault(tree.body)


def step_parent_fault(tree: ast.Module) -> str | None:
    """Return what the file of a step's parent asks or changes, or None.

    It may load files by path into names that only its tests use.
    """
    calls = (part for part in tree.body if isinstance(part, ast.Expr))
    call = next((part for part in calls if not isinstance(part.value, ast.Constant)), None)
    if call is not None:
        return _format_fault("does something when it is imported", call)
    reading = _Reading(tree, kernel=True, children={"children"})
    code = (n for n in tree.body if getattr(n, "name", None) and n.name not in TEST_FUNCTIONS)  # type: ignore[attr-defined]
    used = {node.id for part in code for node in ast.walk(part) if isinstance(node, ast.Name)}
    return reading.fault(
        [
            part
            for part in tree.body
            if not (isinstance(part, ast.Assign) and reading.roles.is_loader(part))
            or not used.isdisjoint(n.id for n in ast.walk(part) if isinstance(n, ast.Name))
        ]
    )


def composed_fault(tree: ast.Module) -> str | None:
    """Return what the composed model's file asks or changes, or None.

    It may load the kernels' files by path, in the ways that `_is_loader` knows.
    """
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    sources = {alias.name for n in imports if isinstance(n, ast.Import) for alias in n.names}
    sources |= {n.module or "" for n in imports if isinstance(n, ast.ImportFrom)}
    packages = {source.partition(".")[0] for source in sources} - ALLOWED_PACKAGES
    reading = _Reading(tree, kernel=True, children=packages)
    body = [part for part in tree.body if not reading.roles.is_loader(part)]
    fault = reading.fault(body)
    for part in component_code(ast.Module(body, [])):
        loads = any(getattr(node, "attr", "") in _LOADING for node in ast.walk(part))
        if fault and loads and (work := reading.roles.find_other_work(part)):
            line = getattr(work, "lineno", part.lineno)
            text = ast.unparse(work).partition("\n")[0]
            return f"loads a file and does something else there: `{text}` (line {line})"
    return fault


def seeds_generators(tree: ast.Module) -> bool:
    """Return whether a file seeds torch's generator anywhere."""
    return any(isinstance(n, ast.Attribute) and n.attr == "manual_seed" for n in ast.walk(tree))


class _Reading:
    """Reads the code of one file; `children`: packages that hold a parent's components."""

    def __init__(
        self,
        tree: ast.Module,
        *,
        kernel: bool,
        seeds: bool = False,
        children: Iterable[str] | None = None,
    ) -> None:
        self._tree, self._kernel, self._seeds = tree, kernel, seeds
        self._is_parent = children is not None
        self._scopes = Scopes(tree)
        self._names = ImportedNames(self._scopes, children or ())
        self._decisions = KindDecisions(self._scopes, self._names, kernel=kernel)
        self._counted = CountedTexts(self._scopes)
        self.roles = StatementRoles(self._scopes, self._names)
        methods = [
            method
            for cls in ast.walk(tree)
            if isinstance(cls, ast.ClassDef)
            for method in _statements(cls.body)
            if isinstance(method, ast.FunctionDef)
        ]
        self._effects = SideEffects(self._scopes, self._names, methods)
        self._stored = set(_defined_attributes(tree))
        """Names of attributes that the file gives to its objects."""
        self._attributes = {m.name for m in methods} | self._stored
        self._texts: set[str] = set()
        """All texts in the file, which getattr() may take for names."""
        self._uses: dict[tuple[type, str], list[ast.expr]] = {}
        """Maps names and attributes to the nodes that read them."""
        self._searched: dict[tuple[type, str], bool] = {}
        """Maps names and attributes to whether all nodes that read them only search them."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                self._texts.add(str(node.value))
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                self._uses.setdefault((type(node), _name_of(node)), []).append(node)
        self._draws = False
        self._messages: set[ast.AST] = set()
        """Parts of errors and assertions: they may ask, because nothing can read what they say."""

    def fault(self, body: list[ast.stmt]) -> str | None:
        """Return the first fault of these statements, or None."""
        try_node: ast.AST | None = None
        try:
            for main in body:
                if is_main(main) and (fault := self.roles.main_fault(main)):
                    return fault
            for name, bindings in self._scopes.file.bindings.items():
                is_definition = any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in bindings)
                if is_definition and len(bindings) > 1:
                    return _format_fault(f"uses {name} for two things", bindings[1])
                if _is_dunder(name) and name not in _ASSIGNABLE_DUNDERS:
                    return _format_fault(
                        f"defines {name}, which Python uses by itself", bindings[0]
                    )
            drawing = drawing_functions(self._tree)
            for part in component_code(ast.Module(body, [])):
                if is_main(part):
                    continue
                self._draws = self._seeds or getattr(part, "name", "") in drawing
                self._messages = {
                    n for text in self._effects.message_parts(part) for n in ast.walk(text)
                }
                # Names first: `open` says more than the `read` of `open(...).read`.
                nodes = sorted(ast.walk(part), key=lambda node: not isinstance(node, ast.Name))
                for node in nodes:
                    if isinstance(node, ast.Try | ast.TryStar):
                        try_node = try_node or node  # A fault in the body of the `try` says more.
                    elif description := self._node_fault(node):
                        return _format_fault(description, node)
                if self._kernel and (use := find_mode_decision(part)):
                    return _format_fault("decides by self.training what it computes", use)
        except RecursionError:
            return "is nested too deeply to be read"
        return _format_fault("uses try", try_node) if try_node else None

    def _node_fault(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.stmt):
            return self._statement_fault(node)
        if not isinstance(node, ast.expr):
            return None
        kind = type(node).__name__.lower()
        if not isinstance(node, EXPRESSIONS):
            return f"uses {kind}"
        if isinstance(node, ast.Name | ast.Attribute):
            return self._module_fault(node) or (
                self._name_fault(node)
                if isinstance(node, ast.Name)
                else self._attribute_fault(node)
            )
        if node in self._messages:
            return "refuses a kind of device" if names_a_device(node) else None
        if isinstance(node, ast.Set) and not self._is_searched(node):
            return "uses a set, whose order is another in each process, except after `in`,"
        if isinstance(node, ast.JoinedStr) and not self._counted.is_counted(node):
            return "uses the text of a value"
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            return "uses bytes"
        if isinstance(node, ast.Constant) and "%" in str(node.value):
            is_docstring = isinstance(self._scopes.parents[node], ast.Expr)
            return None if is_docstring else "uses % in a text"
        if isinstance(node, ast.Call):
            return self._call_fault(node)
        return self._decisions.fault(node, self._messages)

    # --- statements -------------------------------------------------------------------------------

    def _statement_fault(self, node: ast.stmt) -> str | None:
        if not isinstance(node, _STATEMENTS):
            return f"uses {type(node).__name__.lower()}"
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                if not self._is_decorator(decorator):
                    return f"uses @{ast.unparse(decorator)}"
        if isinstance(node, ast.ClassDef):
            if node.keywords:
                return f"uses {node.keywords[0].arg} for a class"
            if method := _find_replaced_method(node):
                return f"replaces nn.Module's {method}"
        if isinstance(node, ast.With):
            for item in node.items:
                if self._is_autocast_of_one_device(item.context_expr):
                    return f"uses {ast.unparse(item)}, which casts on one kind of device alone,"
                is_known = self._calls_one_of(item.context_expr, _CONTEXTS)
                is_plain = is_known and not item.optional_vars
                if not is_plain and not self._calls_own_context(item.context_expr):
                    return f"uses with {ast.unparse(item)}"
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return "uses import *"
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None), *(alias.name for alias in node.names)]
            roots = {str(module).partition(".")[0] for module in modules}
            if found := roots & _MODULES_THAT_ACT:
                return f"imports {min(found)}, which does something when it is imported,"
        if isinstance(node, ast.Match):
            patterns = [n for n in ast.walk(node) if isinstance(n, ast.MatchClass)]
            if any(pattern.patterns or pattern.kwd_attrs for pattern in patterns):
                return "uses match with attributes"
        if isinstance(node, ast.Assert) and (effect := self._effects.find_effect(node.test)):
            return f"uses {ast.unparse(effect)} in an assertion"
        return self._decisions.fault(node, self._messages)

    def _is_decorator(self, decorator: ast.expr) -> bool:
        if self._calls_one_of(decorator, _DECORATORS):
            return True
        if isinstance(decorator, ast.Attribute):  # @size.setter
            return decorator.attr in {"setter", "getter", "deleter"}
        if not isinstance(decorator, ast.Name):
            return False
        is_builtin = self._scopes.find(decorator) is None and decorator.id in _BUILTIN_DECORATORS
        wraps_nothing = self._names.value(decorator) is not functools.wraps
        return is_builtin or (self._names.value(decorator) in _DECORATORS and wraps_nothing)

    def _calls_one_of(self, node: ast.expr, functions: tuple[object, ...]) -> bool:
        if not isinstance(node, ast.Call):
            return False
        value = self._names.try_value(node.func)
        is_wraps = value is functools.wraps and (len(node.args) != 1 or node.keywords)
        return any(value is function for function in functions) and not is_wraps

    def _is_autocast_of_one_device(self, node: ast.expr) -> bool:
        """Return whether it is `torch.autocast` for anything but the device of a value."""
        if not isinstance(node, ast.Call) or not self._calls_one_of(node, _AUTOCASTS):
            return False
        named = [k.value for k in node.keywords if k.arg == "device_type"]
        return not all(map(is_device_type, [*node.args[:1], *named] or [node]))

    def _calls_own_context(self, node: ast.expr) -> bool:
        """Return whether it is a call of a class of the file that is a context manager."""
        cls = self._scopes.definition(node.func) if isinstance(node, ast.Call) else None
        lines = cls.body if isinstance(cls, ast.ClassDef) else []
        methods = {line.name for line in lines if isinstance(line, ast.FunctionDef)}
        return {"__enter__", "__exit__"} <= methods

    # --- names and attributes ---------------------------------------------------------------------

    def _module_fault(self, node: ast.Name | ast.Attribute) -> str | None:
        """Return the fault of a name that comes from a module, or None."""
        parent = self._scopes.parents[node]
        if not isinstance(node.ctx, ast.Load):
            root = _root(node)
            if isinstance(node, ast.Attribute) and root and self._names.try_value(root) is not None:
                return f"uses {ast.unparse(node)} = ..."
            return None
        try:
            value = self._names.value(node)
        except NotAllowedError as error:
            text = ast.unparse(error.node)
            is_drawing = text == "random" or text.endswith(".manual_seed")
            return None if self._draws and is_drawing else f"uses {text}"
        if isinstance(parent, ast.Attribute):
            return None
        if isinstance(value, ModuleType) and not self._names.is_renaming(node):
            return f"uses {ast.unparse(node)} as a value"
        is_type = any(value is kind for kind in (torch.Tensor, torch.device, ModuleType))
        if is_type and not self._names_type(node):
            return f"uses {ast.unparse(node)} as a value"
        if value is functools.wraps and not self._is_decorated_by(parent):
            return "uses functools.wraps as a value"
        return None

    def _names_type(self, node: ast.expr) -> bool:
        """Return whether a class only names a type: in an annotation, or in isinstance()."""
        child: ast.AST = node
        for parent in self._ancestors(node):
            if isinstance(parent, ast.Call):
                name = parent.func.id if isinstance(parent.func, ast.Name) else ""
                return parent.func is child or name in {"isinstance", "issubclass", "cast"}
            if isinstance(parent, ast.arg | ast.FunctionDef):
                return True
            if isinstance(parent, ast.AnnAssign):
                return child is parent.annotation
            if isinstance(parent, ast.Assign):  # Tensor = torch.Tensor
                is_top = isinstance(self._scopes.parents[parent], ast.Module)
                return is_top and ast.unparse(parent.targets[0]) == "Tensor" and child is node
            if isinstance(parent, ast.Subscript):
                return child is parent.slice
            child = parent
        return False

    def _ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self._scopes.parents.get(node)) is not None:
            yield parent
            node = parent

    def _is_decorated_by(self, call: ast.AST) -> bool:
        definition = self._scopes.parents.get(call)
        return isinstance(definition, ast.FunctionDef) and call in definition.decorator_list

    def _name_fault(self, node: ast.Name) -> str | None:
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            is_own = name not in _ASSIGNABLE_DUNDERS and _is_dunder(name)
            return f"uses {name} = ..." if is_own else None
        if name in TEXT_METHODS:
            return f"uses {name}"
        if name.startswith("__") and not name.endswith("__"):
            return f"uses {name}, which means another name inside a class,"
        found = self._scopes.find(node)
        if found and found[0].is_function:
            return None
        if _is_dunder(name):
            logs = is_get_logger(self._scopes.parents[node])
            return None if logs else f"uses {name}"
        if found or name in BUILTINS | EXCEPTIONS:
            return None
        if name not in vars(builtins):
            hints = self._is_hint(node)  # Python evaluates it nowhere, or reports it.
            return None if hints else f"uses {name}, which the file defines nowhere,"
        return None if self._may_use_builtin(node) else f"uses {name}"

    def _is_hint(self, node: ast.AST) -> bool:
        """Return whether an expression is part of a type hint."""
        child = node
        for parent in self._ancestors(node):
            if isinstance(parent, ast.arg | ast.AnnAssign):
                return child is parent.annotation
            if isinstance(parent, ast.FunctionDef):
                return child is parent.returns
            child = parent
        return False

    def _may_use_builtin(self, node: ast.Name) -> bool:
        """Return whether a builtin may be used here that may not be used everywhere."""
        call, name = self._scopes.parents[node], node.id
        if node in self._messages:
            return name in TEXT_BUILTINS
        if not isinstance(call, ast.Call) or call.func is not node:
            return name in {"str", "set", "frozenset", "type"} and self._names_type(node)
        if name == "print":
            return all(keyword.arg in {"end", "sep", "flush"} for keyword in call.keywords)
        if name in {"set", "frozenset"}:
            return self._is_searched(call)
        if name == "type":
            return len(call.args) == 1 and not call.keywords and self._is_compared(call)
        if name == "str":
            return all(map(self._counted.is_counted, call.args)) and not call.keywords
        if name == "setattr" and len(call.args) == 3:
            is_own = ast.unparse(call.args[0]) == "self" and isinstance(call.args[1], ast.JoinedStr)
            return is_own and self._is_attribute_name(call.args[1])
        if name in {"getattr", "hasattr"} and len(call.args) > 1:
            if self._is_parent and ast.unparse(call.args[1]) == f"'{_CLASS_OF_A_CHILD}'":
                return True
            return root_name(call.args[0]) == "self" and self._is_attribute_name(call.args[1])
        return False

    def _is_searched(self, node: ast.expr) -> bool:
        """Return whether a set is only searched: used after `in`, counted or sorted."""
        parent = self._scopes.parents[node]
        if isinstance(parent, ast.Compare):
            return True
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            is_builtin = self._scopes.find(parent.func) is None
            return is_builtin and parent.func.id in {"len", "sorted", "bool"}
        if isinstance(node, ast.Name | ast.Attribute) or not isinstance(parent, ast.Assign):
            return False
        target = parent.targets[0]
        if isinstance(target, ast.Name):
            found = self._scopes.find(target)
            is_private = found is not None and not isinstance(found[0].node, ast.ClassDef)
        else:
            text = target.attr if isinstance(target, ast.Attribute) else ""
            is_private = root_name(target) == "self" and text not in self._texts
        key = type(target), _name_of(target)
        if key not in self._searched:
            self._searched[key] = all(map(self._is_searched, self._uses.get(key, [])))
        return len(parent.targets) == 1 and is_private and self._searched[key]

    def _is_attribute_name(self, name: ast.expr) -> bool:
        """Return whether an expression is an allowed attribute's name, or like f"block_{n}"."""
        if isinstance(name, ast.Constant):
            text = str(name.value)
            return text != "training" and self._is_attribute(text)
        parts = name.values if isinstance(name, ast.JoinedStr) else []
        begins = bool(parts) and isinstance(parts[0], ast.Constant)
        names = [n for n in ast.walk(name) if isinstance(n, ast.Name)]
        counts = all(map(self._counted.is_number_counter, names))  # A text could complete any name.
        return begins and len(parts) > 1 and counts and self._counted.is_counted(name)

    def _is_attribute(self, name: str) -> bool:
        """Return whether a component may ask a value for an attribute."""
        if name in refused_attributes():
            return False
        return name in self._attributes or name in allowed_attributes()

    def _is_compared(self, type_call: ast.Call) -> bool:
        """Return whether `type(x)` is compared, or is the model's own class, asked for a value."""
        parent = self._scopes.parents[type_call]
        is_own = isinstance(parent, ast.Attribute) and ast.unparse(type_call.args[0]) == "self"
        return is_own or isinstance(parent, ast.Compare)

    def _attribute_fault(self, node: ast.Attribute) -> str | None:
        name, parent = node.attr, self._scopes.parents[node]
        if not isinstance(node.ctx, ast.Load):
            return self._store_fault(node)
        if self._names.try_value(node) is not None or isinstance(
            self._names.try_value(node.value), ModuleType
        ):
            return None
        is_called = isinstance(parent, ast.Call) and parent.func is node
        if name in _OWN_NAMES & self._stored and ast.unparse(node.value) == "self":
            return f"uses {name}()" if is_called else None
        if node in self._messages and name in LAYOUT_ATTRIBUTES | {"format", "__class__"}:
            return None
        if self._draws and (name == "manual_seed" or root_name(node) == "random"):
            return None
        if name in {"type", "index"} & self._stored and ast.unparse(node.value) == "self":
            return None
        if name in {"type", "index"}:
            is_call = isinstance(parent, ast.Call) and parent.func is node and bool(parent.args)
            call = self._scopes.parents[parent] if isinstance(parent, ast.keyword) else parent
            names_device = isinstance(call, ast.Call) and self._calls_one_of(call, _CONTEXTS)
            if is_call and name == "type" and not self._is_kind(parent.args[0]):  # type: ignore[attr-defined]
                return f"uses {ast.unparse(parent)}, which may be a text (cast with .to(dtype)),"
            return None if is_call or names_device else f"uses {name}"
        if name == "stride":
            is_call = isinstance(parent, ast.Call) and parent.func is node
            return f"uses {name}" if is_call or root_name(node) != "self" else None
        if self._is_parent and name == _CLASS_OF_A_CHILD:
            return None
        is_of_child = self._is_parent and root_name(node) == "self" and not name.startswith("_")
        if self._is_attribute(name) or (is_of_child and name not in refused_attributes()):
            return None
        return f"uses {name}"

    def _is_kind(self, node: ast.expr) -> bool:
        """Return whether an expression is a dtype of torch, the name of one, or a value's dtype."""
        is_name = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_name or isinstance(self._names.try_value(node), torch.dtype | type):
            return True
        is_dtype = isinstance(node, ast.Attribute) and node.attr == "dtype"
        return is_dtype and "dtype" not in self._attributes

    def _store_fault(self, node: ast.Attribute) -> str | None:
        """Return the fault of an assignment to an attribute, or None."""
        name, root = node.attr, _root(node)
        found = self._scopes.find(root) if root else None
        if name.startswith("__") or root is None or found is None or not found[0].is_function:
            return f"uses {ast.unparse(node)} = ..."
        is_free = name in _OWN_NAMES and isinstance(node.value, ast.Name) and root.id == "self"
        if name in refused_attributes() - {"requires_grad"} and not is_free:
            return f"uses {name} = ..."
        binding = self._scopes.definition(root)
        made = self._scopes.parents.get(binding) if binding else None
        is_made = isinstance(made, ast.Assign) and self._makes_object(made.value)
        is_made &= isinstance(node.value, ast.Name)
        if not is_made and not (isinstance(binding, ast.arg) and root.id == "self"):
            return f"uses {ast.unparse(node)} = ..."
        is_own = root.id == "self" and isinstance(node.value, ast.Name)
        owners: tuple[type, ...] = (nn.Module,) if is_own else (nn.Module, torch.Tensor)
        if name == "forward" or any(callable(getattr(owner, name, None)) for owner in owners):
            return f"replaces nn.Module's {name}"
        return f"uses {ast.unparse(node)} = ..." if name.startswith("_") and not is_own else None

    def _makes_object(self, value: ast.expr) -> bool:
        """Return whether an expression calls a class of the file, or one that it imports."""
        if not isinstance(value, ast.Call):
            return False
        is_own = isinstance(self._scopes.definition(value.func), ast.ClassDef)
        return is_own or isinstance(self._names.try_value(value.func), type)

    # --- calls ------------------------------------------------------------------------------------

    def _call_fault(self, call: ast.Call) -> str | None:
        if isinstance(call.func, ast.Name) and call.func.id in {"isinstance", "issubclass"}:
            names = {ast.unparse(node).rpartition(".")[2] for node in ast.walk(call)}
            if kinds := names & {"Parameter", "Buffer"}:
                return f"decides by {min(kinds)} what it computes"
        if self._names.try_value(call.func) is torch.device and not self._draws:
            return "uses torch.device(...) instead of the device of a tensor"
        if self._kernel and isinstance(call.func, ast.Attribute):
            chooses = call.func.attr in {"get", "index", "count", "pop", "setdefault"}
            if chooses and any(map(self._decisions.asks_kind, call.args)):
                return "decides by a dtype or a device what it computes"
        return None


def _defined_attributes(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes that a file's objects have because the file gives them these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            fields = [n for line in _statements(node.body) for n in _bound_names(line)]
            yield from fields
        elif isinstance(node, ast.Call):
            function = ast.unparse(node.func).rpartition(".")[2]
            texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
            if function in _NAMING_METHODS:
                yield from (text for text in texts[:1] if isinstance(text, str))
            elif function == "namedtuple":
                yield from (name for text in texts for name in str(text).replace(",", " ").split())
            elif function == "SimpleNamespace":
                yield from (keyword.arg for keyword in node.keywords if keyword.arg)


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _root(node: ast.expr) -> ast.Name | None:
    """Return the name at the left end of `a.b[0].c`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _format_fault(description: str, node: ast.AST) -> str:
    line = getattr(node, "lineno", 0)
    reason = "a component computes from its inputs and weights alone"
    return f"{description} (line {line}) outside of its tests; {reason}"


def _hides_errors(method: ast.FunctionDef) -> bool:
    """Return whether it is an `__exit__` that returns something: True hides an error."""
    returns = (node for node in ast.walk(method) if isinstance(node, ast.Return))
    return method.name == "__exit__" and any(node.value for node in returns)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _name_of(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _find_replaced_method(cls: ast.ClassDef) -> str | None:
    """Return a name of nn.Module that a class may not replace but does, or None."""
    for node in _statements(cls.body):
        if isinstance(node, ast.ClassDef):
            continue  # A nested class is read on its own.
        if isinstance(node, ast.FunctionDef):
            is_reserved = hasattr(nn.Module, node.name) or node.name.startswith("__")
            is_reserved &= node.name != "__call__" or bool(cls.bases)
            if is_reserved and (node.name not in _OWN_METHODS or _hides_errors(node)):
                return node.name
        else:
            for inner in ast.walk(node):
                is_stored = isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
                if is_stored and hasattr(nn.Module, inner.id) and inner.id not in _CLASS_FIELDS:  # type: ignore[attr-defined]
                    return str(inner.id)  # type: ignore[attr-defined]
    return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a class, including those inside an `if`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement
            continue
        inner = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
        yield from _statements(inner) if inner else [statement]
