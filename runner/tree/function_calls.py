"""Finds calls of the author's functions that an engineer would draw as one fusion."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from runner.graph.terms import snake_case
from runner.tree.fusions import (
    KernelFlow,
    assigned_variable,
    fits_fusion,
    is_mostly_unfused,
    is_small,
)
from runner.tree.inline_blocks import find_loops
from runner.tree.module_regions import Region

SMALLEST_FUNCTION = 3
"""Fewest kernels in a function call that becomes a fusion."""
_MOSTLY = 0.5
"""Share of a call's kernels in inner calls from which on these calls replace it."""

Allows = Callable[[Collection[int]], bool]
Call = tuple[str, list[int]]
"""Name of a function, and the kernels of one call of it."""


def find_function_calls(
    flow: KernelFlow, kernels: Sequence[int], around: int, allows: Allows, depth: int = 0
) -> list[Call]:
    """Return calls of the author's functions that become fusions, each with its function's name.

    Such a call has three kernels or more, which data flow connects, and all of them are among
    `kernels`. It is small enough for a fusion, or one block (`_is_one_block`), and not all of the
    module call around it, which has `around` kernels. Any other call is replaced by the calls
    inside it. `allows` tells whether kernels may be one part; `depth` is the number of function
    calls around `kernels`.
    """
    calls: list[Call] = []
    for name, call in _calls_at_depth(flow, kernels, depth):
        if len(call) < SMALLEST_FUNCTION:
            continue
        inner_calls = find_function_calls(flow, call, around, allows, depth + 1)
        is_small_enough = fits_fusion(flow, call) or _is_one_block(flow, call, inner_calls)
        is_connected_part = (
            len(call) < around
            and len(_connected_groups(flow, call, siblings=True)) == 1
            and not _is_part_of_call(flow, call, depth)
        )
        if is_connected_part and is_small_enough and allows(call):
            calls.append((name, call))
        else:
            calls += inner_calls
    return calls


def _is_part_of_call(flow: KernelFlow, kernels: Sequence[int], depth: int) -> bool:
    """Return whether kernels are only some of a function's call, such as one turn of its loop."""
    scopes, chain = flow.program.scopes[kernels[0]], flow.functions(kernels[0])[: depth + 1]
    of_function = [
        k
        for k, other_scopes in enumerate(flow.program.scopes)
        if other_scopes == scopes and flow.functions(k)[: depth + 1] == chain
    ]
    calls = _split_calls(flow, of_function, depth)
    whole = next(call for call in calls if kernels[0] in call)
    return any(k not in kernels and not flow.constant[k] for k in whole)


def find_large_calls(flow: KernelFlow, kernels: Sequence[int], depth: int = 0) -> list[Call]:
    """Return calls of the author's functions that are too large for a fusion.

    A call is replaced by the large calls inside it if these hold most of its kernels.
    """
    large: list[Call] = []
    for name, call in _calls_at_depth(flow, kernels, depth):
        inner_calls = find_function_calls(flow, call, len(call), lambda _: True, depth + 1)
        if fits_fusion(flow, call) or _is_one_block(flow, call, inner_calls):
            continue
        inner = find_large_calls(flow, call, depth + 1)
        if sum(len(kernels_of_call) for _, kernels_of_call in inner) >= _MOSTLY * len(call):
            large += inner
        else:
            large.append((name, call))
    return large


def find_loop_calls(flow: KernelFlow, kernels: Sequence[int]) -> list[Call]:
    """Return calls of the author's functions that run a loop and are too large for a fusion.

    The loop calls no modules.
    """
    return [
        (name, call)
        for name, call in _calls_at_depth(flow, kernels, 0)
        if not fits_fusion(flow, call)
        and call[-1] - call[0] < len(call)
        and find_loops(flow, Region(None, list(call)), set())
    ]


def _calls_at_depth(flow: KernelFlow, kernels: Sequence[int], depth: int) -> Iterator[Call]:
    """Yield the calls of functions that are `depth` calls below the forward."""
    kernels_by_chain: dict[tuple[tuple[str, str, int], ...], list[int]] = {}
    for k in kernels:
        if len(chain := flow.functions(k)) > depth:
            kernels_by_chain.setdefault(chain[: depth + 1], []).append(k)
    for chain, inside in kernels_by_chain.items():
        for call in _split_calls(flow, inside, depth):
            yield snake_case(chain[depth][1]).strip("_"), call


