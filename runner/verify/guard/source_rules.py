"""Finds source that makes a component depend on more than its inputs and weights.

A component that asks where, when or how it runs could be right for a judge and wrong for its users.
Other modules watch and compare what runs; this one reads the source for what it could ask.
"""

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from torch import nn

from runner.verify.gates.parent_source import root_name
from runner.verify.guard.allowed_modules import ImportedModules, local_variables

_TEST_FUNCTIONS = {"run_tests", "main"}
"""Functions that may ask anything, because no component calls them."""
_DRAWING_FUNCTIONS = {"get_inputs", "get_init_inputs"}
_INTERFACE_FUNCTIONS = {*_DRAWING_FUNCTIONS, "get_expected_output_shape", "get_input_kwargs"}
_FORBIDDEN_BUILTINS = {
    *("exec", "eval", "globals", "locals", "open", "compile", "vars", "setattr", "delattr"),
    "getattr",
    *("hash", "id", "repr", "ascii", "dir", "breakpoint", "__name__"),
}
_FORBIDDEN_ATTRIBUTES = {
    *("f_back", "f_globals", "f_locals", "f_code", "gi_frame", "cr_frame", "tb_frame", "tb_next"),
    *("co_filename", "requires_grad", "is_leaf", "grad_fn", "is_inference", "is_meta", "data_ptr"),
    *("untyped_storage", "storage", "_version", "_cdata", "_base", "numpy", "__array__"),
    *("is_cuda", "is_cpu", "is_mps", "is_xpu", "get_device", "is_shared", "is_pinned"),
    *("share_memory_", "attrgetter", "methodcaller", "get_type_hints", "ForwardRef", "format_map"),
    *("cache_info", "from_file", "seed", "initial_seed", "get_state"),
}
"""Attributes that no object may be asked for."""
_HARMLESS_DUNDERS = {
    "__init__",
    "__class__",
    "__name__",
    "__call__",
    "__len__",
    "__getitem__",
    "__doc__",
}
_ASSIGNABLE_DUNDERS = {
    "__all__",
    "__version__",
    "__author__",
    "__slots__",
    "__constants__",
    "__annotations__",
}
"""Python's own names that a file may assign."""
_MAIN_CONDITIONS = {"__name__ == '__main__'", "'__main__' == __name__"}
_ATTRIBUTE_FIELD = re.compile(r"\{[^{}]*[.\[]")
"""A field in a format string that looks up an attribute: `{0.training}`."""
_CLASS_FIELDS = {"_version", "__constants__", "__annotations__", "__slots__", "__doc__", "forward"}
"""Names of nn.Module that a class may assign."""
_MODE_FUNCTIONS = ("dropout", "alpha_dropout", "feature_", "batch_norm", "instance_norm", "rrelu")
"""Beginnings of names of functions that take whether a model is in training mode."""
_OWN_METHODS = {
    *("__init__", "forward", "extra_repr", "reset_parameters", "__repr__", "__str__", "__len__"),
    *("__iter__", "__getitem__", "__contains__", "__post_init__", "__enter__", "__exit__"),
    *("__eq__", "__hash__", "__next__"),
}
"""Methods of nn.Module, or Python's own, that a class may define."""


