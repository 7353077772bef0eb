"""Finds the places where a program spells one of the formulas."""

import ast
import copy
import functools
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from runner.graph.dataflow import Flow
from runner.graph.ir import Ref, Scope
from runner.graph.operations import is_named_activation
from runner.graph.recognition.formula_guards import (
    GUARDS,
    are_sibling_projections,
    find_part_views,
    find_shared_views,
)
from runner.graph.recognition.formula_notation import (
    FUNCTIONS,
    called_function,
    factors,
    parse_formula,
    terms,
    usual_name,
)
from runner.graph.recognition.formulas import FORMULAS, GATED
from runner.graph.recognition.unify import CASTS, OF_PRODUCTS, OF_SUMS, Match, Unifier

_GATED = {operation for operation, _ in GATED}


@dataclass(frozen=True, slots=True)
class FormulaMatch:
    """A place where the program spells a formula."""

    operation: str
    """Name of the operation, such as `rms_norm`."""
    formula: str
    """The spelling that matched."""
    members: frozenset[int]
    """Indices of the operations that compute it."""
    results: frozenset[str]
    """Names of its values that other operations may read."""


class FormulaSearch:
    """Searches one program for all formulas."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.unifier = Unifier(flow)
        self.nearby_names = _find_nearby_names(flow, self.unifier.names)
        self.by_name: dict[str, list[int]] = {}
        for index, name in enumerate(self.unifier.names):
            self.by_name.setdefault(name, []).append(index)
        present_names = frozenset(self.unifier.names)
        self.rows = [
            row
            for row in rows_of_all_formulas()
            if all(needed & present_names for needed in row.needs)
        ]
        self.calls = _operations_of_calls(flow)

    def find_everywhere(self, excluded_roots: Container[int]) -> Iterator[FormulaMatch]:
        """Yield all matches, in the order of the rows, that do not end in `excluded_roots`."""
        yield from self._find_rows(self.rows, excluded_roots)

    def find_across_modules(self) -> Iterator[FormulaMatch]:
        """Yield gated activations whose activation is a small module: `self.act(a) * b`."""
        rows = [row for row in self.rows if row.operation in _GATED]
        inside = {
            i
            for i, sources in enumerate(self.flow.sources)
            if all(self._author_scopes(i) == self._author_scopes(s) for s in sources)
        }
        for match in self._find_rows(rows, inside):
            if len({self._author_scopes(i) for i in match.members if self._computes(i)}) > 1:
                yield match

    def find_exactly(self, members: frozenset[int]) -> FormulaMatch | None:
        """Return the formula that exactly these operations spell, besides casts and constants."""
        compute = {i for i in members if self._computes(i)}
        for root in sorted(compute, reverse=True)[:2]:
            for row in self.rows:
                if self.unifier.names[root] in row.roots and self._may_match(row, root):
                    for match in self._find_at(row, root):
                        if {i for i in match.members if self._computes(i)} == compute:
                            return match
        return None

    def _computes(self, index: int) -> bool:
        op = self.flow.operations[index]
        return not op.view and not self.flow.constant[index] and usual_name(op) not in CASTS

    def _find_rows(
        self, rows: "list[_FormulaRow]", excluded_roots: Container[int]
    ) -> Iterator[FormulaMatch]:
        for row in rows:
            roots = (i for name in row.roots for i in self.by_name.get(name, ()))
            for root in sorted(roots, reverse=True):
                if root not in excluded_roots and self._may_match(row, root):
                    yield from self._find_at(row, root)

    def _may_match(self, row: "_FormulaRow", root: int) -> bool:
        """Return whether a match is possible: all operators that the row needs are near `root`."""
        return all(needed & self.nearby_names[root] for needed in row.needs) and (
            not row.parts or all(part & self.unifier.operand_operators(root) for part in row.parts)
        )

    def _find_at(self, row: "_FormulaRow", root: int) -> Iterator[FormulaMatch]:
        """Yield the first match of a row that ends in `root`, with the cast of its result first."""
        flow = self.flow
        output = flow.operations[root].outputs[0]
        for match in self.unifier.match(parse_formula(row.formula), Ref(output), Match()):
            members = self._find_members(row, match)
            if members is None or not self._is_in_one_call(members, gated=row.operation in _GATED):
                continue
            guard = GUARDS.get(row.operation)
            operation = guard(match, flow, root) if guard is not None else row.operation
            if operation is None:
                continue
            results = {output}
            for i in members:
                if flow.operations[i].name in {"topk", "max"}:
                    results.update(flow.operations[i].outputs[1:])
            cast = _find_cast_back(root, members, match, flow)
            if cast is not None:
                out = flow.operations[cast].outputs[0]
                results_of_cast = frozenset(results - {output} | {out})
                yield FormulaMatch(operation, row.formula, members | {cast}, results_of_cast)
            yield FormulaMatch(operation, row.formula, members, frozenset(results))
            return

    # --- members of a match -----------------------------------------------------------------------

    def _find_members(self, row: "_FormulaRow", match: Match) -> frozenset[int] | None:
        """Return the operations of a match, and those views and casts that only the match reads.

        Returns None if its two gated inputs are not related.
        """
        flow = self.flow
        members = set(match.operations)
        for first_name, second_name, find_views in (
            ("a", "b", find_part_views),
            ("x", "rest", find_shared_views),
        ):
            a, b = match.value(first_name), match.value(second_name)
            if isinstance(a, Ref) and isinstance(b, Ref):
                values = flow.graph.values
                if row.operation in _GATED and values[a.name].shape != values[b.name].shape:
                    return None
                views = find_views(a.name, b.name, flow)
                if views is None and not (
                    row.operation in _GATED and are_sibling_projections(a.name, b.name, flow)
                ):
                    return None
                members |= views or set()
        for index in sorted(match.edge_casts, reverse=True):
            if not flow.escapes(index, members):
                members.add(index)
        return frozenset(members)

    def _is_in_one_call(self, members: frozenset[int], gated: bool) -> bool:
        """Return whether one call of the author's code computes it, not counting constants.

        An activation that is a module of its own counts as part of the gate that calls it.
        """
        scopes = {
            self._author_scopes(i)
            for i in members
            if not self.flow.operations[i].view and not self.flow.constant[i]
        }
        if len(scopes) <= 1:
            return True
        outer = min(scopes, key=len)
        return gated and all(
            scope == outer or (scope[: len(outer)] == outer and self._is_activation(scope, members))
            for scope in scopes
        )

    def _is_activation(self, scope: tuple[Scope, ...], members: frozenset[int]) -> bool:
        """Return whether all operations of a module call are members and make one activation."""
        inside = self.calls.get(scope, frozenset())
        if not inside or not inside <= members:
            return False
        if len(inside) == 1:
            return is_named_activation(self.flow.operations[min(inside)])
        return self.find_exactly(inside) is not None

    def _author_scopes(self, index: int) -> tuple[Scope, ...]:
        """Return the calls of the author's own modules that an operation is in."""
        return tuple(s for s in self.flow.operations[index].scopes if not s.builtin)


