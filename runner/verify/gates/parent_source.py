"""Checks source before it runs: the methods of a parent, and the imports of a file.

What runs is watched as well. Reading finds what watching cannot see, such as arithmetic on Python
numbers, and names the line.
"""

import ast
import sys
from pathlib import Path

from runner.untrusted_files import read_file
from runner.verify.loading_files import CannotJudge

VIEWS = {
    *("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as", "expand", "expand_as"),
    *("transpose", "permute", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "adjoint"),
    *("squeeze", "unsqueeze", "select", "narrow", "diagonal", "unfold", "as_strided"),
    *("split", "split_with_sizes", "chunk", "tensor_split", "unbind", "hsplit", "vsplit", "dsplit"),
    *("broadcast_to", "broadcast_tensors", "view_as_real", "view_as_complex", "real", "imag"),
    *("detach", "alias", "matrix_H", "conj", "ravel", "atleast_1d", "atleast_2d", "atleast_3d"),
    "meshgrid",
}
_NUMBERS = {"size", "dim", "numel", "stride", "ndimension", "index", "count"}
_BUILTINS = {"tuple", "list", "dict", "len", "range", "zip", "enumerate", "int", "reversed", "iter"}
_BUILTINS |= {"print", "chain"}  # the last one of itertools
_BUILTINS |= {"next", "isinstance", "slice", "min", "max", "divmod", "float", "bool", "str"}
_BUILTINS |= {"sum", "abs", "round", "any", "all", "map", "sorted", "getattr", "hasattr", "setattr"}
_DESCRIPTIONS = {"shape", "ndim", "dtype", "device", "training"}
"""Attributes that describe a tensor or a module and hold none of its numbers."""
_MESSAGES = {"debug", "info", "warning", "warn"}
"""Functions of a logger and of `warnings`; no tensor has a method of these names."""
_PACKING = {"append", "extend", "items", "values", "keys", "get", "pop", "insert", "update"}
_STATEMENTS = (
    *(ast.Assign, ast.AnnAssign, ast.Return, ast.Expr, ast.For, ast.Pass, ast.Delete, ast.Raise),
    *(ast.If, ast.Assert, ast.Continue, ast.Break, ast.Match, ast.FunctionDef, ast.With),
)
_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
_NAMESPACES = {"torch", "F", "Tensor"}
_LISTS_OF_CHILDREN = {"items", "keys", "values", "children", "named_children"}
_LOOKUPS = {"getattr", "iter", "next", "list", "tuple", "reversed"}
_SEQUENCES = {"nn.Sequential", "torch.nn.Sequential", "Sequential"}
_GRADIENT_CONTEXTS = {"no_grad", "enable_grad", "inference_mode"}
ALLOWED_PACKAGES = {"torch", "__future__"} | set(sys.stdlib_module_names)
_MOST_BITS = 4096
"""Most bits of a whole number in a file."""


def parse_file(path: Path, label: str) -> ast.Module:
    """Return a source file's syntax tree.

    Raises CannotJudge if the file is missing, is no Python, or holds a number that is so large that
    Python refuses to write it in digits.
    """
    try:
        tree = ast.parse(read_file(path))
    except OSError as error:
        raise CannotJudge(f"{label}: {error.strerror or error}") from error
    except SyntaxError as error:
        raise CannotJudge(f"{label}: line {error.lineno}: SyntaxError: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise CannotJudge(f"{label}: {type(error).__name__}: {error}") from error
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, int):
            continue
        if (bits := node.value.bit_length()) > _MOST_BITS:
            raise CannotJudge(
                f"{label}: line {node.lineno}: a number of {bits} bits, of {_MOST_BITS} allowed"
            )
    return tree


def dump_code(tree: ast.Module) -> str:
    """Return a text that is equal for files that differ only in docstring, layout and local names.

    It renames the tree's local names. CannotJudge if an expression is nested too deeply.
    """
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    for part in body:
        _rename_locals(part)
    try:
        return ast.dump(ast.Module(body, []))
    except RecursionError as error:
        raise CannotJudge("holds an expression that is nested too deeply") from error


