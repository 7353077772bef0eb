"""Tells the statements of a file apart: components, tests, loaders of other files, the main block.

Components are read by source_rules.py. Here is what the others may say.
"""

import ast
import builtins
import functools
import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard

from runner.verify.guard.source.allowed_names import EXCEPTIONS, ImportedNames
from runner.verify.guard.source.name_scopes import Scopes

TEST_FUNCTIONS = {"run_tests", "main"}
"""Functions that may ask anything, because no component calls them."""
_GRADIENT_DECORATORS = {"torch.no_grad()", "torch.inference_mode()", "torch.enable_grad()"}
_INTERFACE_FUNCTIONS = {
    *("get_inputs", "get_init_inputs", "get_expected_output_shape", "get_input_kwargs"),
}
EXPRESSIONS = (
    *(ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set),
    *(ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.FormattedValue),
    *(ast.JoinedStr, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List),
    *(ast.Tuple, ast.Slice),
)
"""Kinds of expressions that a file may hold."""
_MAIN_CONDITIONS = {"__name__ == '__main__'", "'__main__' == __name__"}
_MAIN_NODES = (
    *(ast.Expr, ast.Assign, ast.Import, ast.Raise, ast.Call, ast.Name, ast.Constant, ast.keyword),
    *(ast.Attribute, ast.alias, ast.expr_context, ast.IfExp, ast.Compare, ast.cmpop, ast.If),
    *(ast.UnaryOp, ast.unaryop, ast.JoinedStr, ast.FormattedValue, ast.Pass, ast.BoolOp),
    *(ast.boolop, ast.BinOp, ast.operator, ast.Assert),
)
_MAIN_CALLS = {"print", "exit", "sys.exit", "SystemExit", "bool", "int", "os.sysconf"}
_LOADER_TYPES = {"nn.Module", "torch.nn", "torch.nn.Module", "types.ModuleType"}
_LOADER_BUILTINS = {"str", "__file__"}
_LOADER_ATTRIBUTES = {
    *("resolve", "absolute", "parent", "parents", "joinpath", "with_name", "path", "dirname"),
    *("abspath", "join", "insert", "append", "util", "spec_from_file_location", "loader"),
    *("module_from_spec", "exec_module", "run_path", "modules", "Model", "Path", "pathlib"),
    *("as_posix", "with_suffix", "realpath", "origin", "name", "stem"),
}
"""Attributes that composition_test.py may use to load the kernels' files by path."""
_LOADER_QUESTIONS = {"exists", "is_file"}
"""Attributes that it may ask for in an assertion, or to raise an error."""


class StatementRoles:
    """Recognises the loaders and the main block of one file."""

    def __init__(self, scopes: Scopes, names: ImportedNames) -> None:
        self._scopes, self._names = scopes, names
        self._other_work: dict[ast.stmt, ast.AST | None] = {}
        """Maps a statement to the first thing in it that no loader does."""
        self._loader_names: dict[int, bool] = {}
        """Maps the id() of a name's bindings to whether a loader may use what they import."""
        self._forms: dict[int, set[str]] = {}

    def main_fault(self, part: ast.If) -> str | None:
        """Return what makes a file run as a script differ from the imported file, or None."""
        names = self._scopes.file.bindings
        for node in (node for line in part.body for node in ast.walk(line)):
            good = isinstance(node, _MAIN_NODES)
            if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
                good = isinstance(node, ast.Name) and len(names[node.id]) == 1
            elif isinstance(node, ast.alias):
                others = names[node.asname or node.name.partition(".")[0]]
                good = self._forms_of(others) == {ast.dump(node)}
            elif isinstance(node, ast.Call):
                text = ast.unparse(node.func)
                own = (ast.FunctionDef, ast.ClassDef)
                is_own = isinstance(self._scopes.definition(node.func), own)
                good = is_own or text in _MAIN_CALLS
            if not good:
                return f"is another file where it is run (line {getattr(node, 'lineno', 0)})"
        return None

    def is_loader(self, part: ast.stmt) -> bool:
        """Return whether a statement only loads files by path, or is a function of kdrun's."""
        return self.find_other_work(part) is None

    def find_other_work(self, part: ast.stmt) -> ast.AST | None:
        """Return the first thing in a statement that no loader of files does, or None."""
        if part not in self._other_work:
            self._other_work[part] = part  # A function that calls itself is no loader.
            self._other_work[part] = self._search_other_work(part)
        return self._other_work[part]

    def _search_other_work(self, part: ast.stmt) -> ast.AST | None:
        if isinstance(part, ast.FunctionDef) and ast.unparse(part) in _checks_functions():
            return None
        statements = (
            *(ast.FunctionDef, ast.Return, ast.Assign, ast.AnnAssign, ast.Expr, ast.Assert),
            *(ast.If, ast.Raise),
        )
        if not isinstance(part, (ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.Expr)):
            return part
        asking: set[ast.AST] = set()
        """Parts of conditions that only raise errors."""
        for node in ast.walk(part):
            if isinstance(node, ast.If | ast.Assert):
                asking.update(ast.walk(node.test))
            if isinstance(node, ast.If):
                is_good = _only_raises(node)
            elif isinstance(node, ast.FunctionDef):
                is_good = not node.decorator_list
            elif isinstance(node, ast.Attribute):
                is_known = node.attr in _LOADER_ATTRIBUTES or ast.unparse(node) in _LOADER_TYPES
                is_known |= node.attr in _LOADER_QUESTIONS and node in asking
                is_good = is_known and isinstance(node.ctx, ast.Load)
            elif isinstance(node, ast.Subscript):
                is_read = isinstance(node.ctx, ast.Load)
                is_good = is_read or ast.unparse(node.value) == "sys.modules"
            elif isinstance(node, ast.Name):
                is_good = self._is_name_of_loader(node, part)
            elif isinstance(node, ast.stmt):
                is_good = isinstance(node, statements)
            else:
                is_good = not isinstance(node, ast.Lambda | ast.NamedExpr) and (
                    not isinstance(node, ast.expr) or isinstance(node, EXPRESSIONS)
                )
            if not is_good:
                return node
        return None

    def _is_name_of_loader(self, name: ast.Name, part: ast.stmt) -> bool:
        found = self._scopes.find(name)
        if found is None:
            parent = self._scopes.parents[name]
            is_hint = name.id == "type" and isinstance(parent, ast.Subscript)
            if name.id == "getattr" and isinstance(parent, ast.Call) and len(parent.args) > 1:
                return ast.unparse(parent.args[1]) == "'Model'"
            known = _LOADER_BUILTINS | EXCEPTIONS
            return is_hint or name.id in known or name.id not in vars(builtins)
        bindings = found[1]
        if id(bindings) not in self._loader_names:
            self._loader_names[id(bindings)] = self._are_imports_of_loader(bindings, name)
        own = bindings[0]
        if isinstance(own, ast.FunctionDef) and own is not part and not self.is_loader(own):
            return False
        return self._loader_names[id(bindings)]

    def _are_imports_of_loader(self, bindings: list[ast.AST], name: ast.Name) -> bool:
        """Return whether a name's imports are modules, or names that a loader may use."""
        for binding in bindings:
            if isinstance(binding, ast.alias):
                is_module = isinstance(self._scopes.parents[binding], ast.Import)
                if not is_module and binding.name not in _LOADER_ATTRIBUTES:
                    return self._names.try_value(name) is not None
        return True

    def _forms_of(self, bindings: list[ast.AST]) -> set[str]:
        """Return the different texts of a name's bindings."""
        if id(bindings) not in self._forms:
            self._forms[id(bindings)] = set(map(ast.dump, bindings))
        return self._forms[id(bindings)]


