"""Removes from a functional graph what nothing reads, and reads of a tensor's shape alone."""

from collections.abc import Sequence
from dataclasses import replace

from runner.graph.ir import DEVICE, Graph, Operation, Symbol
from runner.graph.operations import constants, kind


def remove_dead_views(graph: Graph) -> Graph:
    """Remove views, copies of state, constants and empty tensors that nothing reads.

    Compute stays, read or not, except checks: `assert (x > 0).all()` reads the number in a tensor.
    """
    read_values = set(graph.output_names())
    checked: set[str] = set()
    remaining: list[Operation] = []
    constant = constants(graph)
    for op in reversed(graph.operations):
        scattered = op.name.endswith("_scatter") or (op.name == "reshape" and op.view)
        unread = not any(name in read_values for name in op.outputs)
        outputs = [name for name in op.outputs if name]
        empty = all(graph.values[name].numel == 0 for name in outputs)
        single = bool(graph.specialisations) and all(graph.values[n].numel == 1 for n in outputs)
        if unread and (single or checked.issuperset(outputs)) and kind(op) != "random":
            checked.update(op.refs())
            continue
        if unread and (op.view or scattered or empty or constant.issuperset(outputs)):
            continue
        remaining.append(op)
        read_values.update(op.refs())
    return replace(graph, operations=tuple(reversed(remaining)))


_FILLS = {"zeros_like": "zeros", "ones_like": "ones", "full_like": "full", "new_zeros": "zeros"}


def free_fills(graph: Graph) -> Graph:
    """Write `torch.ones_like(weight)` as `torch.ones(...)` where only its shape is needed.

    Otherwise a kernel such as `torch.where(mask, torch.ones_like(weight), 0)` would hold a weight
    of which it reads no number. Where an operation reads the weight beside it, it stays. Zeros that
    the program writes into part by part are freed from any tensor.
    """
    readers: dict[str, list[Operation]] = {}
    for op in graph.operations:
        for name in op.refs():
            readers.setdefault(name, []).append(op)
    operations: list[Operation] = []
    for op in graph.operations:
        name = next(iter(op.refs()), "")
        is_fill = op.name in _FILLS and bool(name) and graph.on_cpu.isdisjoint({name, *op.outputs})
        spec = graph.values[op.outputs[0]] if is_fill else None
        fill_readers = readers.get(op.outputs[0], [])
        is_zero = op.name in {"zeros_like", "new_zeros"}
        if name in graph.states:
            beside = [r for r in fill_readers if name in r.refs()]
            is_read = any(reader.name not in _FILLS for reader in readers.get(name, ()))
            is_freed = is_read and not beside and op.name != "new_zeros"
        else:
            is_written = is_zero and _is_written_in_parts(op.outputs[0], fill_readers)
            is_freed = is_written and graph.placement_known
        if spec is not None and spec.contiguous and is_freed:
            kwargs = (("dtype", Symbol(f"torch.{spec.dtype}")), ("device", DEVICE))
            fill = (op.arg("fill_value"),) if op.name == "full_like" else ()
            schema = ("size", "fill_value")[: 1 + len(fill)]
            target = f"{_FILLS[op.name]}.default"
            op = replace(op, target=target, args=(spec.shape, *fill), kwargs=kwargs, schema=schema)
        operations.append(op)
    return replace(graph, operations=tuple(operations))


def _is_written_in_parts(name: str, readers: Sequence[Operation]) -> bool:
    """Return whether a tensor's readers are writes into parts of it, and views for them."""
    writes = [r for r in readers if r.name.endswith("_scatter") and next(r.refs()) == name]
    return bool(writes) and all(op.view or op in writes for op in readers)