def _rename_locals(part: ast.stmt) -> None:
    """Rename the arguments and local names of each function of a statement, in their order."""
    for function in (n for n in ast.walk(part) if isinstance(n, ast.FunctionDef)):
        nodes = [n for n in ast.walk(function) if isinstance(n, ast.arg | ast.Name)]
        names: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.arg):
                names.setdefault(node.arg, f"_{len(names)}")
            elif isinstance(node.ctx, ast.Store):
                names.setdefault(node.id, f"_{len(names)}")
        for node in nodes:
            if isinstance(node, ast.arg):
                node.arg = names[node.arg]
            else:
                node.id = names.get(node.id, node.id)


def import_fault(tree: ast.Module) -> str | None:
    """Return a fault if a component imports anything but torch and the standard library.

    It may import a package for the operators that the package adds to torch.
    """
    operators = operator_modules(tree)
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            if name.partition(".")[0] not in ALLOWED_PACKAGES and name not in operators:
                line = getattr(node, "lineno", 0)
                return f"imports {name} (line {line}); a component imports torch alone"
    return None


def operator_modules(tree: ast.Module) -> set[str]:
    """Return the modules that a file imports for the operators that they add to torch.

    Such as `torchvision`, in a file that calls `torch.ops.torchvision.nms`.
    """
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if not alias.asname and alias.name.partition(".")[0] not in ALLOWED_PACKAGES
    }
    namespaces = {
        node.attr
        for node in ast.walk(tree)
        if imported and isinstance(node, ast.Attribute) and ast.unparse(node.value) == "torch.ops"
    }
    return {name for name in imported if name.rpartition(".")[2] in namespaces}


def parent_fault(tree: ast.Module, class_name: str) -> str | None:
    """Return the first fault of a parent's methods: anything but child calls, views and packing."""
    class_node = next(
        (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name),
        None,
    )
    if class_node is None:
        return f"no class {class_name}"
    functions = [node for node in class_node.body if isinstance(node, ast.FunctionDef)]
    methods = {node.name for node in functions}
    helpers = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    is_sequence = [ast.unparse(base) in _SEQUENCES for base in class_node.bases] == [True]
    if "forward" not in methods and not is_sequence:
        return f"{class_name} has no forward"
    constants = {
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in _target_names(target)
    }
    for function in functions:
        if function.name != "__init__":
            fault = _ParentMethod(methods, helpers, constants).fault(function)
            if fault:
                return fault
    return None


