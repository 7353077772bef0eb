"""Finds the named literals of a problem file, and replaces them without touching other characters.

A named literal is a constant at the top of the file (`batch_size = 128`), or in `get_inputs()`,
`get_input_kwargs()` and `get_init_inputs()` the default of an argument, a local variable, or an
entry of a returned dict. An entry of the list that `get_init_inputs()` returns has the name of the
argument of `Model.__init__` that it is for.
"""

import ast
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.errors import UsageError, suggest_names

INPUT_FUNCTIONS = ("get_inputs", "get_input_kwargs", "get_init_inputs")
MOST_BITS = 512
"""Bits of the largest number that is computed from an expression of literals."""

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of a problem file that has a name."""

    name: str
    text: str
    """The literal as the file spells it, such as `128` or `2048 * 2`."""
    value: Any
    line: int
    place: str
    """`file`, or the function that holds it, such as `get_inputs()`."""
    start: int
    """Byte of the file at which the literal begins; `end` is the byte after it."""
    end: int


@dataclass(frozen=True, slots=True)
class NamedLiterals:
    """The named literals of a file, and the names whose values are no literals."""

    constants: tuple[Constant, ...]
    computed: Mapping[str, str]
    """Expression by name, such as `in_channels` for `groups = in_channels`."""

    def find(self, name: str) -> list[Constant]:
        """Return the literals of a name; case is ignored if no name has this exact case.

        Raises:
            UsageError: the file has no literal of this name; the hint lists those that it has.
        """
        names = {constant.name for constant in self.constants}
        matching = {name} if name in names else {n for n in names if n.lower() == name.lower()}
        if len(matching) == 1:
            return [constant for constant in self.constants if constant.name in matching]
        if matching:
            raise UsageError(f"{name} means {' or '.join(sorted(matching))}")
        reason = f"no constant {name}"
        if name in self.computed:
            reason = f"{name} is computed, {self.computed[name]}"
        listed = dict.fromkeys(f"{c.name} = {c.text}" for c in self.constants)
        hint = f"the file has {', '.join(listed)}" if listed else "the file has no named literal"
        if len(listed) > 20:
            hint = f"{suggest_names(name, names)}; `kdrun data show` lists all {len(listed)}"
        raise UsageError(reason, hint=hint)


NO_LITERALS = NamedLiterals((), {})


def evaluate_literal(text: str) -> Any:
    """Return the value of an expression of literals, such as `(3, 5)` or `2048 * 2`.

    Raises:
        ValueError: the text is no such expression.
    """
    try:
        return _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, ArithmeticError, TypeError) as error:
        raise ValueError(f"{text!r} is no literal") from error


def find_constants(source: bytes) -> NamedLiterals:
    """Return the named literals of a problem file, in the order of its text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NO_LITERALS
    offsets = _line_offsets(source)
    constants: list[Constant] = []
    computed: dict[str, str] = {}
    for name, place, node in _named_expressions(tree):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[node.end_lineno - 1] + node.end_col_offset
        text = source[start:end].decode("utf-8", "replace")
        try:
            value = _evaluate(node)
        except (ValueError, ArithmeticError, TypeError):
            computed.setdefault(name, " ".join(text.split()))
            continue
        constants.append(Constant(name, text, value, node.lineno, place, start, end))
    return NamedLiterals(tuple(sorted(constants, key=lambda c: c.start)), computed)


def replace_constants(source: bytes, changes: Sequence[tuple[Constant, str]], of: str) -> bytes:
    """Return the file with other literals, each line with a comment that says what there was.

    `batch_size = 1  # 128 in vit_block.py`, where `of` is the file's name. Nothing else changes. A
    line that cannot have a comment, such as one that ends inside a string, gets none.
    """
    by_line: dict[int, list[tuple[Constant, str]]] = defaultdict(list)
    edited = source
    for constant, text in sorted(changes, key=lambda change: -change[0].start):
        edited = edited[: constant.start] + text.encode() + edited[constant.end :]
        by_line[edited.count(b"\n", 0, constant.start + len(text.encode()))].append(
            (constant, text)
        )
    lines = edited.split(b"\n")
    shape = ast.dump(ast.parse(edited))
    for index, on_line in by_line.items():
        old = [_one_line(constant.text) for constant, _ in reversed(on_line)]
        if len(on_line) > 1:
            old = [f"{c.name} {_one_line(c.text)}" for c, _ in reversed(on_line)]
        before = lines[index]
        ending = b"\r" if before.endswith(b"\r") else b""
        code = before.removesuffix(b"\r").rstrip()
        lines[index] = code + f"  # {', '.join(old)} in {of}".encode() + ending
        if not _has_shape(b"\n".join(lines), shape):
            lines[index] = before
    return b"\n".join(lines)