def surroundings_fault(tree: ast.Module, *, kernel: bool, seeds: bool = False) -> str | None:
    """Return what a component asks or changes besides its inputs and weights, or None.

    `seeds`: it may seed torch's generator, as the original does. Its tests may ask anything:
    `run_tests`, `main`, functions that only these call, and code under `if __name__ == "__main__"`.
    """
    modules, used_functions = ImportedModules.from_tree(tree), _used_functions(tree)
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    try_node: ast.AST | None = None
    for part in _component_code(tree, used_functions):
        if _is_main(part):
            if fault := _main_fault(part, tree):
                return fault
            continue
        draws = seeds or getattr(part, "name", "") in _DRAWING_FUNCTIONS
        if forbidden := modules.find_fault(part, seeds=draws):
            return _format_fault(f"uses {forbidden[0]}", forbidden[1])
        harmless = {id(call.args[0]) for call in ast.walk(part) if _is_get_logger(call)}
        harmless |= {id(call.func) for call in ast.walk(part) if _is_getattr_of_self(call)}
        harmless |= local_variables(part)
        for node in ast.walk(part):
            if id(node) in harmless:
                continue
            if (
                name := _find_forbidden_name(node)
                or _find_assignment(node, modules)
                or _find_class_text(node, classes)
            ):
                return _format_fault(f"uses {name}", node)
            if isinstance(node, ast.Try | ast.TryStar):
                try_node = try_node or node  # A fault in the body of the `try` says more.
        if kernel and (use := _find_mode_decision(part)):
            return _format_fault("decides by self.training what it computes", use)
        if use := _find_device_comparison(part):
            return _format_fault("decides by a device what it computes", use)
        for cls in ast.walk(part):
            if isinstance(cls, ast.ClassDef) and (method := _find_replaced_method(cls)):
                return _format_fault(f"replaces nn.Module's {method[0]}", method[1])
    return _format_fault("uses try", try_node) if try_node else None


def _component_code(tree: ast.Module, used_functions: set[str]) -> Iterator[ast.stmt]:
    """Yield the statements that run at import or with the model; of other functions the heads."""
    for part in tree.body:
        if (
            not isinstance(part, ast.FunctionDef)
            or part.name in used_functions
            or part.decorator_list
        ):
            yield part
        else:
            head = [*part.args.defaults, *part.args.kw_defaults, part.returns]
            head += [
                argument.annotation for argument in ast.walk(part.args) if _is_argument(argument)
            ]
            yield from (ast.Expr(node) for node in head if node is not None)


def _is_argument(node: ast.AST) -> TypeGuard[ast.arg]:
    return isinstance(node, ast.arg)


def _is_main(part: ast.stmt) -> TypeGuard[ast.If]:
    return (
        isinstance(part, ast.If) and ast.unparse(part.test) in _MAIN_CONDITIONS and not part.orelse
    )


def _used_functions(tree: ast.Module) -> set[str]:
    """Return the functions that the model and its inputs use; the others only serve tests."""
    functions = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    tests = {name for name in functions if name in _TEST_FUNCTIONS}
    pending: list[ast.AST] = [
        part
        for part in tree.body
        if not _is_main(part) and not (isinstance(part, ast.FunctionDef) and part.name in tests)
    ]
    helpers = set(functions) - _INTERFACE_FUNCTIONS
    pending = [part for part in pending if getattr(part, "name", None) not in helpers]
    used_names = set(_INTERFACE_FUNCTIONS)
    while pending:
        for node in ast.walk(pending.pop()):
            name = node.id if isinstance(node, ast.Name) else None
            if name in helpers and name not in used_names:
                used_names.add(name)
                pending.append(functions[name])
    return used_names


def _format_fault(description: str, node: ast.AST) -> str:
    line = getattr(node, "lineno", 0)
    reason = "a component computes from its inputs and weights alone"
    return f"{description} (line {line}) outside of its tests; {reason}"


def seeds_generators(tree: ast.Module) -> bool:
    """Return whether a file seeds torch's generator anywhere."""
    return any(isinstance(n, ast.Attribute) and n.attr == "manual_seed" for n in ast.walk(tree))


def _find_forbidden_name(node: ast.AST) -> str | None:
    """Return the forbidden builtin, attribute or match pattern that a node uses, or None."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id if node.id in _FORBIDDEN_BUILTINS or _is_internal_name(node.id) else None
    if isinstance(node, ast.MatchClass) and (node.kwd_attrs or node.patterns):
        return "match with attributes"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type":
        return "type with a name" if len(node.args) > 1 else None
    if not isinstance(node, ast.Attribute):
        return None
    if node.attr.endswith(("_hook", "_hooks")):
        return node.attr
    if node.attr == "format" and not _is_plain_format(node.value):
        return "format"
    if node.attr in _FORBIDDEN_ATTRIBUTES or _is_internal_name(node.attr):
        return node.attr if isinstance(node.ctx, ast.Load) else None
    return None


def _find_class_text(node: ast.AST, classes: set[str]) -> str | None:
    """Detect a class of the file that is converted to text, which contains its module's name."""
    value: ast.AST | None = None
    if isinstance(node, ast.FormattedValue):
        value = node.value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        value = node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        value = ast.Tuple(node.args, ast.Load())
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} if value else set()
    return "a class as text" if names & classes else None