def _operations_of_calls(flow: Flow) -> dict[tuple[Scope, ...], frozenset[int]]:
    """Return the operations of each call of an author's module, nested calls included."""
    members: dict[tuple[Scope, ...], set[int]] = {}
    for index, op in enumerate(flow.operations):
        if not op.view:
            scopes = tuple(s for s in op.scopes if not s.builtin)
            for depth in range(1, len(scopes) + 1):
                members.setdefault(scopes[:depth], set()).add(index)
    return {scopes: frozenset(inside) for scopes, inside in members.items()}


def _find_cast_back(root: int, members: frozenset[int], match: Match, flow: Flow) -> int | None:
    """Return the cast of the result back to the input's dtype, if the input is cast, too."""
    input_casts = [flow.operations[i] for i in match.edge_casts & members]
    users = flow.users[root]
    if not input_casts or len(users) != 1:
        return None
    cast = flow.operations[users[0]]
    values = flow.graph.values
    if usual_name(cast) not in CASTS or cast.scopes != flow.operations[root].scopes:
        return None
    before = {values[next(op.refs())].dtype for op in input_casts}
    return users[0] if values[cast.outputs[0]].dtype in before else None


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FormulaRow:
    """One parsed spelling of a formula, and the operators that a program needs to match it."""

    operation: str
    formula: str
    roots: frozenset[str]
    """Operators that can be the last step."""
    needs: tuple[frozenset[str], ...]
    """For each function in the formula, the operators that compute it."""
    parts: tuple[frozenset[str], ...]
    """For each factor or summand that is more than a name, the operators that may compute it."""


# Functions in formulas that authors may also write out in primitives.
_EXPANDABLE = {"silu", "gelu", "softplus", "sigmoid", "hardsigmoid", "log_sigmoid", "softmax",
                   "log_softmax", "logsumexp", "cosine_similarity"}  # fmt: skip


@functools.cache
def rows_of_all_formulas() -> tuple[_FormulaRow, ...]:
    """Return one row for each spelling of each formula; they are parsed once in a process."""
    rows: dict[tuple[str, str], _FormulaRow] = {}
    for operation, spellings in FORMULAS:
        for spelling in spellings:
            for variant in expand_optional_parts(spelling):
                for formula in expand_calls(variant):
                    tree = parse_formula(formula)
                    needs = {
                        _operators(name) for name in _function_names(formula) if name in FUNCTIONS
                    }
                    row = _FormulaRow(
                        operation,
                        formula,
                        _root_operators(tree),
                        tuple(sorted(needs, key=sorted)),
                        _operators_of_parts(tree),
                    )
                    rows.setdefault((operation, formula), row)
    return tuple(rows.values())


