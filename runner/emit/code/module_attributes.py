"""Writes the `__init__` statements that make a class's modules, weights and constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

import torch

from runner.emit.code.module_choice import ModuleChoice, module_call
from runner.emit.code.operation_code import Expression
from runner.emit.inputs.tensor_recipes import RecipeWriter
from runner.emit.naming.value_names import RESERVED, identifier, make_unique, relative_path
from runner.graph.ir import Operation, State, TensorSpec
from runner.graph.operations import is_random
from runner.graph.terms import snake_case
from runner.graph.tracing.deciding_values import random_mask_text
from runner.tree.interface import Program

LONGEST_PARAMETER_RECIPE = 4
SHORTEST_RUN = 3
"""Fewest equal modules in a row that a list writes as one repetition."""
_TAKEN_NAMES = {
    *("train", "eval", "to", "children", "modules", "parameters", "buffers", "apply", "half"),
    *("float", "double", "bfloat16", "type", "cpu", "cuda", "xpu", "ipu", "mps", "mtia"),
    *("add_module", "backward", "extra_repr", "share_memory", "state_dict", "load_state_dict"),
    *("to_empty", "zero_grad", "requires_grad", "grad", "grad_fn", "grad_dtype", "retain_grad"),
    *("retains_grad", "layout", "names", "stride", "seed", "manual_seed", "initial_seed"),
    *("numpy", "storage", "untyped_storage", "storage_type", "storage_offset", "data_ptr"),
    *("const_data_ptr", "element_size", "itemsize", "nbytes", "dim_order", "pin_memory"),
    *("record_stream", "resize", "set_", "map_", "as_subclass", "from_file", "output_nr"),
    *("reinforce", "volatile", "hash_tensor", "to_mkldnn", "module_load", "dump_patches"),
    *("call_super_init", "encode", "translate", "maketrans", "format_map"),
}
"""Names of modules and tensors that mean something else than a child or a weight.

Readers, and judges of a file's source, would take `self.grad(x)` for a gradient.
"""
_TAKEN_PREFIXES = ("is_", "register_", "named_", "get_", "set_", "float8_")


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter or buffer of an emitted class."""

    local: str
    """Dotted name in the class."""
    position: int
    """Position of its state among the part's states."""
    sibling: str = ""
    """Name of a buffer beside that state that no operation reads: `num_batches_tracked`; else ''.
    """