def _is_internal_name(name: str) -> bool:
    """Return whether a name such as `__globals__` is Python's own and not harmless."""
    return name.startswith("__") and name.endswith("__") and name not in _HARMLESS_DUNDERS


def _is_getattr_of_self(call: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a call is like `getattr(self, f"block_{n}")`."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    if call.func.id != "getattr" or len(call.args) < 2 or root_name(call.args[0]) != "self":
        return False
    name = call.args[1]
    attribute = name.value if isinstance(name, ast.Constant) else ""
    return attribute not in _FORBIDDEN_ATTRIBUTES | {"training"} and not str(attribute).startswith(
        "__"
    )


def _is_plain_format(value: ast.expr) -> bool:
    """Return whether a value is a literal string whose fields look up no attributes."""
    is_literal = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return is_literal and not _ATTRIBUTE_FIELD.search(str(value.value))  # type: ignore[attr-defined]


def _is_get_logger(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a call is `logging.getLogger(__name__)`."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr == "getLogger"


def _find_assignment(node: ast.AST, modules: ImportedModules) -> str | None:
    """Return a node's assignment to a name of Python's own, or in torch, as text, or None."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        if _is_internal_name(node.attr):
            return f"{node.attr} = ..."
        return f"torch: {ast.unparse(node)} = ..." if modules.is_of_torch(node) else None
    if isinstance(node, ast.Name) and _is_stored(node) and _is_internal_name(node.id):
        return None if node.id in _ASSIGNABLE_DUNDERS else f"{node.id} = ..."
    return None


def _find_mode_decision(part: ast.stmt) -> ast.AST | None:
    """Return a use of `self.training` that is no argument of a suitable operation, or None."""
    allowed: set[int] = set()
    for node in ast.walk(part):
        if isinstance(node, ast.Call):
            allowed.update(map(id, _mode_arguments(node)))
    return next(
        (
            node
            for node in ast.walk(part)
            if isinstance(node, ast.Attribute)
            and node.attr == "training"
            and isinstance(node.ctx, ast.Load)
            and id(node) not in allowed
        ),
        None,
    )


def _find_device_comparison(part: ast.stmt) -> ast.AST | None:
    """Return a comparison of a device, its type or its name, or None."""
    for node in ast.walk(part):
        if isinstance(node, ast.Compare) and any(map(_is_device, (node.left, *node.comparators))):
            return node
    return None


def _is_device(value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and value.args:  # str(x.device)
        value = value.args[0]
    while isinstance(value, ast.Attribute) and value.attr in {"type", "index"}:
        value = value.value
    return isinstance(value, ast.Attribute) and value.attr == "device"


def _mode_arguments(call: ast.Call) -> Iterator[ast.AST]:
    """Yield the parts of a call's arguments that may be `self.training`."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    takes_mode = function.lstrip("_").startswith(_MODE_FUNCTIONS)
    for argument in (*call.args, *call.keywords):
        value = argument.value if isinstance(argument, ast.keyword) else argument
        name = argument.arg if isinstance(argument, ast.keyword) else ""
        probability = name in {"dropout_p", "p"} or takes_mode
        if takes_mode:
            yield from ast.walk(value)
        if probability and isinstance(value, ast.IfExp):
            yield value.test


def _find_replaced_method(cls: ast.ClassDef) -> tuple[str, ast.AST] | None:
    """Return a name of nn.Module that a class may not replace but does, and its node, or None."""
    for node in _statements(cls.body):
        if isinstance(node, ast.ClassDef):
            continue  # A nested class is read on its own.
        if isinstance(node, ast.FunctionDef):
            is_reserved = hasattr(nn.Module, node.name) or node.name.startswith("__")
            if is_reserved and node.name not in _OWN_METHODS:
                return node.name, node
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and _replaces_method(inner):
                    return inner.attr, inner
        else:
            for inner in ast.walk(node):
                is_stored = isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
                if is_stored and hasattr(nn.Module, inner.id) and inner.id not in _CLASS_FIELDS:  # type: ignore[attr-defined]
                    return inner.id, inner  # type: ignore[attr-defined]
    return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a class, including those inside an `if`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement
            continue
        inner = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
        yield from _statements(inner) if inner else [statement]


def _replaces_method(target: ast.Attribute) -> bool:
    """Return whether an assignment replaces a method of nn.Module: `self.eval = ...`."""
    is_stored = isinstance(target.ctx, ast.Store) and isinstance(target.value, ast.Name)
    return (
        is_stored and target.attr != "forward" and callable(getattr(nn.Module, target.attr, None))
    )


def _main_fault(part: ast.If, tree: ast.Module) -> str | None:
    """Return what makes a file run as a script differ from the imported file, or None."""
    names = {getattr(statement, "name", None) for statement in tree.body}
    for node in ast.walk(part):
        defines = isinstance(node, ast.ClassDef | ast.FunctionDef)
        stores = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        renames = isinstance(node, ast.Name) and node.id in names and _is_stored(node)
        if defines or stores or renames:
            return f"is another file where it is run (line {getattr(node, 'lineno', 0)})"
    return None


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def step_parent_fault(tree: ast.Module) -> str | None:
    """Return what the file of a step's parent asks or changes, or None.

    It may load what its tests use: assignments of names that no model needs are not read.
    """
    model_names = _names_used_by_models(tree)
    body = [
        part
        for part in tree.body
        if not _is_unused_assignment(part, model_names) or _stores_into_object(part)
    ]
    if fault := surroundings_fault(ast.Module(body, []), kernel=True):
        return fault
    calls = (part for part in tree.body if isinstance(part, ast.Expr))
    call = next((part for part in calls if not isinstance(part.value, ast.Constant)), None)
    return _format_fault("does something when it is imported", call) if call is not None else None


def _names_used_by_models(tree: ast.Module) -> set[str]:
    """Return the names that a file's models use, directly or through other names."""
    used_names = {part.name for part in tree.body if isinstance(part, ast.ClassDef)}
    while True:
        parts = [part for part in tree.body if _bound_names(part) & used_names]
        names = {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
        if names <= used_names:
            return used_names
        used_names |= names


def _bound_names(part: ast.AST) -> set[str]:
    """Return the names that a class definition or an assignment binds."""
    if isinstance(part, ast.ClassDef):
        return {part.name}
    if not isinstance(part, ast.Assign | ast.AnnAssign):
        return set()
    nodes = ast.walk(part)
    return {node.id for node in nodes if isinstance(node, ast.Name) and _is_stored(node)}


def _is_unused_assignment(part: ast.stmt, model_names: set[str]) -> bool:
    """Return whether a statement assigns only names that no class uses."""
    return isinstance(part, ast.Assign | ast.AnnAssign) and not _bound_names(part) & model_names


def composed_fault(tree: ast.Module) -> str | None:
    """Return what the composed model asks or changes, or None.

    The rest of its file loads the kernels and holds tests.
    """
    definitions = ast.ClassDef | ast.FunctionDef
    body = [n for n in tree.body if not isinstance(n, definitions) or n.name == "ComposedModel"]
    model_names = _names_used_by_models(ast.Module(body, []))
    parts = [part for part in body if _bound_names(part) & model_names and not _loads_kernel(part)]
    return surroundings_fault(ast.Module(parts, []), kernel=True)


def _loads_kernel(part: ast.stmt) -> bool:
    """Return whether a statement loads a kernel: `Conv2d = kernel("conv2d.py")`."""
    call = part.value if isinstance(part, ast.Assign) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    return not call.keywords and all(isinstance(argument, ast.Constant) for argument in call.args)


def _stores_into_object(part: ast.stmt) -> bool:
    """Return whether a statement assigns to an attribute or an item."""
    return any(
        isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(part)
    )