@functools.cache
def _checks_functions() -> frozenset[str]:
    """Return the functions of checks.py that kdrun writes into a composition, as it writes them."""
    text = importlib.resources.files("runner").joinpath("emit/checks.py").read_text("utf-8")
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return frozenset(map(ast.unparse, functions))


def component_code(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that run at import or with the model; of other functions the heads."""
    used_functions = _used_functions(tree)
    for part in tree.body:
        if not isinstance(part, ast.FunctionDef) or part.name in used_functions:
            yield part
        elif any(ast.unparse(d) not in _GRADIENT_DECORATORS for d in part.decorator_list):
            yield part  # The decorator calls it, or gives it to somebody who does.
        else:
            head = [*part.args.defaults, *part.args.kw_defaults, part.returns]
            head += [
                argument.annotation for argument in ast.walk(part.args) if _is_argument(argument)
            ]
            yield from (ast.Expr(node) for node in head if node is not None)


def _is_argument(node: ast.AST) -> TypeGuard[ast.arg]:
    return isinstance(node, ast.arg)


def _only_raises(node: ast.If) -> bool:
    return not node.orelse and all(isinstance(line, ast.Raise) for line in node.body)


def is_main(part: ast.stmt) -> TypeGuard[ast.If]:
    return (
        isinstance(part, ast.If) and ast.unparse(part.test) in _MAIN_CONDITIONS and not part.orelse
    )


def _used_functions(tree: ast.Module) -> set[str]:
    """Return the functions that the model and its inputs use; the others only serve tests."""
    functions = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    tests = {name for name in functions if name in TEST_FUNCTIONS}
    pending = [
        part
        for part in tree.body
        if not is_main(part) and not (isinstance(part, ast.FunctionDef) and part.name in tests)
    ]
    return {*_INTERFACE_FUNCTIONS, *_find_helpers(functions, pending)}


def drawing_functions(tree: ast.Module) -> set[str]:
    """Return `get_inputs` and the functions that it alone uses."""
    functions = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    drawing = [part for part in tree.body if getattr(part, "name", None) == "get_inputs"]
    is_other = {"get_inputs", *TEST_FUNCTIONS}.isdisjoint
    others = [n for n in tree.body if is_other([getattr(n, "name", "")]) and not is_main(n)]
    return {"get_inputs", *_find_helpers(functions, drawing) - _find_helpers(functions, others)}


def _find_helpers(functions: Mapping[str, ast.FunctionDef], users: Iterable[ast.stmt]) -> set[str]:
    """Return the helper functions that some statements use, also through other helpers.

    A helper's own definition is no use of it.
    """
    helpers = set(functions) - _INTERFACE_FUNCTIONS
    pending: list[ast.AST] = [u for u in users if getattr(u, "name", None) not in helpers]
    used: set[str] = set()
    while pending:
        for node in ast.walk(pending.pop()):
            name = node.id if isinstance(node, ast.Name) else None
            if name in helpers and name not in used:
                used.add(name)
                pending.append(functions[name])
    return used
