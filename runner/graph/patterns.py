"""This file knows about formulas: how authors spell the operations of the field in primitives.

One row a spelling, in the notation of unify; `[...]` may be missing. Rows further up win.
"""

import ast
import functools
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import product

from runner.graph.flow import Flow
from runner.graph.ir import Ref
from runner.graph.unify import CASTS, FUNCTIONS, Match, Unifier, called, known_as, parse

FORMULAS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("topk_router", (  # Shazeer et al., 2017: weights of the best experts, the others zero
        "scatter(zeros_like(x), topk_indices(x), softmax(topk(x)))",
        "softmax(scatter(zeros_like(x), topk_indices(x), topk(x)))",
        "topk(softmax(x)) / (sum(topk(softmax(x))) [+ eps])",
        "softmax(topk(x))",
    )),
    ("rope", (  # Su et al., 2021: pairs rotated by their position's angle
        "x * cos + cat(-view(x), view(x)) * sin",
        "x * cos + view(stack(-view(x), view(x))) * sin",
        "cat(a * cos - b * sin, b * cos2 + a * sin2)",
        "cat(a * cos + -b * sin, b * cos2 + a * sin2)",
        "stack(a * cos - b * sin, b * cos2 + a * sin2)",
        "view_as_complex(x) * angles",
    )),
    ("swiglu", (  # Shazeer, 2020; with limits: gpt-oss
        "clamp(a, lo, hi) * sigmoid(c * clamp(a, lo, hi)) * (clamp(b) + 1)",
        "silu(a) * b",
        "a * sigmoid(a) * b",
    )),
    ("geglu", ("gelu(a) * b", "0.5 * a * (1 + erf(a / 1.414214)) * b")),
    ("reglu", ("relu(a) * b",)),
    ("glu", ("sigmoid(a) * b",)),  # Dauphin et al., 2016
    ("gated_tanh", ("tanh(a) * sigmoid(b)",)),  # van den Oord et al., 2016
    ("gelu", (  # Hendrycks and Gimpel, 2016
        "0.5 * x * (1 + erf(x / 1.414214))",
        "x * (0.5 + 0.5 * erf(x / 1.414214))",
        "0.5 * x * (1 + tanh(0.797885 * (x + 0.044715 * x**3)))",
        "0.5 * x * (1 + tanh(0.797885 * x * (1 + 0.044715 * x**2)))",
        "0.5 * x * (1 + tanh(0.797885 * x + 0.0356774 * x**3))",
        "x * sigmoid(1.595769 * (x + 0.044715 * x**3))",
    )),
    ("quick_gelu", ("x * sigmoid(1.702 * x)",)),
    ("silu", ("x * sigmoid(x)", "x / (1 + exp(-x))")),
    ("swish", ("x * sigmoid(c * x)", "x * sigmoid(weight * x)")),
    ("mish", ("x * tanh(softplus(x))", "x * tanh(log(1 + exp(x)))", "x * tanh(log1p(exp(x)))")),
    ("hardswish", (
        "x * hardsigmoid(x)",
        "x * clamp(x + 3, 0, 6) / 6",
        "x * clamp(x / 6 + 0.5, 0, 1)",
        "x * clamp((x + 3) / 6, 0, 1)",
    )),
    ("hardsigmoid", (
        "clamp(x + 3, 0, 6) / 6",
        "clamp(x / 6 + 0.5, 0, 1)",
        "clamp((x + 3) / 6, 0, 1)",
    )),
    ("softsign", ("x / (1 + abs(x))",)),
    ("softplus", ("log(1 + exp(x))", "log1p(exp(x))")),
    ("sigmoid", ("1 / (1 + exp(-x))",)),
    ("tanhshrink", ("x - tanh(x)",)),
    ("layer_norm", (  # Ba et al., 2016
        "(x - mean(x, d)) / sqrt(var(x, d) [+ eps]) [* weight] [+ bias]",
        "(x - mean(x, d)) / (std(x, d) [+ eps]) [* weight] [+ bias]",
        "(x - mean(x, d)) / (sqrt(var(x, d)) + eps) [* weight] [+ bias]",
        "(x - mean(x, d)) / sqrt(mean((x - mean(x, d))**2, d) [+ eps]) [* weight] [+ bias]",
    )),
    ("rms_norm", (  # Zhang and Sennrich, 2019
        "x / sqrt(mean(x**2, d) [+ eps]) * (1 + weight)",
        "x / sqrt(mean(x**2, d) [+ eps]) [* weight]",
        "x / (sqrt(mean(x**2, d)) + eps) [* weight]",
        "x / sqrt(sum(x**2, d) / c [+ eps]) [* weight]",
        "x / (norm(x, 2, d) * c [+ eps]) [* weight]",
        "x / clamp(norm(x, 2, d) [* c], eps) * c2 * weight",
    )),
    ("log_softmax", (
        "x - max(x, d) - log(sum(exp(x - max(x, d)), d))",
        "x - log(sum(exp(x), d))",
        "x - logsumexp(x, d)",
    )),
    ("logsumexp", ("max(x, d) + log(sum(exp(x - max(x, d)), d))", "log(sum(exp(x), d))")),
    ("softmax", (
        "exp(x - max(x, d)) / sum(exp(x - max(x, d)), d)",
        "exp(x) / sum(exp(x), d)",
    )),
    ("l1_norm", (
        "x / (norm(x, 1, d) [+ eps])",
        "x / clamp(norm(x, 1, d), eps)",
        "x / (sum(abs(x), d) [+ eps])",
        "x / (mean(abs(x), d) [+ eps])",
    )),
    ("l2_norm", (
        "x / (norm(x, 2, d) [+ eps])",
        "x / clamp(norm(x, 2, d), eps)",
        "x / sqrt(sum(x**2, d) [+ eps])",
        "x / (sqrt(sum(x**2, d)) + eps)",
    )),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A place where the program spells a formula."""

    operation: str
    formula: str
    members: frozenset[int]
    results: frozenset[str]


def formulas(flow: Flow, taken: Container[int]) -> Iterator[Found]:
    """Where each row matches, rows further up first, as long as its last step is not taken."""
    unifier = Unifier(flow)
    nearby = _names_nearby(flow, unifier.names)
    present = frozenset(unifier.names)
    by_name: dict[str, list[int]] = {}
    for index, name in enumerate(unifier.names):
        by_name.setdefault(name, []).append(index)
    for row in _rows():
        if not all(needed & present for needed in row.needs):
            continue
        for root in sorted((i for name in row.roots for i in by_name.get(name, ())), reverse=True):
            if root not in taken and all(needed & nearby[root] for needed in row.needs):
                yield from _at(row, root, unifier)


@dataclass(frozen=True, slots=True)
class _Row:
    operation: str
    formula: str
    roots: frozenset[str]
    """Operators that its last step can be."""
    needs: tuple[frozenset[str], ...]
    """For each function in it, the operators that compute it."""


@functools.cache
def _rows() -> tuple[_Row, ...]:
    rows = []
    for operation, spellings in FORMULAS:
        for spelling in spellings:
            for formula in variants(spelling):
                tree = parse(formula)
                calls = [
                    n.func.id
                    for n in ast.walk(tree)
                    if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
                ]
                needs = {_operators(name) for name in calls if name in FUNCTIONS}
                rows.append(
                    _Row(operation, formula, _roots(tree), tuple(sorted(needs, key=sorted)))
                )
    return tuple(rows)


def variants(spelling: str) -> list[str]:
    """The formulas with and without each optional part, the longest first."""
    pieces = re.split(r"\[(.*?)\]", spelling)
    choices = [(piece, "") if i % 2 else (piece,) for i, piece in enumerate(pieces)]
    return [
        re.sub(r" +", " ", "".join(choice)).replace(" )", ")").strip()
        for choice in product(*choices)
    ]


def _operators(function: str) -> frozenset[str]:
    operators = FUNCTIONS[function].operators
    return operators | {"rsqrt"} if function == "sqrt" else operators


def _roots(tree: ast.expr) -> frozenset[str]:
    function = called(tree)
    if function is not None:
        return FUNCTIONS[function].operators
    assert isinstance(tree, ast.BinOp)
    if isinstance(tree.op, (ast.Add, ast.Sub)):
        return frozenset({"add", "sub", "rsub"})
    return frozenset({"mul", "div", "reciprocal"})


_DEPTH = 12


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


def _at(row: _Row, root: int, unifier: Unifier) -> Iterator[Found]:
    flow = unifier.flow
    output = flow.operations[root].outputs[0]
    for match in unifier.match(parse(row.formula), Ref(output), Match()):
        members = _members(match, flow)
        if members is None or not _one_scope(members, flow):
            continue
        results = {output}
        if row.operation == "topk_router":
            results.update(
                o
                for i in members
                for o in flow.operations[i].outputs[1:]
                if flow.operations[i].name == "topk"
            )
        operation = _by_dimensions(row.operation, match, flow)
        last = _cast_back(root, members, match, flow)
        if last is not None:
            out = flow.operations[last].outputs[0]
            yield Found(
                operation, row.formula, members | {last}, frozenset(results - {output} | {out})
            )
        yield Found(operation, row.formula, members, frozenset(results))
        return


def _members(match: Match, flow: Flow) -> frozenset[int] | None:
    """What computes the formula, with the casts and views at its edge that nothing else reads."""
    members = set(match.used)
    a, b = match.value("a"), match.value("b")
    if isinstance(a, Ref) and isinstance(b, Ref):
        views = _parts_of_one(a.name, b.name, flow)
        if views is None:
            return None
        members |= views
    for index in sorted(match.edge, reverse=True):
        if not flow.leaves(index, members):
            members.add(index)
    return frozenset(members)


def _parts_of_one(a: str, b: str, flow: Flow) -> set[int] | None:
    """The views that read a and b from one tensor, down from what they have in common."""
    chains = []
    for name in (a, b):
        chain = [(name, -1)]
        while (index := flow.producer.get(chain[-1][0])) is not None and flow.operations[
            index
        ].view:
            chain.append((next(flow.operations[index].refs()), index))
        chains.append(chain)
    if a == b:
        return None
    above = [name for name, _ in chains[1]]
    common = next((name for name, _ in chains[0] if name in above), None)
    if common is None or common in flow.graph.states:
        return None
    views = set()
    for chain in chains:
        for name, index in chain[1:]:
            views.add(index)
            if name == common:
                break
    return views if common not in (a, b) else None


def _one_scope(members: frozenset[int], flow: Flow) -> bool:
    """Whether one call of the author's code computes it; constants may come from anywhere."""
    scopes = set()
    for index in members:
        op = flow.operations[index]
        if not op.view and not flow.constant[index]:
            scopes.add(tuple(s for s in op.scopes if not s.builtin))
    return len(scopes) <= 1


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


def _by_dimensions(operation: str, match: Match, flow: Flow) -> str:
    """Normalisations are told apart by the dimensions that they normalise over."""
    x, dims = match.value("x"), match.value("d")
    if not isinstance(x, Ref) or not isinstance(dims, tuple):
        return operation
    rank = len(flow.graph.values[x.name].shape)
    if operation == "l2_norm" and rank > 1 and len(dims) == rank:
        return "frobenius_norm"
    if operation == "layer_norm" and rank > 2:
        if dims == tuple(range(2, rank)) and rank > 3:
            return "instance_norm"
        if dims == (0, *range(2, rank)):
            return "batch_norm"
    return operation