class _ParentMethod:
    """Checks one method of a parent; `numbers` are the names that hold or may hold Python numbers.

    `helpers` are functions and classes of the same file: they pick inputs, and are watched when
    they run. What is computed from a tensor is watched too, so only an expression that cannot be a
    tensor counts as a number here: a Python number, a size, the index of a loop, or a constant of
    the file or of the model.
    """

    def __init__(self, methods: set[str], helpers: set[str], constants: set[str]) -> None:
        self.methods, self.helpers = methods, helpers
        self.locals: set[str] = set()
        self.numbers: set[str] = set(constants)
        self.owned: set[str] = {"self"}
        """Names of the model, and of what is looked up in it, as `block in self.blocks`."""

    def fault(self, function: ast.FunctionDef) -> str | None:
        arguments = function.args
        self.locals |= {
            a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Lambda):
                self.locals |= {argument.arg for argument in node.args.args}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.locals.add(node.id)
            elif isinstance(node, ast.FunctionDef):
                self.locals.add(node.name)
        while self._learn_names(function):
            pass
        for node in _nodes_in_order(function.body):
            fault = self._node_fault(node)
            if fault:
                return f"line {node.lineno}: {fault}"
        return None

    def _learn_names(self, function: ast.FunctionDef) -> bool:
        """Record what the function's names hold; return whether one was new."""
        before = len(self.numbers) + len(self.owned)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._learn_target(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                self._learn_target(node.target, node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                self._learn_loop(node.target, node.iter)
        return len(self.numbers) + len(self.owned) > before

    def _learn_target(self, target: ast.expr, value: ast.expr) -> None:
        is_tuple = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        if is_tuple and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
            for one_target, one_value in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
                self._learn_target(one_target, one_value)
            return
        names = {name.id for name in _target_names(target)}
        if self._is_number(value):
            self.numbers |= names
        if self._is_owned(value):
            self.owned |= names

    def _learn_loop(self, target: ast.expr, iterable: ast.expr) -> None:
        """Record what the target of a `for` holds: an index, a size, or a part of the model."""
        call = iterable if isinstance(iterable, ast.Call) else None
        function = ast.unparse(call.func) if call else ""
        parts = target.elts if isinstance(target, ast.Tuple) else []
        if call and function == "enumerate" and len(parts) == 2 and call.args:
            self.numbers |= {name.id for name in _target_names(parts[0])}
            self._learn_loop(parts[1], call.args[0])
        elif call and function == "zip" and len(parts) == len(call.args):
            for part, argument in zip(parts, call.args, strict=True):
                self._learn_loop(part, argument)
        elif call and function in {"reversed", "list", "sorted"} and call.args:
            self._learn_loop(target, call.args[0])
        elif call and function in {"itertools.chain", "chain"}:
            for argument in call.args:
                self._learn_loop(target, argument)
        elif call and function == "range":
            self._learn_target(target, call)
        elif self._is_owned(iterable) or (call and self._lists_children(call.func)):
            names = {name.id for name in _target_names(target)}
            self.owned |= names
            self.numbers |= names
        else:
            self._learn_target(target, iterable)

    def _lists_children(self, function: ast.expr) -> bool:
        is_list = isinstance(function, ast.Attribute) and function.attr in _LISTS_OF_CHILDREN
        return is_list and self._is_owned(function)

    def _is_owned(self, node: ast.expr) -> bool:
        """Return whether an expression looks something up in the model, as `self.blocks[0]`."""
        if isinstance(node, ast.Tuple | ast.List):
            return bool(node.elts) and all(map(self._is_owned, node.elts))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_lookup = node.func.id in _LOOKUPS and bool(node.args)
            return is_lookup and self._is_owned(node.args[0])
        return root_name(node) in self.owned

    def _node_fault(self, node: ast.stmt | ast.expr) -> str | None:
        text = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        if isinstance(node, ast.stmt):
            if isinstance(node, ast.AugAssign):
                is_number = self._is_number(node.target) and self._is_number(node.value)
                is_packed = is_number or isinstance(node.value, _CONTAINERS)
                return None if is_packed else f"`{ast.unparse(node)}` is no child call"
            ends = isinstance(node, ast.While) and not isinstance(node.test, ast.Constant)
            is_allowed = ends or isinstance(node, _STATEMENTS)
            return None if is_allowed else f"{type(node).__name__} statement"
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp):
            is_test = isinstance(node, ast.Compare) and all(
                isinstance(op, ast.Is | ast.IsNot) for op in node.ops
            )
            is_test |= isinstance(node, ast.Compare) and all(
                self._is_plain(side) for side in (node.left, *node.comparators)
            )
            is_test |= isinstance(node, ast.BoolOp | ast.UnaryOp) and self._is_truth(node)
            is_packing = isinstance(node, ast.BinOp) and any(
                isinstance(side, _CONTAINERS) for side in (node.left, node.right)
            )
            is_good = is_test or is_packing or self._is_number(node)
            return None if is_good else f"`{text}` is no child call"
        if isinstance(node, ast.Call):
            is_view_or_child = self._is_allowed_call(node.func) or _is_move(node)
            is_view_or_child |= _is_reduction(node)
            return None if is_view_or_child else f"`{text}` is no child call and no view"
        return None

    def _is_allowed_call(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return function.id in _BUILTINS | self.locals | self.helpers
        if isinstance(function, ast.Call) and isinstance(function.func, ast.Name):
            return function.func.id in self.helpers or self._is_owned(function)
        if self._is_owned(function):
            return True  # a child, or a method of this class, which is checked too
        if not isinstance(function, ast.Attribute):
            return False
        root = root_name(function.value)
        if root in _NAMESPACES:
            return function.attr in VIEWS | _GRADIENT_CONTEXTS
        if root == "itertools":
            return function.attr == "chain"
        return root == "math" or function.attr in VIEWS | _NUMBERS | _PACKING | _MESSAGES

    def _is_truth(self, node: ast.expr) -> bool:
        """Return whether a condition is made of comparisons alone, which are checked one by one."""
        if isinstance(node, ast.BoolOp):
            return all(map(self._is_truth, node.values))
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) and self._is_truth(node.operand)
        is_kind = isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        return is_kind or isinstance(node, ast.Compare | ast.Name) or _is_description(node)

    def _is_plain(self, node: ast.expr) -> bool:
        """Return whether it is a number, a description, or a tuple of them, as `(b, s, 1)`."""
        if isinstance(node, ast.Tuple | ast.List):
            return all(map(self._is_plain, node.elts))
        is_tuple = isinstance(node, ast.Call) and ast.unparse(node.func) in {"tuple", "list"}
        if is_tuple and len(node.args) == 1:  # type: ignore[attr-defined]
            return self._is_plain(node.args[0])  # type: ignore[attr-defined]
        return self._is_number(node) or _is_description(node)

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float)
        if _is_shape(node):
            return True
        if isinstance(node, ast.Tuple | ast.List):
            return all(map(self._is_number, node.elts))
        if isinstance(node, ast.IfExp):
            return self._is_number(node.body) and self._is_number(node.orelse)
        if isinstance(node, ast.Attribute):
            return node.attr == "ndim" or root_name(node) in self.owned
        if isinstance(node, ast.Name):
            return node.id in self.numbers
        if isinstance(node, ast.NamedExpr):
            return self._is_number(node.value)
        if isinstance(node, ast.UnaryOp):
            return self._is_number(node.operand)
        if isinstance(node, ast.BinOp):
            return self._is_number(node.left) and self._is_number(node.right)
        if isinstance(node, ast.Compare):
            return all(map(self._is_number, [node.left, *node.comparators]))
        if isinstance(node, ast.BoolOp):
            return all(map(self._is_number, node.values))
        if isinstance(node, ast.Subscript):
            return _is_shape(node.value) or self._is_number(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in _NUMBERS or (
                root_name(node.func) == "math" and all(map(self._is_number, node.args))
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_known = node.func.id in {"sum", "abs", "round", "range", "tuple"}
            is_known = is_known and all(map(self._is_number, node.args))
            return is_known or node.func.id in {"len", "int", "min", "max"}
        return False


def _is_shape(node: ast.expr) -> bool:
    """Return whether an expression is `x.shape`, `x.shape[1:]` or `x.size()`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _is_shape(node.value)
    if isinstance(node, ast.Call):
        function = node.func
        return isinstance(function, ast.Attribute) and function.attr == "size" and not node.args
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _is_description(node: ast.expr) -> bool:
    """Return whether an expression is a shape, a dtype or another description, or a constant."""
    if isinstance(node, ast.Tuple | ast.List):
        return all(map(_is_description, node.elts))
    if isinstance(node, ast.Attribute):
        return node.attr in _DESCRIPTIONS or root_name(node) == "torch"
    return isinstance(node, ast.Constant) or _is_shape(node)


def _target_names(target: ast.expr) -> list[ast.Name]:
    """Return the names that a target binds: two in `a, b = x.shape`."""
    return [node for node in ast.walk(target) if isinstance(node, ast.Name)]


def _is_move(call: ast.Call) -> bool:
    """Return whether a call is `x.to(y.device)` or `x.to("cpu")`, without a dtype."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to" or call.keywords:
        return False
    (place, *extra) = call.args or (None,)
    is_device = isinstance(place, ast.Attribute) and place.attr == "device"
    return not extra and (is_device or (isinstance(place, ast.Constant) and place.value == "cpu"))


def _is_reduction(call: ast.Call) -> bool:
    """Return whether a call is `functools.reduce(lambda x, layer: layer(x), ...)`."""
    is_reduce = ast.unparse(call.func) in {"reduce", "functools.reduce"}
    return is_reduce and bool(call.args) and isinstance(call.args[0], ast.Lambda)


def _nodes_in_order(body: list[ast.stmt]) -> list[ast.stmt | ast.expr]:
    """Return every statement and expression in source order, without errors that are raised."""
    all_nodes = [node for statement in body for node in ast.walk(statement)]
    errors = {id(part) for n in all_nodes if isinstance(n, ast.Raise) for part in ast.walk(n)}
    nodes = [n for n in all_nodes if isinstance(n, ast.stmt | ast.expr) and id(n) not in errors]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def root_name(node: ast.expr) -> str | None:
    """Return the name at the left end of `a.b[0].c`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