def literal_text(text: str, constants: Sequence[Constant]) -> str:
    """Return the literal that replaces the given ones, for a value as a user wrote it.

    A word without quotes is a string where the constant is a string.

    Raises:
        UsageError: the value is no literal.
    """
    try:
        evaluate_literal(text)
    except ValueError as error:
        if all(isinstance(constant.value, str | None) for constant in constants):
            return repr(text)
        name, old = constants[0].name, _one_line(constants[0].text)
        raise UsageError(
            f"{name}={text}: no literal", hint=f"the file has {old}; write a value like it"
        ) from error
    return text.strip()


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _has_shape(source: bytes, shape: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) == shape
    except SyntaxError:
        return False


def _line_offsets(source: bytes) -> list[int]:
    """Return the byte at which each line begins; a byte order mark belongs to no line."""
    mark = b"\xef\xbb\xbf"
    first = len(mark) if source.startswith(mark) else 0
    ends = [match.end() for match in re.finditer(rb"\r\n|\r|\n", source)]
    return [first, *ends]


def _named_expressions(tree: ast.Module) -> Iterator[tuple[str, str, ast.expr]]:
    """Yield the name, the place and the value of everything that may be a named literal."""
    for statement in tree.body:
        yield from (
            (name, "file", value)
            for name, value in _assignments(statement)
            if not name.startswith("__")
        )
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for function in (functions[name] for name in INPUT_FUNCTIONS if name in functions):
        place = f"{function.name}()"
        arguments = function.args
        with_default = [*arguments.posonlyargs, *arguments.args][-len(arguments.defaults) :]
        pairs = [
            *zip(with_default, arguments.defaults, strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        yield from ((a.arg, place, default) for a, default in pairs if default is not None)
        for statement in function.body:
            yield from ((name, place, value) for name, value in _assignments(statement))
            if isinstance(statement, ast.Return):
                names = _init_arguments(tree) if function.name == "get_init_inputs" else []
                yield from ((n, place, v) for n, v in _entries(statement.value, names))


def _assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            if len(targets) == len(values):
                for target, value in zip(targets, values, strict=True):
                    if isinstance(target, ast.Name):
                        yield target.id, value


def _entries(value: ast.expr | None, names: Sequence[str]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the literal entries of a returned dict, and those of a list with the given names."""
    match value:
        case ast.Dict(keys=keys, values=values):
            for key, entry in zip(keys, values, strict=True):
                name = key.value if isinstance(key, ast.Constant) else None
                if isinstance(name, str) and not isinstance(entry, ast.Name):
                    yield name, entry
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            for name, entry in zip(names, entries, strict=False):
                if not isinstance(entry, ast.Name | ast.Starred):
                    yield name, entry


def _init_arguments(tree: ast.Module) -> list[str]:
    """Return the names of the positional arguments of `Model.__init__`."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    return [a.arg for a in [*method.args.posonlyargs, *method.args.args][1:]]
    return []


def _evaluate(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            number = _number(_evaluate(operand))
            return -number if isinstance(sign, ast.USub) else number
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = _number(_evaluate(left)), _number(_evaluate(right))
            if isinstance(base, float) or 0 <= base.bit_length() * exponent <= MOST_BITS:
                return base**exponent
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
            numbers = _number(_evaluate(left)), _number(_evaluate(right))
            return _ARITHMETIC[type(sign)](*numbers)
        case ast.List(elts=items):
            return [_evaluate(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_evaluate(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {_evaluate(key): _evaluate(value) for key, value in pairs if key is not None}
    raise ValueError("no literal")


def _number(value: Any) -> Any:
    if type(value) not in (int, float) or (type(value) is int and value.bit_length() > MOST_BITS):
        raise ValueError("no number")
    return value