class ModuleAttributes:
    """The attributes of one class: assigns them on first use, and collects what `__init__` runs."""

    def __init__(
        self, program: Program, states: tuple[str, ...], base: str, *, name_by_class: bool = False
    ) -> None:
        """Start without attributes.

        `states`: the states that the part reads. `base`: path of the author's module around it.
        `name_by_class`: name modules after their class, because one file serves several places.
        """
        self.program, self.name_by_class = program, name_by_class
        self.base = common_path([program.graph.states[n].path for n in states], base)
        self.positions = {name: p for p, name in enumerate(states)}
        self.weights: list[Weight] = []
        self.init_lines: list[str] = []
        """Statements of `__init__`."""
        self.names: set[str] = set(RESERVED)
        """Attribute names that are not free."""
        self._recipe_writer = RecipeWriter(set())
        self._modules: dict[object, str] = {}
        self._states: dict[str, str] = {}
        self._kinds = [program.graph.states[name].kind for name in states]
        self._first_names: dict[int, str] = {}
        self._anchor = ""

    def _add_weight(self, weight: Weight) -> None:
        """Record a weight; tie it to the first one if it is the same parameter."""
        self.weights.append(weight)
        if weight.sibling or self._kinds[weight.position] != "parameter":
            return
        first = self._first_names.setdefault(weight.position, weight.local)
        if first != weight.local:
            self.init_lines.append(
                f"self.{_attribute_expression(weight.local)} = self.{_attribute_expression(first)}"
            )

    def use_module(self, op: Operation) -> tuple[str, ModuleChoice] | None:
        """Return (attribute, call) of the nn module that runs an operation, None if there is none.

        The module is made on its first use. A buffer is no module's weight: it stays
        `F.embedding(x, self.codes)`, because other operations may read the buffer as well.
        """
        graph = self.program.graph
        call = module_call(op, graph.values, self.program.is_weight, training=graph.mode == "train")
        if call is None or any(
            name in {"weight", "bias"} and graph.states[state].kind == "buffer"
            for name, state in call.weights
        ):
            return None
        key = (call.cls, call.arguments, call.weights)
        if key not in self._modules:
            attribute = self.reserve_name(self._module_name(call, op))
            self._modules[key] = attribute
            self._make_module(attribute, call)
        return self._modules[key], call

    def _module_name(self, call: ModuleChoice, op: Operation) -> str:
        path = self._weight_path(call.weights[0][1], op).rpartition(".")[0] if call.weights else ""
        return (not self.name_by_class and self._relative_name(path)) or snake_case(call.cls)

    def _weight_path(self, state: str, op: Operation) -> str:
        """Return a weight's path; for one that modules share, the path in the module that runs."""
        graph = self.program.graph
        path = graph.states[state].path
        running_path = f"{op.scopes[-1].path if op.scopes else ''}.{path.rpartition('.')[2]}"
        is_shared = running_path in graph.state_names and graph.tied.get(
            running_path, running_path
        ) == graph.tied.get(path, path)
        return running_path if is_shared else path

    def _relative_name(self, path: str) -> str:
        """Return an attribute name for a path relative to the class's own, or '' for a number."""
        local_path = relative_path(path, self.base) or path.rpartition(".")[2]
        if self.base and local_path == path:  # A module further out passes it in.
            local_path = path.rpartition(".")[2]
        pieces = local_path.split(".")
        while len(pieces) > 1 and pieces[0].isdigit():
            pieces = pieces[1:]
        return "" if pieces[0].isdigit() else "_".join(pieces)

    def _make_module(self, attribute: str, call: ModuleChoice) -> None:
        arguments = ", ".join(f"{name}={value}" for name, value in call.arguments)
        self.init_lines.append(f"self.{attribute} = nn.{call.cls}({arguments})")
        for name, value in call.weights:
            self._add_weight(Weight(f"{attribute}.{name}", self.positions[value]))
        for name in call.extra:
            self.weights.append(
                Weight(f"{attribute}.{name}", self.positions[call.weights[-1][1]], name)
            )

    def use_state(self, name: str) -> Expression:
        """Return the expression of a weight that an operation reads directly: `self.scale`.

        The attribute is made on its first use.
        """
        if name not in self._states:
            state = self.program.graph.states[name]
            attribute = self.reserve_name(
                identifier(self._relative_name(state.path) or state.path.rpartition(".")[2])
            )
            self._states[name] = attribute
            self._make_state(attribute, state, self.program.spec(name))
            if state.kind != "constant" or is_loaded_constant(state):
                self._add_weight(Weight(attribute, self.positions[name]))
        return Expression(f"self.{self._states[name]}")

    def _make_state(self, attribute: str, state: State, spec: TensorSpec) -> None:
        value = self._initial_value(state, spec)
        if state.kind == "parameter":
            gradient = "" if state.requires_grad else ", requires_grad=False"
            self.init_lines.append(f"self.{attribute} = nn.Parameter({value}{gradient})")
        elif state.kind == "buffer" or is_loaded_constant(state):
            persistence = "" if state.in_checkpoint else ", persistent=False"
            self.init_lines.append(f'self.register_buffer("{attribute}", {value}{persistence})')
        else:
            self.init_lines.append(f"self.{attribute} = {value}")

    def _initial_value(self, state: State, spec: TensorSpec) -> str:
        recipe = None if is_loaded_constant(state) else state.recipe
        if recipe is not None and (
            state.kind != "parameter" or len(recipe.operations) <= LONGEST_PARAMETER_RECIPE
        ):
            is_drawn = any(map(is_random, recipe.operations))
            recipe_writer = (
                RecipeWriter({*self._recipe_writer.taken_names})
                if is_drawn
                else self._recipe_writer
            )
            lines, value = recipe_writer.write(recipe)
            self.init_lines += lines
            return value
        if state.literal is not None:
            return state.literal
        return random_tensor(spec, state)

    def device_anchor(self) -> str:
        """Return a tensor that moves with the module: the first weight, else an empty buffer."""
        for weight in self.weights:
            if self._kinds[weight.position] != "constant":
                return f"self.{_attribute_expression(weight.local)}"
        if not self._anchor:
            self._anchor = self.reserve_name("anchor")
            self.init_lines.append(
                f'self.register_buffer("{self._anchor}", torch.empty(0), persistent=False)'
            )
        return f"self.{self._anchor}"

    def reserve_name(self, preferred: str) -> str:
        """Return a free attribute name and reserve it."""
        name = identifier(preferred)
        owners = (torch.Tensor, torch.nn.Module, torch)
        is_taken = name.startswith(_TAKEN_PREFIXES) and any(hasattr(o, name) for o in owners)
        if is_taken or name in _TAKEN_NAMES:
            name += "_part"
        name = make_unique(name, self.names)
        self.names.add(name)
        return name

    def add_child(
        self, preferred: str, construction: str, weights: Sequence[Weight], positions: Sequence[int]
    ) -> str:
        """Add another emitted class with its weights, and return its attribute.

        `positions`: position of each of its states among this class's states.
        """
        attribute = self.reserve_name(preferred)
        self.init_lines.append(f"self.{attribute} = {construction}")
        self._add_child_weights(attribute, weights, positions)
        return attribute

    def add_children(
        self,
        preferred: str,
        constructions: Sequence[str],
        weights: Sequence[Sequence[Weight]],
        positions: Sequence[Sequence[int]],
    ) -> str:
        """Add a list of emitted classes, one per construction, and return its attribute."""
        attribute = self.reserve_name(preferred)
        self.init_lines.append(f"self.{attribute} = {module_list(constructions)}")
        for k, (child_weights, child_positions) in enumerate(zip(weights, positions, strict=True)):
            self._add_child_weights(f"{attribute}.{k}", child_weights, child_positions)
        return attribute

    def _add_child_weights(
        self, prefix: str, weights: Sequence[Weight], positions: Sequence[int]
    ) -> None:
        for weight in weights:
            self._add_weight(
                Weight(f"{prefix}.{weight.local}", positions[weight.position], weight.sibling)
            )


