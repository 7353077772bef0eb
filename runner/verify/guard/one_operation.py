"""Decides with the recogniser whether the calls that a kernel made are one operation.

The calls that the judge repeated are written as a short program, in text that kdrun generates. It
is captured and recognised like any problem.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from runner.errors import KdrunError
from runner.problems import find_dataset_level, read_problem
from runner.verify.guard.replica import Model
from runner.verify.guard.replica import called as function_of

if TYPE_CHECKING:
    from runner.graph.ir import Graph
    from runner.graph.recognition.recognize import Kernel

_LONGEST_LITERAL = 4096
_SMALL = 64
"""An operation on at most 1/64 of the largest tensor's elements may only prepare another one."""
_NUMBERS = 16
"""Largest number of elements of a tensor that counts as a handful of numbers."""
_NEVER_SMALL = {"contraction", "softmax", "normalization", "pooling", "scan"}
_OF_LEVEL_1 = {
    frozenset({"matmul", "triu"}),
    frozenset({"matmul", "tril"}),
    frozenset({"mul", "cumsum"}),
    frozenset({"cumsum", "cat"}),
}
"""Sets of operations that make one problem of KernelBench's first level."""
_GATED = {frozenset({name, "mul"}) for name in ("silu", "gelu", "relu", "sigmoid", "add")}
"""Pairs that are one operation because of their place in a model: gates, scaled sums."""
_CONTRACTIONS = {"matmul", "einsum", "bmm", "linear"}
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Several:
    """The reason why a kernel is more than one operation."""

    fault: str
    """The reason, in one line."""
    excused: bool = False
    """Whether the kernel is accepted if the original's author has a function that does this."""
    operations: tuple[str, ...] = ()
    """Names of all operations that the kernel computes, sorted."""


def more_than_one(model: Model, original: Path | None, aside: Path) -> Several | None:
    """Return why a kernel is more than one operation, or None if it is one.

    `original`: the problem's file if the kernel is the whole problem, else None.
    """
    program = Program(model)
    file = aside / "seen.py"
    file.write_text(program.text(), encoding="utf-8")
    try:
        found, kinds, operations = _recognized(file)
    except (KdrunError, NotImplementedError) as error:
        return Several(f"cannot be recognised as one operation: {error}")
    if len(found) <= 1 or (len(found) == 2 and frozenset(found) in _GATED):
        return None
    if len(found) == 2 and found[0] in _CONTRACTIONS and found[1] == "add" and program.adds_weight:
        return None
    level_1 = original is not None and (
        frozenset(found) in _OF_LEVEL_1 or find_dataset_level(original) == "level1"
    )
    if level_1:
        return None
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    large = sum(kind in _NEVER_SMALL for kind in kinds)
    return Several(
        f"is more than one operation: {', '.join(found[:_SHOWN])}{more}",
        excused=large <= ("contraction" not in kinds),
        operations=operations,
    )


def text_of(model: Model) -> str | None:
    """Return a model's last program as a problem's text; None if it cannot be written."""
    try:
        return Program(model).text()
    except LookupError:
        return None


def kernels_of(text: str, aside: Path) -> set[tuple[str, ...]]:
    """Return the operations of each kernel with several operations that kdrun finds in a program.

    The names of a kernel's operations are sorted.
    """
    file = aside / "original.py"
    file.write_text(text, encoding="utf-8")
    try:
        graph, kernels = _kernels(file)
    except (KdrunError, NotImplementedError):
        return set()
    computed = {_computed(graph, kernel.members) for kernel in kernels}
    return {operations for operations in computed if len(operations) > 1}


def _kernels(file: Path) -> "tuple[Graph, tuple[Kernel, ...]]":
    # These imports take a second, and only the judging of foreign kernels needs them.
    from runner.graph.normalize import normalize
    from runner.graph.recognition.recognize import recognize
    from runner.graph.tracing.capture import capture

    graph = normalize(capture(read_problem(file), "eval"))
    return graph, recognize(graph)


def _computed(graph: "Graph", places: Iterable[int]) -> tuple[str, ...]:
    """Return the sorted names of the operations at some indices, without views."""
    operations = [graph.operations[n] for n in places]
    return tuple(
        sorted(operation.name.strip("_") for operation in operations if not operation.view)
    )