def expand_optional_parts(spelling: str) -> list[str]:
    """Return a formula with and without each optional part `[...]`, the longest first."""
    pieces = re.split(r"\[(.*?)\]", spelling)
    choices = [(piece, "") if i % 2 else (piece,) for i, piece in enumerate(pieces)]
    return [
        re.sub(r" +", " ", "".join(choice)).replace(" )", ")").strip()
        for choice in product(*choices)
    ]


def expand_calls(formula: str) -> list[str]:
    """Return a formula, and the same formula with a call of another operation written out.

    The operation's call is replaced by each of its own spellings.
    """
    tree = parse_formula(formula)
    name = next((n for n in _function_names(formula) if n in _EXPANDABLE), None)
    formulas = [formula]
    for operation, spellings in FORMULAS if name else ():
        if operation == name:
            formulas += [
                ast.unparse(_replace_calls(tree, name, parse_formula(variant)))
                for spelling in spellings
                for variant in expand_optional_parts(spelling)
            ]
    return formulas


def _replace_calls(tree: ast.expr, function: str, formula: ast.expr) -> ast.expr:
    """Return an expression with each call of a function replaced by a formula of its arguments."""

    class Arguments(ast.NodeTransformer):
        def __init__(self, arguments: Sequence[ast.expr]) -> None:
            self.arguments = dict(zip(("x", "y"), arguments, strict=False))

        def visit_Name(self, node: ast.Name) -> ast.expr:
            return self.arguments.get(node.id, node)

    class Calls(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> Any:
            if called_function(node) != function:
                return self.generic_visit(node)
            return Arguments(node.args).visit(copy.deepcopy(formula))

    replaced: ast.expr = Calls().visit(copy.deepcopy(tree))
    return replaced


def _function_names(formula: str) -> list[str]:
    """Return the names of the functions that a formula calls."""
    return re.findall(r"(\w+)\(", formula)


@functools.cache
def _operators(function: str) -> frozenset[str]:
    operators = frozenset(FUNCTIONS[function].operators)
    return operators | _OTHER_OPERATORS.get(function, frozenset())


# Other operators that compute a function: `x.rsqrt()` is 1 / sqrt(x), `x.sum() / n` is a mean.
_OTHER_OPERATORS = {"sqrt": frozenset({"rsqrt"}), "mean": frozenset({"sum"})}


def _root_operators(tree: ast.expr) -> frozenset[str]:
    """Return the operators that can compute the outermost step of a formula."""
    function = called_function(tree)
    if function == "mean":
        return frozenset({"mean", "div", "mul"})
    if function is not None:
        return frozenset(FUNCTIONS[function].operators)
    if isinstance(tree, ast.UnaryOp):
        return frozenset({"neg", "mul"})
    assert isinstance(tree, ast.BinOp)
    if isinstance(tree.op, (ast.Add, ast.Sub)):
        return frozenset({"add", "sub", "rsub"})
    if isinstance(tree.op, ast.Pow):
        return frozenset({"mul", "pow", "square"})
    return frozenset({"mul", "div", "reciprocal"})


def _operators_of_parts(tree: ast.expr) -> tuple[frozenset[str], ...]:
    if not isinstance(tree, ast.BinOp):
        return ()
    of_sums = isinstance(tree.op, (ast.Add, ast.Sub))
    operators = [_part_operators(node) for node, _ in (terms(tree) if of_sums else factors(tree))]
    return tuple(sorted({names for names in operators if names}, key=sorted))


def _part_operators(part: ast.expr) -> frozenset[str]:
    """Return the operators that may compute a part; an empty set means any operator."""
    function = called_function(part)
    if function in FUNCTIONS and not FUNCTIONS[function].through_views:
        return _operators(function)
    if isinstance(part, ast.BinOp):
        return frozenset(OF_SUMS if isinstance(part.op, (ast.Add, ast.Sub)) else OF_PRODUCTS)
    return frozenset()


_DEPTH = 16
"""Steps back from a formula's last operation in which all its operators must be found."""


def _find_nearby_names(flow: Flow, operator_names: list[str]) -> list[frozenset[str]]:
    """Return for each operation the names of the operators at most `_DEPTH` steps before it."""
    bits = {name: 1 << i for i, name in enumerate(sorted(set(operator_names)))}
    own_masks = [bits[name] for name in operator_names]
    masks = own_masks
    for _ in range(_DEPTH):
        masks = [
            functools.reduce(int.__or__, (masks[s] for s in sources), mask)
            for mask, sources in zip(own_masks, flow.sources, strict=True)
        ]
    names: dict[int, frozenset[str]] = {}
    for mask in masks:
        if mask not in names:
            names[mask] = frozenset(name for name, bit in bits.items() if mask & bit)
    return [names[mask] for mask in masks]
