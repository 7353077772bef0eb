"""Compares the multiset of compute operations of the original with that of the kernels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from math import prod

from runner.quantities import pluralize
from runner.verify.gates.operation_identity import DispatchedOperation
from runner.verify.layout import ORIGINAL
from runner.verify.results import Coverage, OperationCount
from runner.verify.runtime.operation_watch import Event
from runner.verify.runtime.origins import Identity, Origin
from runner.verify.runtime.runner import ForwardObservation

_MAX_LINES = 3
Work = frozenset[tuple[DispatchedOperation, int | None, int]]
"""Operations with the `code` of their identity, each with the number of times that it ran."""


def compare_coverage(
    component: str, original: ForwardObservation, kernels: ForwardObservation
) -> Coverage:
    """Return the coverage of one forward by another.

    Operations that depend on no input and no weight may be recomputed or not. Operations that reach
    no output of the original may be left out; operations that reach no output of the kernels do not
    count as found. If the original computes in place on a part of a tensor, a program without
    writes copies the result back into the whole. If it writes into a tensor that is not row-major,
    such a program creates one that may be, so copies that only reorder it may appear or vanish.
    """
    live_events = [
        (e, a) for e, a in zip(original.trace.events, original.alive, strict=True) if not e.constant
    ]
    required_events = [event for event, alive in live_events if alive]
    unused_events = [event for event, alive in live_events if not alive]
    pairs = zip(kernels.trace.events, kernels.alive, strict=True)
    kernel_events = [(event, alive) for event, alive in pairs if not event.constant]
    required_counts, optional_counts, kernel_counts = (
        _count_operations(required_events),
        _count_operations(unused_events),
        _count_operations(e for e, _ in kernel_events),
    )
    reaching_counts = _count_operations(event for event, alive in kernel_events if alive)
    optional_counts.update(e.operation for e in original.trace.events if e.constant)
    copies_back = Counter(
        DispatchedOperation("copy", e.operation.outputs, (), e.operation.outputs)
        for e, _ in live_events
        if e.into_part
    )
    optional_counts.update(copies_back)
    optional_counts.update(_list_copies_to_write_into(live_events, kernel_events))
    strided_sizes = {_result_size(e.operation) for e, _ in live_events if e.into_strided}

    def drop_relayout_copies(counts: Counter[DispatchedOperation]) -> Counter[DispatchedOperation]:
        """Remove the copies that only bring such a tensor into another order."""
        return Counter(
            {
                o: n
                for o, n in counts.items()
                if o.name != "copy" or _result_size(o) not in strided_sizes
            }
        )

    missing = drop_relayout_copies(required_counts - reaching_counts)
    extra = drop_relayout_copies(kernel_counts - required_counts - optional_counts)
    if not missing and not extra:
        kernel_pairs = [
            (event, alive) for event, alive in kernel_events if event.identity.code is not None
        ]
        constants = [event for event in original.trace.events if event.constant]
        other = _find_other_operands(
            required_events, [*unused_events, *constants], kernel_pairs, copies_back.keys()
        )
        if other is not None:
            missing, extra = (Counter({event.operation: 1}) for event in other)
            required_events, kernel_events = [other[0]], [(other[1], True)]
    return Coverage(
        component=component,
        original_operations=len(required_events),
        kernel_operations=len(kernel_events),
        constant_operations=(_count_constants(original), _count_constants(kernels)),
        unused_operations=len(unused_events),
        missing=_list_counts(missing, required_events),
        extra=_list_counts(extra, [event for event, _ in kernel_events]),
    )


def _list_copies_to_write_into(
    originals: list[tuple[Event, bool]], kernels: list[tuple[Event, bool]]
) -> list[DispatchedOperation]:
    """Return the copies in the kernels into parts of which they write, as the original writes.

    `h = h.clone(); h[:, 0] = 1` stands for the original's `h[:, 0] = 1`: a kernel may not change
    its input. There are at most as many as the original has such writes.
    """

    def list_partial_writes(events: list[tuple[Event, bool]]) -> list[Event]:
        return [e for e, _ in events if e.in_place and not e.overwrites]

    targets = frozenset().union(*(e.writes for e in list_partial_writes(kernels)))
    copies = [
        e.operation
        for e, _ in kernels
        if e.operation.name == "copy" and not e.in_place and not targets.isdisjoint(e.writes)
    ]
    return copies[: len(list_partial_writes(originals))]


def _find_other_operands(
    required: list[Event],
    optional: list[Event],
    kernels: list[tuple[Event, bool]],
    copies_back: Set[DispatchedOperation],
) -> tuple[Event, Event] | None:
    """Return the first operation whose operands come from elsewhere in the kernels, on both sides.

    The operations themselves are the same, as multisets. If the original computes one of several
    equal operations from what was changed in place in part, only their other operands are compared.
    Those in `copies_back` are left out: they are there because the kernels write nothing in place.
    """
    originals = [*required, *optional]
    identities: dict[DispatchedOperation, set[Identity]] = {
        event.operation: set() for event in originals if event.identity.is_uncertain
    }
    uncertain = identities.keys() | copies_back
    for event in originals:
        if event.operation in identities:
            identities[event.operation].add(event.identity)
    missing = Counter(e.identity.code for e in required if e.operation not in uncertain)
    del missing[None]
    missing -= Counter(event.identity.code for event, alive in kernels if alive)
    known = Counter(event.identity.code for event in originals)
    extra = [event for event, _ in kernels if event.operation not in uncertain]
    extra = [event for event in extra if not _take(known, event.identity.code)]
    for event in required:
        if missing[event.identity.code]:
            same = [e for e in extra if e.operation == event.operation]
            return event, (same or extra or [event])[0]
    extra += [
        event
        for event, _ in kernels
        if event.operation not in copies_back
        and not any(
            map(event.identity.may_equal, identities.get(event.operation, [event.identity]))
        )
    ]
    for event in extra:
        same = [e for e in originals if e.operation == event.operation]
        return (same or [event])[0], event
    return _find_other_sums(required, originals, [event for event, alive in kernels if alive])


def _find_other_sums(
    required: list[Event], originals: list[Event], kernels: list[Event]
) -> tuple[Event, Event] | None:
    """Return the first operation of which no other program's has operands of the same values."""
    originals_by_code = _group_by_code(originals)
    kernels_by_code = _group_by_code(kernels)
    for event in kernels:
        same = originals_by_code.get(event.identity.code, [event])
        if not any(event.identity.has_operands_of(e.identity) for e in same):
            return same[0], event
    for event in required:
        same = kernels_by_code.get(event.identity.code, [event])
        if not any(e.identity.has_operands_of(event.identity) for e in same):
            return event, same[0]
    return None