def _recognized(file: Path) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Return names and kinds of a program's kernels, then the sorted names of all its operations.

    Kernels that only prepare small tensors are left out, unless the program returns their result.
    """
    graph, kernels = _kernels(file)
    largest = max((prod(value.shape) for value in graph.values.values()), default=0)
    small = max(_NUMBERS, largest // _SMALL)
    found: list[tuple[str, str]] = []
    returned = set(graph.output_names())
    last = {max(kernel.members): kernel for kernel in kernels}
    for place, operation in reversed([*enumerate(graph.operations)]):
        kernel = last.get(place)
        if kernel is None:
            if operation.view and not returned.isdisjoint(operation.outputs):
                returned.update(operation.refs())
            continue
        outputs = {name for n in kernel.members for name in graph.operations[n].outputs if name}
        size = max((prod(graph.values[name].shape) for name in outputs), default=0)
        if kernel.kind in _NEVER_SMALL or size > small or not returned.isdisjoint(outputs):
            found.append((kernel.operation, kernel.kind))
    found.reverse()
    computed = _computed(graph, range(len(graph.operations)))
    return [name for name, _ in found], [kind for _, kind in found], computed


class Program:
    """The last program of a model, as text of a problem's file."""

    def __init__(self, model: Model) -> None:
        assert model.last is not None
        program, inputs, weights = model.last
        self._program = program
        self._names = {n: f"x{n}" for n in range(len(inputs))}
        self._registered: list[str] = []
        for n, tensor in weights.items():
            if n not in self._names:
                self._names[n] = f"self.w{n}"
                made = f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype})"
                if isinstance(tensor, torch.nn.Parameter):
                    made = f"nn.Parameter({made}, requires_grad=False)"
                    self._registered.append(f"self.w{n} = {made}")
                else:
                    self._registered.append(f'self.register_buffer("w{n}", {made})')
        self._inputs = inputs
        self.adds_weight = False
        """Whether a weight is added to something."""
        self._lines: list[str] = []
        self._where: object = None
        """Source line of the last line of the text."""
        for item in program["items"]:
            first = len(self._lines)
            self._add(item)
            self._join(first, item[5] if item[0] in {"function", "operation"} else None)

    def text(self) -> str:
        """Return the text of a problem's file."""
        given = ", ".join(f"x{n}" for n in range(len(self._inputs)))
        drawn = ", ".join(
            f"torch.empty_strided({list(t.shape)}, {list(t.stride())}, dtype={t.dtype}).zero_()"
            for t in self._inputs
        )
        lines = [
            "import torch",
            "from torch import nn",
            "class Model(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *(f"        {line}" for line in self._registered),
            f"    def forward(self, {given}):",
            *(f"        {line}" for line in self._lines),
            f"        return {self._value(self._program['output'])}",
            "def get_inputs():",
            f"    return [{drawn}]",
            "def get_init_inputs():",
            "    return []",
        ]
        return "\n".join(lines) + "\n"

    def _join(self, first: int, where: object) -> None:
        """Join the calls of one source line: the recogniser reads formulas line by line."""
        made = self._lines[first:]
        if made and where is not None:
            again = first > 0 and where == self._where
            self._lines[first - again :] = ["; ".join(self._lines[first - again :])]
            self._where = where

    def _add(self, item: list[Any]) -> None:
        match item[0]:
            case "function" | "operation":
                self._call(item)
            case "given":
                tensor = self._program["given"][item[2]]
                name = self._names[item[1]] = f"t{item[1]}"
                if tensor.numel() <= _LONGEST_LITERAL and not tensor.is_complex():
                    made = f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype})"
                    self._lines.append(f"{name} = {made}".replace("nan", "float('nan')"))
                else:
                    self._registered.append(
                        f'self.register_buffer("{name}", '
                        f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype}))"
                    )
                    self._names[item[1]] = f"self.{name}"
            case "alias":
                _, number, base, shape, stride, offset, *_ = item
                name = self._names[number] = f"t{number}"
                shown = f"{self._names[base]}.as_strided({shape}, {stride}, {offset})"
                self._lines.append(f"{name} = {shown}")

    def _call(self, item: list[Any]) -> None:
        _, name, args, kwargs, shown, *_ = item
        # It refuses any other name, so that no other name gets into a text that runs here.
        function_of(item)
        called = name
        if item[0] == "operation":
            space, _, rest = name.partition("::")
            plain, _, overload = rest.partition(".")
            called = f"torch.ops.{space}.{plain}.{overload or 'default'}"
            if plain == "lift_fresh":
                self._names[shown["t"]] = self._names[args["u"][0]["t"]]
                return
        given = [self._value(value) for value in args["u"]]
        given += [f"{key}={self._value(value)}" for key, value in kwargs["d"]]
        call = f"{called}({', '.join(given)})"
        if called in {"torch.Tensor.add", "torch.add", "torch.Tensor.add_"}:
            self.adds_weight |= any(value.startswith("self.w") for value in given)
        if shown is None:
            self._lines.append(call)
        elif isinstance(shown, dict) and "t" in shown:
            known = self._names.get(shown["t"])
            name = known or self._names.setdefault(shown["t"], f"t{shown['t']}")
            self._lines.append(call if known else f"{name} = {call}")
        else:
            self._lines.append(f"r = {call}")
            self._unpack(shown, "r")

    def _unpack(self, shown: Any, place: str) -> None:
        items = shown if isinstance(shown, list) else shown.get("u", ())
        for n, item in enumerate(items):
            if isinstance(item, dict) and "t" in item:
                name = self._names.setdefault(item["t"], f"t{item['t']}")
                self._lines.append(f"{name} = {place}[{n}]")
            elif isinstance(item, dict | list):
                self._unpack(item, f"{place}[{n}]")

    def _value(self, value: Any) -> str:
        """Return the Python expression of an encoded value."""
        if isinstance(value, float):
            return f"float('{value}')" if value != value or value in _INFINITE else repr(value)
        if isinstance(value, list):
            return f"[{', '.join(map(self._value, value))}]"
        if not isinstance(value, dict):
            return repr(value)
        ((kind, told),) = value.items()
        match kind:
            case "t":
                return self._names[told]
            case "u":
                return f"({''.join(f'{self._value(item)}, ' for item in told)})"
            case "d":
                pairs = (f"{self._value(key)}: {self._value(item)}" for key, item in told)
                return f"{{{', '.join(pairs)}}}"
            case "s":
                return f"slice({', '.join(map(self._value, told))})"
            case "e":
                return "..."
            case "v":
                return f"torch.device('{told}')"
            case "k":
                return f"torch.{told}"
            case "c":
                return f"complex({told[0]}, {told[1]})"
        return f"torch.Size({told})"


_INFINITE = (float("inf"), float("-inf"))
