"""Finds calls of the author's functions that an engineer would draw as one fusion."""

from collections.abc import Callable, Collection, Iterable, Sequence

from runner.graph.terms import snake_case
from runner.tree.fusions import (
    KernelFlow,
    assigned_to,
    fits_fusion,
    is_dissolved,
    is_small,
)

SMALLEST_FUNCTION = 3
"""Fewest kernels in a function call that becomes a fusion."""
_MOSTLY = 0.5
"""Share of a call's kernels in inner calls from which on these calls replace it."""

Allows = Callable[[Collection[int]], bool]
Call = tuple[str, list[int]]
"""Name of a function, and the kernels of one call of it."""


def function_calls(
    flow: KernelFlow, kernels: Sequence[int], around: int, allows: Allows, depth: int = 0
) -> list[Call]:
    """Return calls of the author's functions that become fusions, each with its function's name.

    Such a call has three kernels or more, which share data, and small enough a number of them, or
    is one block (`_is_one_block`). It is replaced by the calls inside it if it is too large, or if
    it is all of the module call around it, which has `around` kernels. `allows` tells whether
    kernels may be one part; `depth` is the number of function calls around `kernels`.
    """
    made: dict[tuple[tuple[str, str, int], ...], list[int]] = {}
    for k in kernels:
        if len(chain := flow.functions(k)) > depth:
            made.setdefault(chain[: depth + 1], []).append(k)
    found: list[Call] = []
    for chain, inside in made.items():
        for call in _calls(flow, inside, depth):
            if len(call) < SMALLEST_FUNCTION:
                continue
            called = function_calls(flow, call, around, allows, depth + 1)
            small = fits_fusion(flow, call) or _is_one_block(flow, call, called)
            whole = len(call) < around and len(_connected(flow, call, siblings=True)) == 1
            if whole and small and allows(call):
                found.append((snake_case(chain[depth][1]).strip("_"), call))
            else:
                found += called
    return found


def large_calls(flow: KernelFlow, kernels: Sequence[int], depth: int = 0) -> list[Call]:
    """Return calls of the author's functions that are too large for a fusion.

    A call is replaced by the large calls inside it if these hold most of its kernels.
    """
    made: dict[tuple[tuple[str, str, int], ...], list[int]] = {}
    for k in kernels:
        if len(chain := flow.functions(k)) > depth:
            made.setdefault(chain[: depth + 1], []).append(k)
    found: list[Call] = []
    for chain, inside in made.items():
        for call in _calls(flow, inside, depth):
            called = function_calls(flow, call, len(call), lambda _: True, depth + 1)
            if fits_fusion(flow, call) or _is_one_block(flow, call, called):
                continue
            inner = large_calls(flow, call, depth + 1)
            if sum(len(held) for _, held in inner) >= _MOSTLY * len(call):
                found += inner
            else:
                found.append((snake_case(chain[depth][1]).strip("_"), call))
    return found


def _is_one_block(flow: KernelFlow, call: Collection[int], called: list[Call]) -> bool:
    """Return whether a call is one fusion although it has more than 16 kernels.

    Most of its kernels are then in no inner function call. With one contraction at most it may have
    any number of kernels, else up to 64 that would otherwise be in no fusion.
    """
    if sum(len(inside) for _, inside in called) >= _MOSTLY * len(call):
        return False
    one = sum(flow.contractions[k] for k in call) < 2
    return one or (not called and is_small(flow, call) and is_dissolved(flow, call))


def _calls(flow: KernelFlow, kernels: list[int], depth: int) -> list[list[int]]:
    """Return one list of kernels for each call of a function.

    The next call begins where the function's first line runs again. If the lists then have unequal
    lengths, that line may be in a loop inside one call, so the data flow separates the calls
    instead.
    """
    calls: list[list[int]] = []
    before: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    for k in kernels:
        lines_to = _lines_from(flow, k, depth)
        if not calls or (lines_to == first < before):
            calls.append([])
            first = lines_to
        calls[-1].append(k)
        before = lines_to
    if len({len(call) for call in calls}) > 1:
        return _connected(flow, kernels, siblings=False)
    return calls


def _connected(flow: KernelFlow, kernels: Iterable[int], siblings: bool) -> list[list[int]]:
    """Return the kernels in groups that data flow connects.

    With `siblings`, kernels that read the same value are connected too.
    """
    part_of: dict[int | str, list[int]] = {}
    for k in kernels:
        read = flow.activations(k)
        keys = [m for _, m in read if m is not None]
        names = [flow.base(name) for name, _ in read] if siblings else []
        joined = {id(part_of[key]): part_of[key] for key in (*keys, *names) if key in part_of}
        part = sorted({m for other in joined.values() for m in other} | {k})
        part_of.update(dict.fromkeys((k, *names), part))
        part_of.update(dict.fromkeys((key for key, p in part_of.items() if id(p) in joined), part))
    return sorted({id(part): part for part in part_of.values()}.values())


def _lines_from(flow: KernelFlow, k: int, depth: int) -> tuple[int, ...]:
    """Return the lines from a function, `depth` calls below the forward, to a kernel's result."""
    (statement,) = flow.statements([k])
    inner = (line for _, _, line in flow.functions(k)[depth + 1 :])
    return (*inner, *(statement[1:] if statement is not None else ()))


def authors_name(flow: KernelFlow, kernels: Sequence[int]) -> str:
    """Return the author's name for several kernels: a function, or the variable of their result."""
    functions = {chain[-1][1] if (chain := flow.functions(k)) else "" for k in kernels}
    if len(functions) == 1 and "" not in functions:
        return snake_case(functions.pop()).strip("_")
    pointwise = all(flow.kernels[k].kind == "pointwise" for k in kernels)
    return assigned_to(flow, kernels[-1]) or ("pointwise" if pointwise else "fusion")