def _group_by_code(events: list[Event]) -> dict[int | None, list[Event]]:
    groups: dict[int | None, list[Event]] = {}
    for event in events:
        if event.identity.code is not None and not event.identity.is_uncertain:
            groups.setdefault(event.identity.code, []).append(event)
    return groups


def _take(counts: Counter[int | None], code: int | None) -> bool:
    """Count down what has this code; return whether there was one."""
    counts[code] -= 1
    return counts[code] >= 0


def collect_author_calls(events: Iterable[Event]) -> set[Work]:
    """Return the work of each call of an author's function or module below the model's forward."""
    works: set[Work] = set()
    open_calls: list[tuple[str, list[Event]]] = []

    def close(depth: int) -> None:
        # The first is the model's own forward.
        works.update(work_of(call_events) for _, call_events in open_calls[max(depth, 1) :])
        del open_calls[depth:]

    for event in events:
        if event.constant:
            continue
        lines = event.calls
        common = 0
        while common < min(len(lines), len(open_calls)) and open_calls[common][0] == _call_key(
            lines, common
        ):
            common += 1
        close(common)
        open_calls += [(_call_key(lines, n), []) for n in range(common, len(lines))]
        for _, call_events in open_calls:
            call_events.append(event)
    close(0)
    return works


def _call_key(lines: tuple[str, ...], n: int) -> str:
    """Return the key of a call: the calling line and the function, without its current line."""
    return f"{lines[n - 1] if n else ''} {lines[n].rpartition(':')[0]}"


