"""Computes the workload of each part: the component file that it shares with equal parts.

Two instances are the same workload if they run the same operations with the same attributes on the
same shapes, dtypes and strides, and consist of the same parts. The values of their weights do not
matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from runner.graph.ir import Operation, Recipe, Ref, State, TensorSpec, substitute
from runner.graph.operations import is_sized_by_values
from runner.tree.document import Level
from runner.tree.interface import Program
from runner.tree.naming import hash_key, name_workloads
from runner.tree.part import Part


@dataclass(frozen=True)
class Workload:
    """A component file: its name, and all instances that use it, in the order in which they run."""

    name: str
    level: Level
    parts: tuple[Part, ...]
    naming: str
    """Why it has that name."""

    @property
    def first(self) -> Part:
        """The instance from which the file takes its names."""
        return self.parts[0]


def workloads(program: Program, root: Part) -> dict[int, Workload]:
    """Return the workload of each part, by the part's id(); equal workloads are one object."""
    groups: dict[Hashable, list[Part]] = {}
    for part in root.walk():
        groups.setdefault(identity(program, part), []).append(part)
    name_of = name_workloads(program, {key: parts[0] for key, parts in groups.items()})
    workload_of: dict[int, Workload] = {}
    for key, parts in groups.items():
        name, naming = name_of[key]
        workload = Workload(name, parts[0].level, tuple(parts), naming)
        workload_of.update((id(part), workload) for part in parts)
    return workload_of


def identity(program: Program, part: Part) -> Hashable:
    """Return a key that is equal for two parts exactly if they share a file."""
    operations = [program.graph.operations[i] for i in part.operations]
    number_of: dict[str, str] = {}
    for name in (*part.io.inputs, *part.io.states, *(n for op in operations for n in op.outputs)):
        number_of[name] = f"v{len(number_of)}"
    position_of = {i: p for p, i in enumerate(part.operations)}
    values = {n: program.graph.values[n] for op in operations for n in op.outputs if n}
    for name in _selected_values(program, operations):
        del values[name]
    return (
        part.level,
        _numbered_operations(operations, number_of, values),
        tuple(program.spec(n).canonical for n in part.io.inputs),
        tuple(_weight_key(program.graph.states[n], program.spec(n)) for n in part.io.states),
        tuple(number_of[n] for n in part.io.outputs),
        _shape_of_tree(part, position_of),
    )


def _selected_values(program: Program, operations: Iterable[Operation]) -> Iterator[str]:
    """Yield what a mask selects only to be put elsewhere by it: `y[mask]` of `x[mask] = y[mask]`.

    How many numbers these are makes no difference to the operation.
    """
    for op in operations:
        if op.name == "index" and is_sized_by_values(op, program.graph.values):
            readers = [
                program.graph.operations[i] for i in program.consumers.get(op.outputs[0], ())
            ]
            if readers and all(r.name == "index_put" and r.args[1] == op.args[1] for r in readers):
                yield op.outputs[0]


def digest(program: Program, part: Part) -> str:
    """Return 16 hexadecimal digits of the identity: the same in every model, run and process."""
    return hash_key(identity(program, part))[:16]


def _numbered_operations(
    operations: Iterable[Operation], number_of: Mapping[str, str], values: Mapping[str, TensorSpec]
) -> tuple[Hashable, ...]:
    """Return the operations, with numbers in place of the names of values."""

    def to_numbered_ref(name: str) -> Ref:
        return Ref(number_of[name])

    return tuple(
        (
            op.target,
            _add_types(tuple(substitute(a, to_numbered_ref) for a in op.args)),
            _add_types(
                tuple(
                    (key, substitute(value, to_numbered_ref))
                    for key, value in op.kwargs
                    # without operands, the result's dtype is the same information
                    if key != "dtype" or any(op.refs())
                )
            ),
            tuple(values[n].canonical if n in values else None for n in op.outputs),
        )
        for op in operations
    )


def _add_types(value: object) -> object:
    """Return a value with its type: 1, 1.0 and True are equal in Python, but not as arguments."""
    if isinstance(value, tuple):
        return tuple(_add_types(v) for v in value)
    return (
        (type(value).__name__, repr(value))
        if isinstance(value, (bool, int, float, complex))
        else value
    )


def _weight_key(state: State, spec: TensorSpec) -> Hashable:
    """Return a weight's kind and shape; for a constant also how it is made."""
    content = (_recipe_key(state.recipe), state.literal) if state.kind == "constant" else None
    return (state.kind, spec.canonical, content)


def _recipe_key(recipe: Recipe | None) -> Hashable:
    """Return the operations that make a constant, without the names of values in between."""
    if recipe is None:
        return None
    number_of = {
        name: f"v{n}"
        for n, name in enumerate(name for op in recipe.operations for name in op.outputs)
    }
    return (
        *_numbered_operations(recipe.operations, number_of, recipe.specs),
        number_of.get(recipe.result),
    )


def _shape_of_tree(part: Part, position_of: dict[int, int]) -> Hashable:
    """Return the levels and operations of all parts below a part."""
    return tuple(
        (c.level, tuple(position_of[i] for i in c.operations), _shape_of_tree(c, position_of))
        for c in part.children
    )