_NUMBERED_CALL = re.compile(r"(\w+\(\w+=)(\d+)\)")


def module_list(constructions: Sequence[str]) -> str:
    """Return an `nn.ModuleList` of constructions, as a generator if they are equal.

    Also a generator if their only number grows evenly.
    """
    if len({*constructions}) == 1:
        return f"nn.ModuleList({constructions[0]} for _ in range({len(constructions)}))"
    matches = [match for text in constructions if (match := _NUMBERED_CALL.fullmatch(text))]
    numbers = [int(match[2]) for match in matches]
    if len(numbers) == len(constructions) and len({match[1] for match in matches}) == 1:
        first, step = numbers[0], numbers[1] - numbers[0]
        if step > 0 and numbers == [first + k * step for k in range(len(numbers))]:
            construction = f"{matches[0][1]}{first} + {step} * i)"
            return f"nn.ModuleList({construction} for i in range({len(numbers)}))"
    runs = [(text, len(list(run))) for text, run in groupby(constructions)]
    items = [
        f"*({text} for _ in range({count}))" if count >= SHORTEST_RUN else ", ".join([text] * count)
        for text, count in runs
    ]
    return "nn.ModuleList([" + ", ".join(items) + "])"


def _attribute_expression(name: str) -> str:
    """Return a weight's name as a Python expression: `steps[0].linear.weight`."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", name)


def common_path(states: Sequence[str], base: str) -> str:
    """Return the path of the innermost module that holds all states if it is inside `base`.

    Otherwise return `base`.
    """
    paths = [path.split(".")[:-1] for path in states]
    if len(paths) < 2:
        return base
    common = [
        pieces[0] for pieces in takewhile(lambda p: len({*p}) == 1, zip(*paths, strict=False))
    ]
    module_path = ".".join(common)
    return module_path if relative_path(module_path, base) != module_path or not base else base


def is_loaded_constant(state: State) -> bool:
    """Return whether a state is a constant that cannot be recomputed.

    Such a tensor in a plain attribute is handed over like a weight.
    """
    if state.kind != "constant":
        return False
    if state.recipe is None:
        return state.literal is None
    return any(map(is_random, state.recipe.operations))


_BYTES = {"int8": "-127, 128", "uint8": "0, 256"}
"""Maps a dtype to the bounds between which its numbers are drawn."""


def random_tensor(spec: TensorSpec, state: State) -> str:
    """Return an expression of placeholder values in a state's shape; weights are loaded over them.

    A parameter gets both signs; a buffer or constant gets none below 0, as most tables have
    (filters, windows, frequencies). A mask has as many true elements as in the model; if that is
    unknown, about half, since a mask may select what is kept or what is left out. Bytes are
    drawn, as they are quantised weights; other integers are 0, as they may be indices.
    """
    shape = ", ".join(map(str, spec.shape))
    dtype = "" if spec.dtype == "float32" else f", dtype=torch.{spec.dtype}"
    if spec.dtype == "bool":
        if state.ones == spec.numel or (state.ones is None and spec.numel <= 1):
            return f"torch.ones({shape or '()'}, dtype=torch.bool)"
        if state.ones is None:
            return f"(torch.rand({shape}) < 0.5)"
        return random_mask_text(tuple(spec.shape), state.ones)
    if spec.dtype in _BYTES:
        return f"torch.randint({_BYTES[spec.dtype]}, {tuple(spec.shape)}{dtype})"
    if not spec.floating:
        return f"torch.zeros({shape or '()'}{dtype})"
    draw = "randn" if state.kind == "parameter" else "rand"
    if spec.dtype.startswith("float8"):
        return f"torch.{draw}({shape or '()'}).to(torch.{spec.dtype})"
    return f"torch.{draw}({shape or '()'}{dtype})"