def work_of(events: Iterable[Event]) -> Work:
    """Return the work of some events, in the form of `collect_author_calls`."""
    works = Counter(
        (event.operation, None if event.identity.is_uncertain else event.identity.code)
        for event in events
        if not event.constant
    )
    return frozenset((operation, code, n) for (operation, code), n in works.items())


def unread_weight_fault(
    mapping: Mapping[str, str],
    storages: Mapping[str, int],
    original: ForwardObservation,
    kernels: ForwardObservation,
) -> str | None:
    """Return a fault if a weight reaches the original's output and not the kernels'.

    `storages`: the storage of each of the original's weights. If several children hold one weight,
    it is enough that one of them uses it.
    """
    read_storages = {
        storages[source] for name, source in mapping.items() if name in kernels.weights_used
    }
    for name, source in mapping.items():
        if source in original.weights_used and storages[source] not in read_storages:
            return f"{name} reaches no output, the original's {source} does"
    return None


def find_input_writes(
    original: ForwardObservation, kernels: ForwardObservation
) -> Iterator[tuple[str, str]]:
    """Yield file and fault of each component that writes into an input and the original does not.

    The original writes, too, if it has the operation in place, wherever that is.
    """
    in_place = Counter(e.operation for e in original.trace.events if e.in_place)
    for event in kernels.trace.events:
        if event.into_input and event.component:
            in_place[event.operation] -= 1
            if in_place[event.operation] < 0:
                name = event.operation.name
                fault = f"writes into its input ({name}) at {event.line}, the original does not"
                yield event.component, fault


def find_value_reads(
    original: ForwardObservation, kernels: ForwardObservation
) -> Iterator[tuple[str | None, str]]:
    """Yield component and fault for each place where other numbers are read than the original's.

    Where the original reads what was written in parts, an equal program may read it as something
    else: so many other places are accepted.
    """
    originals = original.trace.value_reads
    known = {read.origin for read in originals if not read.is_uncertain}
    accepted = {read.origin for read in originals if read.is_uncertain}
    others: set[Origin] = set()
    for read in kernels.trace.value_reads:
        if read.origin in known:
            continue
        others.add(read.origin)
        if len(others) > len(accepted):
            fault = f"reads values at {read.line} that {ORIGINAL} does not read there"
            yield read.component, f"{fault}: compute on tensors there"


def coverage_fault(coverage: Coverage) -> str | None:
    """Return the first difference of the multisets in one line; None if they are equal."""
    if coverage.missing and coverage.extra:
        first, second = coverage.missing[0], coverage.extra[0]
        if first.operation == second.operation:
            places = f"({', '.join(first.where[:1])}; here {', '.join(second.where[:1])})"
            return f"{first.operation} works on other values than in the original {places}"
    for counts, kind in ((coverage.missing, "missing"), (coverage.extra, "too many")):
        if counts:
            first = counts[0]
            suffix = f" and {pluralize(len(counts) - 1, 'more kind')}" if len(counts) > 1 else ""
            place = f" ({first.where[0]})" if first.where else ""
            return f"{first.count} × {first.operation} {kind}{place}{suffix}"
    return None


def _count_operations(events: Iterable[Event]) -> Counter[DispatchedOperation]:
    return Counter(event.operation for event in events)


def _result_size(operation: DispatchedOperation) -> tuple[int, str]:
    """Return the number of elements of an operation's first result, and their dtype."""
    shape, dtype = operation.outputs[0] if operation.outputs else ((), "")
    return prod(shape), dtype


def _count_constants(observation: ForwardObservation) -> int:
    return sum(event.constant for event in observation.trace.events)


def _list_counts(counts: Counter[DispatchedOperation], events: list[Event]) -> list[OperationCount]:
    lines_by_operation: dict[DispatchedOperation, list[str]] = {
        operation: [] for operation in counts
    }
    for event in events:
        lines = lines_by_operation.get(event.operation)
        if lines is not None and event.line not in lines and len(lines) < _MAX_LINES:
            lines.append(event.line)
    return [
        OperationCount(operation=str(operation), count=count, where=lines_by_operation[operation])
        for operation, count in sorted(counts.items(), key=lambda item: str(item[0]))
    ]