def _is_one_block(flow: KernelFlow, call: Collection[int], inner_calls: list[Call]) -> bool:
    """Return whether a call is one fusion although it has more than 16 kernels.

    Most of its kernels are then in no inner function call. With one contraction at most it may have
    any number of kernels, else up to 64 that would otherwise be in no fusion.
    """
    if sum(len(inside) for _, inside in inner_calls) >= _MOSTLY * len(call):
        return False
    is_around_one_contraction = sum(flow.contractions[k] for k in call) < 2
    return is_around_one_contraction or (
        not inner_calls and is_small(flow, call) and is_mostly_unfused(flow, call)
    )


def _split_calls(flow: KernelFlow, kernels: list[int], depth: int) -> list[list[int]]:
    """Return one list of kernels for each call of a function.

    The next call begins where the function's first line runs again. If that line is in a loop of
    the function, or may be since the lists have unequal lengths, the data flow separates the calls
    instead. It also does so if a function without a loop goes back to a line above, as happens if
    each call begins in another branch.
    """
    calls: list[list[int]] = []
    before: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    goes_up = False
    for k in kernels:
        lines_to = _lines_to_kernel(flow, k, depth)
        if not calls or (lines_to == first < before):
            calls.append([])
            first = lines_to
        elif lines_to[:1] < before[:1]:
            goes_up = True
        calls[-1].append(k)
        before = lines_to
    may_be_in_loop = flow.is_in_loop(kernels[0], depth) or len({len(call) for call in calls}) > 1
    if may_be_in_loop or (goes_up and not any(flow.is_in_loop(k, depth) for k in kernels)):
        return _connected_groups(flow, kernels, siblings=False)
    return calls


def _connected_groups(flow: KernelFlow, kernels: Iterable[int], siblings: bool) -> list[list[int]]:
    """Return the kernels in groups that data flow connects.

    With `siblings`, kernels that read the same value are connected too, and so are a constant's
    kernel and its readers.
    """
    part_of: dict[int | str, list[int]] = {}
    for k in kernels:
        read = flow.activations(k)
        keys = [m for _, m in (flow.inputs[k] if siblings else read) if m is not None]
        names = [flow.base(name) for name, _ in read] if siblings else []
        joined_groups = {
            id(part_of[key]): part_of[key] for key in (*keys, *names) if key in part_of
        }
        part = sorted({m for group in joined_groups.values() for m in group} | {k})
        part_of.update(dict.fromkeys((k, *names), part))
        part_of.update(
            dict.fromkeys((key for key, p in part_of.items() if id(p) in joined_groups), part)
        )
    return sorted({id(part): part for part in part_of.values()}.values())


def _lines_to_kernel(flow: KernelFlow, k: int, depth: int) -> tuple[int, ...]:
    """Return the lines from a function, `depth` calls below the forward, to a kernel's result."""
    (statement,) = flow.statements([k])
    inner = (line for _, _, line in flow.functions(k)[depth + 1 :])
    return (*inner, *(statement[1:] if statement is not None else ()))


def function_with_loop(flow: KernelFlow, kernels: Collection[int]) -> str:
    """Return the author's function with the loop of which kernels are a turn; empty if none is.

    It is the innermost one. Kernels of module calls inside the turn do not count.
    """
    outermost = min(len(flow.program.scopes[k]) for k in kernels)
    own = [k for k in kernels if len(flow.program.scopes[k]) == outermost]
    name = ""
    for depth, calls in enumerate(zip(*map(flow.functions, own), strict=False)):
        if len(set(calls)) > 1:
            break
        name = calls[0][1] if all(flow.is_in_loop(k, depth) for k in own) else name
    return snake_case(name).strip("_")


def authors_name(flow: KernelFlow, kernels: Sequence[int]) -> str:
    """Return the author's name for several kernels: a function, or the variable of their result."""
    functions = {chain[-1][1] if (chain := flow.functions(k)) else "" for k in kernels}
    if len(functions) == 1 and "" not in functions:
        return snake_case(functions.pop()).strip("_")
    pointwise = all(flow.kernels[k].kind == "pointwise" for k in kernels)
    return assigned_variable(flow, kernels[-1]) or ("pointwise" if pointwise else "fusion")
