"""This file knows about where a program spells one of the formulas."""

import ast
import functools
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import product

from runner.graph.dataflow import Flow
from runner.graph.ir import Ref, Scope
from runner.graph.operations import is_named_activation
from runner.graph.recognition.formula_guards import (
    GUARDS,
    part_of,
    parts_of_one,
    projections_of_one,
)
from runner.graph.recognition.formula_notation import (
    FUNCTIONS,
    called,
    factors,
    known_as,
    parse,
    terms,
)
from runner.graph.recognition.formulas import FORMULAS, GATED
from runner.graph.recognition.unify import CASTS, OF_PRODUCTS, OF_SUMS, Match, Unifier

_GATED = {operation for operation, _ in GATED}


@dataclass(frozen=True, slots=True)
class Found:
    """A place where the program spells a formula."""

    operation: str
    formula: str
    members: frozenset[int]
    results: frozenset[str]


class Patterns:
    """The table, ready to be looked for in one program."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.unifier = Unifier(flow)
        self.nearby = _names_nearby(flow, self.unifier.names)
        self.by_name: dict[str, list[int]] = {}
        for index, name in enumerate(self.unifier.names):
            self.by_name.setdefault(name, []).append(index)
        present = frozenset(self.unifier.names)
        self.rows = [
            row for row in rows_of_all_formulas() if all(needed & present for needed in row.needs)
        ]
        self.calls = _calls(flow)

    def everywhere(self, taken: Container[int]) -> Iterator[Found]:
        """Where each row matches, rows further up first, as long as its last step is not taken."""
        yield from self._of(self.rows, taken)

    def across_modules(self) -> Iterator[Found]:
        """Gates whose activation is a small module of its own: `self.act(a) * b`."""
        rows = [row for row in self.rows if row.operation in _GATED]
        inside = {
            i
            for i, sources in enumerate(self.flow.sources)
            if all(self._scope(i) == self._scope(s) for s in sources)
        }
        for found in self._of(rows, inside):
            if len({self._scope(i) for i in found.members if self._computes(i)}) > 1:
                yield found

    def of(self, members: frozenset[int]) -> Found | None:
        """The formula that these operations spell, all of them: casts and constants aside."""
        compute = {i for i in members if self._computes(i)}
        for root in sorted(compute, reverse=True)[:2]:
            for row in self.rows:
                if self.unifier.names[root] in row.roots and self._could(row, root):
                    for found in self._at(row, root):
                        if {i for i in found.members if self._computes(i)} == compute:
                            return found
        return None

    def _computes(self, index: int) -> bool:
        op = self.flow.operations[index]
        return not op.view and not self.flow.constant[index] and known_as(op) not in CASTS

    def _of(self, rows: "list[_Row]", taken: Container[int]) -> Iterator[Found]:
        for row in rows:
            roots = (i for name in row.roots for i in self.by_name.get(name, ()))
            for root in sorted(roots, reverse=True):
                if root not in taken and self._could(row, root):
                    yield from self._at(row, root)

    def _could(self, row: "_Row", root: int) -> bool:
        """Whether it is worth trying: what a formula needs is nearby, its parts directly."""
        return all(needed & self.nearby[root] for needed in row.needs) and (
            not row.parts or all(part & self.unifier.parts(root) for part in row.parts)
        )

    def _at(self, row: "_Row", root: int) -> Iterator[Found]:
        flow = self.flow
        output = flow.operations[root].outputs[0]
        for match in self.unifier.match(parse(row.formula), Ref(output), Match()):
            members = self._members(row, match)
            if members is None or not self._one_place(members, gated=row.operation in _GATED):
                continue
            guard = GUARDS.get(row.operation)
            operation = guard(match, flow, root) if guard is not None else row.operation
            if operation is None:
                continue
            results = {output}
            for i in members:
                if flow.operations[i].name in {"topk", "max"}:
                    results.update(flow.operations[i].outputs[1:])
            last = _cast_back(root, members, match, flow)
            if last is not None:
                out = flow.operations[last].outputs[0]
                others = frozenset(results - {output} | {out})
                yield Found(operation, row.formula, members | {last}, others)
            yield Found(operation, row.formula, members, frozenset(results))
            return

    # --- what belongs to it -----------------------------------------------------------------------

    def _members(self, row: "_Row", match: Match) -> frozenset[int] | None:
        """What computes it, with the casts and views at its edge that nothing else reads."""
        flow = self.flow
        members = set(match.used)
        for one, other, related in (("a", "b", parts_of_one), ("x", "rest", part_of)):
            a, b = match.value(one), match.value(other)
            if isinstance(a, Ref) and isinstance(b, Ref):
                values = flow.graph.values
                if row.operation in _GATED and values[a.name].shape != values[b.name].shape:
                    return None
                views = related(a.name, b.name, flow)
                if views is None and not (
                    row.operation in _GATED and projections_of_one(a.name, b.name, flow)
                ):
                    return None
                members |= views or set()
        for index in sorted(match.edge, reverse=True):
            if not flow.escapes(index, members):
                members.add(index)
        return frozenset(members)

    def _one_place(self, members: frozenset[int], gated: bool) -> bool:
        """Whether one call of the author's code computes it; constants may come from anywhere.

        An activation that is a module of its own counts as part of the gate that calls it.
        """
        scopes = {
            self._scope(i)
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
        inside = self.calls.get(scope, frozenset())
        if not inside or not inside <= members:
            return False
        if len(inside) == 1:
            return is_named_activation(self.flow.operations[min(inside)])
        return self.of(inside) is not None

    def _scope(self, index: int) -> tuple[Scope, ...]:
        return tuple(s for s in self.flow.operations[index].scopes if not s.builtin)


def _calls(flow: Flow) -> dict[tuple[Scope, ...], frozenset[int]]:
    """What each call of a module of the author computes, the calls within it included."""
    found: dict[tuple[Scope, ...], set[int]] = {}
    for index, op in enumerate(flow.operations):
        if not op.view:
            scopes = tuple(s for s in op.scopes if not s.builtin)
            for depth in range(1, len(scopes) + 1):
                found.setdefault(scopes[:depth], set()).add(index)
    return {scopes: frozenset(inside) for scopes, inside in found.items()}


def _cast_back(root: int, members: frozenset[int], match: Match, flow: Flow) -> int | None:
    """The cast of the result to the dtype that came in, where the formula begins with a cast."""
    raised = [flow.operations[i] for i in match.edge & members]
    users = flow.users[root]
    if not raised or len(users) != 1:
        return None
    cast = flow.operations[users[0]]
    values = flow.graph.values
    if known_as(cast) not in CASTS or cast.scopes != flow.operations[root].scopes:
        return None
    before = {values[next(op.refs())].dtype for op in raised}
    return users[0] if values[cast.outputs[0]].dtype in before else None


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    operation: str
    formula: str
    roots: frozenset[str]
    """Operators that its last step can be."""
    needs: tuple[frozenset[str], ...]
    """For each function in it, the operators that compute it."""
    parts: tuple[frozenset[str], ...]
    """For each factor or summand that is more than a name, the operators that may compute it."""


# Operations that formulas call and that authors spell out there too.
_SPELLED_INSIDE = {"silu", "gelu", "softplus", "sigmoid", "hardsigmoid", "log_sigmoid", "softmax",
                   "log_softmax", "logsumexp", "cosine_similarity"}  # fmt: skip


@functools.cache
def rows_of_all_formulas() -> tuple[_Row, ...]:
    """Return one row for each spelling of each formula: parsed once in a process."""
    rows: dict[tuple[str, str], _Row] = {}
    for operation, spellings in FORMULAS:
        for spelling in spellings:
            for variant in variants(spelling):
                for formula in spelled_out(variant):
                    tree = parse(formula)
                    needs = {_operators(name) for name in _functions(formula) if name in FUNCTIONS}
                    row = _Row(
                        operation,
                        formula,
                        _roots(tree),
                        tuple(sorted(needs, key=sorted)),
                        _parts(tree),
                    )
                    rows.setdefault((operation, formula), row)
    return tuple(rows.values())


def variants(spelling: str) -> list[str]:
    """The formulas with and without each optional part, the longest first."""
    pieces = re.split(r"\[(.*?)\]", spelling)
    choices = [(piece, "") if i % 2 else (piece,) for i, piece in enumerate(pieces)]
    return [
        re.sub(r" +", " ", "".join(choice)).replace(" )", ")").strip()
        for choice in product(*choices)
    ]


def spelled_out(formula: str) -> list[str]:
    """The formula, and with a call of an operation that has rows of its own written as in each."""
    tree = parse(formula)
    name = next((n for n in _functions(formula) if n in _SPELLED_INSIDE), None)
    found = [formula]
    for operation, spellings in FORMULAS if name else ():
        if operation == name:
            found += [
                ast.unparse(_replace_calls(tree, name, parse(variant)))
                for spelling in spellings
                for variant in variants(spelling)
            ]
    return found


def _replace_calls(tree: ast.expr, function: str, formula: ast.expr) -> ast.expr:
    """Each call of a function replaced by a formula of its arguments."""

    def rewrite(node: ast.expr) -> ast.expr | None:
        if not isinstance(node, ast.Call) or called(node) != function:
            return None
        given = dict(zip(("x", "y"), node.args, strict=False))
        return _rebuilt(formula, lambda n: given.get(n.id) if isinstance(n, ast.Name) else None)

    return _rebuilt(tree, rewrite)


def _rebuilt(node: ast.expr, rewrite: Callable[[ast.expr], ast.expr | None]) -> ast.expr:
    """An expression with what `rewrite` says in place of some of its parts."""
    other = rewrite(node)
    if other is not None:
        return other
    again = functools.partial(_rebuilt, rewrite=rewrite)
    if isinstance(node, ast.BinOp):
        return ast.BinOp(again(node.left), node.op, again(node.right))
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(node.op, again(node.operand))
    if isinstance(node, ast.Compare):
        return ast.Compare(again(node.left), node.ops, [again(c) for c in node.comparators])
    if isinstance(node, ast.Call):
        return ast.Call(node.func, [again(a) for a in node.args], [])
    return node


def _functions(formula: str) -> list[str]:
    """The names of the functions that a formula calls."""
    return re.findall(r"(\w+)\(", formula)


def _operators(function: str) -> frozenset[str]:
    operators = frozenset(FUNCTIONS[function].operators)
    return operators | _ALSO.get(function, frozenset())


# What else computes a function: `x.rsqrt()` one over a root, `x.sum() / n` a mean.
_ALSO = {"sqrt": frozenset({"rsqrt"}), "mean": frozenset({"sum"})}


def _roots(tree: ast.expr) -> frozenset[str]:
    function = called(tree)
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


def _parts(tree: ast.expr) -> tuple[frozenset[str], ...]:
    if not isinstance(tree, ast.BinOp):
        return ()
    of_sums = isinstance(tree.op, (ast.Add, ast.Sub))
    found = [_made_by(node) for node, _ in (terms(tree) if of_sums else factors(tree))]
    return tuple(sorted({made for made in found if made}, key=sorted))


def _made_by(part: ast.expr) -> frozenset[str]:
    """The operators that may compute a part; none, where any may."""
    function = called(part)
    if function in FUNCTIONS and not FUNCTIONS[function].through_views:
        return _operators(function)
    if isinstance(part, ast.BinOp):
        return frozenset(OF_SUMS if isinstance(part.op, (ast.Add, ast.Sub)) else OF_PRODUCTS)
    return frozenset()


_DEPTH = 16


def _names_nearby(flow: Flow, own_names: list[str]) -> list[frozenset[str]]:
    """For each operation, which operators lie a few steps before it: whether a formula can."""
    bits = {name: 1 << i for i, name in enumerate(sorted(set(own_names)))}
    own = [bits[name] for name in own_names]
    masks = own
    for _ in range(_DEPTH):
        masks = [
            functools.reduce(int.__or__, (masks[s] for s in sources), mask)
            for mask, sources in zip(own, flow.sources, strict=True)
        ]
    names: dict[int, frozenset[str]] = {}
    for mask in masks:
        if mask not in names:
            names[mask] = frozenset(name for name, bit in bits.items() if mask & bit)
    return [names[mask] for mask in masks]
