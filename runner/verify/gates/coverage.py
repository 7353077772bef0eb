"""This file knows about the multiset of compute operations: the original's against the kernels'."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import gcd, prod

from runner.quantities import pluralize
from runner.verify.gates.operation_identity import Operation
from runner.verify.results import Coverage, OperationCount
from runner.verify.runtime.operation_watch import Event
from runner.verify.runtime.runner import Seen

_SHOWN_PLACES = 3
Work = frozenset[tuple[Operation, int]]
"""Operations and how often each ran."""


def covered(component: str, original: Seen, kernels: Seen) -> Coverage:
    """Compare what two forwards computed.

    What depends on no input and no weight may be recomputed or not. What reaches no output of the
    original may be left out. What the original computes in place on a part of a tensor, a program
    without writes copies back into the whole. Where it writes into a tensor that does not lie row
    by row, such a program makes one that may, so that copies which only reorder it come and go.
    What reaches no output of the kernels is not found in them.
    """
    live = [
        (e, a) for e, a in zip(original.trace.events, original.alive, strict=True) if not e.constant
    ]
    required = [event for event, alive in live if alive]
    unused = [event for event, alive in live if not alive]
    also = zip(kernels.trace.events, kernels.alive, strict=True)
    ran = [(event, alive) for event, alive in also if not event.constant]
    wanted, optional, have = _counts(required), _counts(unused), _counts(e for e, _ in ran)
    reaching = _counts(event for event, alive in ran if alive)
    optional.update(e.operation for e in original.trace.events if e.constant)
    optional.update(
        Operation("copy", e.operation.outputs, (), e.operation.outputs)
        for e, _ in live
        if e.into_part
    )
    relaid = {_size(e.operation) for e, _ in live if e.relaid}

    def without(counts: Counter[Operation]) -> Counter[Operation]:
        """Leave out the copies that only bring such a tensor into another order."""
        return Counter(
            {o: n for o, n in counts.items() if o.name != "copy" or _size(o) not in relaid}
        )

    return Coverage(
        component=component,
        original_operations=len(required),
        kernel_operations=len(ran),
        constant_operations=(_constants(original), _constants(kernels)),
        unused_operations=len(unused),
        missing=_listed(without(wanted - reaching), required),
        extra=_listed(without(have - wanted - optional), [event for event, _ in ran]),
    )


def calls_of_the_author(events: Iterable[Event]) -> set[Work]:
    """What each call of an author's function or module computed, below the model's own forward.

    Of calls in a row from one line, that is what one of them did.
    """
    found: set[Work] = set()
    open_calls: list[tuple[str, Counter[Operation]]] = []

    def close(depth: int) -> None:
        for _, work in open_calls[max(depth, 1) :]:  # the first is the model's own forward
            times = gcd(*work.values()) if work else 1
            found.add(frozenset((o, n) for o, n in work.items()))
            found.add(frozenset((o, n // times) for o, n in work.items()))
        del open_calls[depth:]

    for event in events:
        if event.constant:
            continue
        lines = event.calls
        same = 0
        while same < min(len(lines), len(open_calls)) and open_calls[same][0] == _caller(
            lines, same
        ):
            same += 1
        close(same)
        open_calls += [(_caller(lines, n), Counter()) for n in range(same, len(lines))]
        for _, work in open_calls:
            work[event.operation] += 1
    close(0)
    return found


def _caller(lines: tuple[str, ...], n: int) -> str:
    """A call: the line that calls and the function that is called, which may be at any line."""
    return f"{lines[n - 1] if n else ''} {lines[n].rpartition(':')[0]}"


def work_of(events: Iterable[Event]) -> Work:
    """What was computed, as `calls_of_the_author` has it."""
    return frozenset(Counter(e.operation for e in events if not e.constant).items())


def unread(
    mapping: Mapping[str, str], places: Mapping[str, int], original: Seen, kernels: Seen
) -> str | None:
    """A weight that the original's output depends on and theirs does not, whatever its values.

    `places`: the storage of each of the original's weights. Of several children that hold one
    weight, some may compute what nobody reads.
    """
    read = {places[source] for name, source in mapping.items() if name in kernels.weights_used}
    for name, source in mapping.items():
        if source in original.weights_used and places[source] not in read:
            return f"{name} reaches no output, the original's {source} does"
    return None


def coverage_fault(coverage: Coverage) -> str | None:
    """What the multisets differ in, in one line."""
    for counts, where in ((coverage.missing, "missing"), (coverage.extra, "too many")):
        if counts:
            first = counts[0]
            more = f" and {pluralize(len(counts) - 1, 'more kind')}" if len(counts) > 1 else ""
            place = f" ({first.where[0]})" if first.where else ""
            return f"{first.count} × {first.operation} {where}{place}{more}"
    return None


def _counts(events: Iterable[Event]) -> Counter[Operation]:
    return Counter(event.operation for event in events)


def _size(operation: Operation) -> tuple[int, str]:
    """How many elements its result has, and their dtype."""
    shape, dtype = operation.outputs[0] if operation.outputs else ((), "")
    return prod(shape), dtype


def _constants(seen: Seen) -> int:
    return sum(event.constant for event in seen.trace.events)


def _listed(counts: Counter[Operation], events: list[Event]) -> list[OperationCount]:
    places: dict[Operation, list[str]] = {operation: [] for operation in counts}
    for event in events:
        found = places.get(event.operation)
        if found is not None and event.where not in found and len(found) < _SHOWN_PLACES:
            found.append(event.where)
    return [
        OperationCount(operation=str(operation), count=count, where=places[operation])
        for operation, count in sorted(counts.items(), key=lambda item: str(item[0]))
    ]
