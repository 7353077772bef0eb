"""Writes `get_inputs()`: drawn by the author's own rule, or like the values in the model.

A tensor that the model computes from nothing (a mask, positions) is computed in the same way. A
tensor that gets a structure from a cheap operation (a softmax, a causal mask) is drawn before that
operation, which then runs. Any other intermediate is drawn from its distribution in the graph,
unless its readers need other numbers (a logarithm positive ones, an index those of existing rows).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf, sqrt
from typing import Literal, NamedTuple

from runner.emit.code.literals import ATOM, COMPARISON, SUM, Expression
from runner.emit.inputs.derivations import LONGEST_CONSTANT, constant_recipe, derive_recipe
from runner.emit.inputs.input_strides import (
    extent,
    find_slice,
    group_windows,
    has_gaps,
    storage_order,
)
from runner.emit.inputs.random_numbers import (
    draw_like,
    draw_like_in_place,
    draw_on_both_sides,
    integer_range,
    is_positive,
    round_digits,
)
from runner.emit.inputs.tensor_recipes import RecipeWriter
from runner.emit.inputs.typical_instance import TypicalInput, typical_inputs
from runner.emit.inputs.value_domains import (
    INDEXES,
    LARGEST_SATURATING,
    NEEDS_DEFINITE,
    NEEDS_OVER_ONE,
    NEEDS_UNIT,
    SATURATING,
    cast_index_bound,
    divides_its_operand,
    grouped_rows,
    index_bound,
    is_divisor,
    must_be_positive,
    only_computes,
    reader_names,
    shifted_index_range,
    telling_range,
)
from runner.emit.naming.name_tables import operator_result_name
from runner.emit.naming.value_names import RESERVED, identifier, make_unique
from runner.graph.distributions.pointwise import BELOW_ZERO
from runner.graph.ir import Operation, Recipe, Ref, TensorSpec
from runner.graph.operations import is_sized_by_values, reads_only_shape
from runner.tree.interface import Program
from runner.tree.part import Part

SMALL_DIVISORS = 8
"""A divisor that is a whole number is drawn from 1 to below this."""
SafeNumbers = Literal["seen", "definite", "unit", "one"]
"""Numbers that a file draws if it gives NaN on typical ones. `seen`: between the least and the
largest of one run of the model; `definite`: the same, but for square inputs symmetric matrices with
positive eigenvalues; `unit`: between 0 and 1, where all roots and powers are finite; `one`: in each
input a single number, the first one of that run."""


_REPEATING = {"repeat", "expand", "clone", "contiguous", "reshape"}
"""Operators that give the elements that they read, some of them several times."""
_NONZERO_OPERATORS = {"nonzero", "nonzero_numpy", "argwhere"}
"""Operators whose result has a row for each element that is not zero."""


class ObservedNumbers(NamedTuple):
    """The range and the first number of a value in a run of the model.

    Of complex numbers, the least and the largest real and imaginary part.
    """

    least: complex
    largest: complex
    first: complex


MOST_DRAWN = 16
"""Most elements that may be drawn for each element of an input."""
LARGE_BYTES = 1 << 30
"""Size from which an input is drawn in place, without a temporary tensor of the same size."""


def inputs_text(
    program: Program,
    parts: Sequence[Part],
    names: Sequence[str],
    safe_numbers: SafeNumbers | None,
    observed: Mapping[str, ObservedNumbers],
) -> list[str]:
    """Return the statements of `get_inputs()`, the return statement included.

    `parts`: instances of the workload; of each input, the typical one is drawn. `names`: names of
    forward's arguments. `safe_numbers`: kind of numbers that are drawn in place of typical ones, if
    any; a mask then fills nothing with infinity. `observed`: numbers of values in a run of the
    model.
    """
    part = parts[0]
    recipe_writer = RecipeWriter({*names})
    model_inputs = {i.name: i for i in program.graph.inputs}
    typical = typical_inputs(program, parts)
    input_recipes = {
        name: (
            model_inputs[typical_input.value].recipe
            if typical_input.value in model_inputs
            and typical_input.value not in program.graph.observed_values
            else constant_recipe(program, typical_input.value)
        )
        for name, typical_input in typical.items()
    }
    names_without_recipe = [name for name, recipe in input_recipes.items() if recipe is None]
    drawer = _InputDrawer(program, typical, safe_numbers, observed, recipe_writer)
    structured_inputs = {name for name in names_without_recipe if drawer.find_structure(name)}
    views_of_inputs = {
        n: base_input
        for n in names_without_recipe
        if (base_input := _find_base_input(program, parts, n))
    }
    independent_inputs = [
        n for n in names_without_recipe if n not in structured_inputs and n not in views_of_inputs
    ]
    lines, windows = _draw_windows(
        drawer, part, independent_inputs if safe_numbers != "definite" else []
    )
    variables = dict(zip(part.io.inputs, names, strict=True))
    bases = {base for base, _ in views_of_inputs.values()}
    results: dict[str, str] = {}
    view_inputs = sorted(views_of_inputs, key=lambda n: program.producers[n])
    for name in [*(n for n in part.io.inputs if n not in views_of_inputs), *view_inputs]:
        variable, recipe = variables[name], input_recipes[name]
        if recipe is not None:
            statements, value = recipe_writer.write(recipe, result_name=variable)
        elif name in views_of_inputs:
            base, views = views_of_inputs[name]
            source_expressions = {base: Expression(results[base])}
            statements, value = recipe_writer.write(
                views, source_expressions, variable, {base: results[base]}
            )
        elif name in structured_inputs:
            statements, value = drawer.rebuild_structure(name, variable)
        else:
            statements, value = [], windows.get(name) or drawer.draw_tensor(name)
        needs_variable = statements or name in windows or len(value) > 60
        if not value.isidentifier() and len(names) > 1 and (needs_variable or name in bases):
            statements.append(f"{variable} = {value}")
            value = variable
        lines += statements
        results[name] = value
    return [*lines, f"return [{', '.join(results[name] for name in part.io.inputs)}]"]


def _find_base_input(
    program: Program, parts: Sequence[Part], name: str
) -> tuple[str, Recipe] | None:
    """Return the input that another one is a view of in all instances, and the views, or None."""
    position = parts[0].io.inputs.index(name)
    bases = [_find_view_base(program, part.io.inputs, part.io.inputs[position]) for part in parts]
    pairs = zip(parts, bases, strict=True)
    base_positions = {
        part.io.inputs.index(found_base[0]) if found_base else None for part, found_base in pairs
    }
    if None in base_positions or len(base_positions) != 1 or bases[0] is None:
        return None
    base, operations = bases[0]
    specs = {n: program.spec(n) for op in operations for n in op.outputs if n}
    return base, Recipe(tuple(operations), name, tuple(specs.items()))


def _find_view_base(
    program: Program, inputs: Sequence[str], name: str
) -> tuple[str, list[Operation]] | None:
    views: list[Operation] = []
    value = name
    while (i := program.producers.get(value)) is not None:
        op = program.graph.operations[i]
        if not op.view or len(sources := [*op.refs()]) != 1:
            return None
        views.insert(0, op)
        value = sources[0]
        if value in inputs:
            return value, views
    return None


class _InputDrawer:
    """Writes the expressions that draw the inputs of one file."""

    def __init__(
        self,
        program: Program,
        typical: Mapping[str, TypicalInput],
        safe_numbers: SafeNumbers | None,
        observed: Mapping[str, ObservedNumbers],
        recipe_writer: RecipeWriter,
    ) -> None:
        self.program = program
        self.typical = typical
        self.safe_numbers = safe_numbers
        self.observed = observed
        self.recipe_writer = recipe_writer

    def draw_tensor(self, name: str) -> str:
        """Return an expression that draws a tensor with a value's shape, dtype and strides."""
        spec = self.program.spec(name)
        if name in self.program.graph.observed_values:
            return _copy_with_strides(self.program.graph.observed_values[name], spec)
        if self.safe_numbers == "definite" and _is_square(spec.shape) and not spec.is_expanded:
            return _copy_with_strides(
                self.draw_numbers(self.typical[name], spec, spec.shape).text, spec
            )
        return self._draw_with_strides(self.typical[name], spec).text

    def _draw_with_strides(self, typical: TypicalInput, spec: TensorSpec) -> Expression:
        shape, layout_call = storage_order(spec)
        expression = self.draw_numbers(typical, spec, shape)
        return Expression(expression.at(ATOM) + layout_call) if layout_call else expression

    def rebuild_structure(self, name: str, variable: str) -> tuple[list[str], str]:
        """Return (statements, expression) that run the operations behind a value's structure."""
        structure = self.find_structure(name)
        assert structure is not None
        recipe, sources = structure
        producers = self.program.producers
        indices = {producers[n] for op in recipe.operations for n in op.outputs if n in producers}
        part = replace(self.typical[name].part, operations=tuple(sorted(indices)))
        operands = [n for op in recipe.operations for n in op.refs()]
        statements, expressions = [], {}
        for value in sources:
            source_input = TypicalInput(part, value, self.program.distributions[value])
            is_recorded = value in self.program.graph.observed_values
            spec = self.program.spec(value)
            expressions[value] = (
                Expression(self.draw_tensor(value))
                if is_recorded
                else self._draw_with_strides(source_input, spec)
            )
            if operands.count(value) > 1:
                variable = make_unique(
                    self._preferred_name(value), self.recipe_writer.taken_names | RESERVED
                )
                self.recipe_writer.taken_names.add(variable)
                statements.append(f"{variable} = {expressions[value].text}")
                expressions[value] = Expression(variable)
        new_statements, result = self.recipe_writer.write(
            recipe, expressions, variable, {value: self._preferred_name(value) for value in sources}
        )
        return [*statements, *new_statements], result

    def _preferred_name(self, name: str) -> str:
        i = self.program.producers.get(name)
        if i is None:
            return "x"
        op, later_operations = (
            self.program.graph.operations[i],
            self.program.graph.operations[i + 1 :],
        )
        statement = takewhile(lambda later: _share_statement(op, later), later_operations)
        is_read_inside = any(name in later.refs() for later in statement)
        if op.origin and len(op.origin.targets) == 1 and not is_read_inside:
            return identifier(op.origin.targets[0])
        return operator_result_name(op.name) or "x"

    def find_structure(self, name: str) -> tuple[Recipe, list[str]] | None:
        """Return the operations that give a value its structure, and the values that they read.

        None if it has no structure or is not worth the drawing.
        """
        program = self.program
        part, value, d = (typical := self.typical[name]).part, typical.value, typical.distribution
        is_number = self._is_number(value)
        if name in program.graph.observed_values or (
            is_number and (self.safe_numbers or not d.structured)
        ):
            return None
        if _count_nonzero(program, part, value) is not None:
            return None
        if reader_names(program, part, value) & (NEEDS_OVER_ONE | NEEDS_UNIT | NEEDS_DEFINITE):
            return None
        if not is_positive(d) and must_be_positive(program, part, value, or_divides=False):
            return None
        recipe = (
            derive_recipe(program, value, self._is_drawn)
            if is_number
            else derive_recipe(program, value, self._is_drawn_number, inputs=True)
        )
        if recipe is None or len(recipe.operations) > LONGEST_CONSTANT:
            return None
        specs = program.graph.values | recipe.specs
        if any(is_sized_by_values(op, specs) for op in recipe.operations):
            return None
        if is_number and self._only_cuts_activation(recipe):
            return None
        computed = {n for op in recipe.operations for n in op.outputs}
        sources = [n for op in recipe.operations for n in op.refs() if n not in computed]
        sources = list(dict.fromkeys(sources))
        if program.spec(value).nbytes >= LARGE_BYTES:
            return None
        largest_numel = MOST_DRAWN * max(program.spec(value).numel, 1)
        fits = sum(program.spec(n).numel for n in sources) <= largest_numel
        from_numbers = bool(sources) and not is_number and program.spec(value).dtype != "bool"
        return (recipe, sources) if fits and not from_numbers else None

    def _only_cuts_activation(self, recipe: Recipe) -> bool:
        """Return whether a recipe only cuts a piece out of an activation's result.

        Drawing all of the result for that is not worth it.
        """
        spec = self.program.spec
        views = [op for op in recipe.operations if op.view]
        runs_activation = all(op.view or op.name in BELOW_ZERO for op in recipe.operations)
        return runs_activation and any(
            len(op.outputs) > 1 or spec(op.outputs[0]).numel != spec(next(op.refs())).numel
            for op in views
        )

    def _is_drawn(self, name: str) -> bool:
        """Return whether a recipe ends at a value, which is drawn because it has no structure."""
        program = self.program
        if name in program.graph.observed_values:
            return True
        if name in program.fixed_values or program.is_state(name):
            return program.is_state(name) and program.graph.states[name].kind == "parameter"
        if program.distributions[name].structured or divides_its_operand(program, name):
            return False
        i = program.producers.get(name)
        if i is None:
            return True
        op = program.graph.operations[i]
        return reads_only_shape(op) or op.name not in INDEXES

    def _is_drawn_number(self, name: str) -> bool:
        """Return whether the recipe of a mask or an index ends at a value: it draws only floats."""
        drawn_by_author = {i.name for i in self.program.graph.inputs if i.recipe is not None}
        return name not in drawn_by_author and self._is_number(name) and self._is_drawn(name)

    def _is_number(self, name: str) -> bool:
        """Return whether a value has floating-point or complex elements."""
        spec = self.program.spec(name)
        return spec.floating or spec.dtype.startswith("complex")

    def _fills_with_infinity(self, name: str) -> bool:
        """Return whether a value is a mask that says which elements become infinite."""
        program = self.program
        for i in program.consumers.get(name, ()):
            op = program.graph.operations[i]
            if (op.view or op.name in _REPEATING) and any(
                map(self._fills_with_infinity, op.outputs)
            ):
                return True
            if op.name not in {"masked_fill", "index_put"} or name == next(op.refs()):
                continue
            value = op.arg("value", op.arg("values"))
            if isinstance(value, Ref):
                state = program.graph.states.get(value.name)
                if state is not None and "inf" in (state.literal or ""):
                    return True
            elif value in (inf, -inf):
                return True
        return False

    def draw_numbers(
        self, typical: TypicalInput, spec: TensorSpec, shape: tuple[int, ...]
    ) -> Expression:
        """Return an expression that draws the elements of a value, in a given shape."""
        program = self.program
        size = ", ".join(map(str, shape)) or "()"
        as_tuple = f"({size},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
        dtype = "" if spec.dtype == "float32" else f", dtype=torch.{spec.dtype}"
        part, name, d = typical.part, typical.value, typical.distribution
        needs_positive = must_be_positive(program, part, name, or_divides=not spec.floating)
        if self.safe_numbers and self._fills_with_infinity(name):
            return Expression(f"torch.zeros({size}, dtype=torch.bool)")
        if (nonzero_count := _count_nonzero(program, part, name)) is not None:
            view = "" if len(shape) == 1 else f".view({size})"
            kind = "" if spec.dtype == "bool" else f".to(torch.{spec.dtype})"
            return Expression(f"(torch.arange({spec.numel}) < {nonzero_count}){view}{kind}")
        if spec.dtype == "bool":  # If something is divided by a mask's sum, all of it is true.
            share = min(max(d.mean, 0.1), 0.9) if d.low >= 0 and d.high <= 1 else 0.5
            draw = Expression(f"torch.rand({size}) < {round_digits(share)}", COMPARISON)
            return Expression(f"torch.ones({size}{dtype})") if needs_positive else draw
        if (groups := grouped_rows(program, part, name)) is not None:
            linspace = f"torch.linspace({groups / shape[0]:g}, {groups}, {shape[0]})"
            return Expression(f"{linspace}.to(torch.{spec.dtype})")
        if not spec.floating:
            upper_bound = index_bound(program, part, name, SMALL_DIVISORS if needs_positive else 2)
            lowest = int(needs_positive and upper_bound > 1)
            if upper_bound == 2 and not self.safe_numbers and only_computes(program, part):
                lowest, upper_bound = integer_range(d, spec.dtype)
            if (shifted := shifted_index_range(program, part, name)) is not None:
                lowest, upper_bound = shifted
            dtype = "" if spec.dtype == "int64" else dtype
            return Expression(f"torch.randint({lowest}, {upper_bound}, {as_tuple}{dtype})")
        if spec.dtype.startswith("float8"):
            return Expression(f"torch.randn({size}).to(torch.{spec.dtype})")
        if spec.dtype.startswith("complex"):
            return Expression(
                self._draw_seen_complex(name, size, as_tuple, spec.dtype)
                or f"torch.randn({size}{dtype})"
            )
        if (row_count := cast_index_bound(program, part, name)) is not None:
            return Expression(
                f"torch.randint({row_count}, {as_tuple}{dtype or ', dtype=torch.float32'})"
            )
        operators = reader_names(program, part, name)
        if operators & NEEDS_OVER_ONE:
            return Expression(f"torch.rand({size}{dtype}).add(1.01)")
        is_definite = _is_square(shape) and (
            operators & NEEDS_DEFINITE or self.safe_numbers == "definite"
        )
        if self.safe_numbers and not is_definite and name in self.observed:
            numbers = self.observed[name]
            if self.safe_numbers == "one":
                return Expression(f"torch.full({as_tuple}, {numbers.first!r}{dtype})")
            if self.safe_numbers != "unit":
                uniform_call = f"uniform_({numbers.least!r}, {numbers.largest!r})"
                return Expression(f"torch.empty({size}{dtype}).{uniform_call}")
        if (self.safe_numbers and not is_definite) or operators & NEEDS_UNIT:
            return Expression(f"torch.rand({size}{dtype}).clamp(0.01, 0.99)")
        if is_definite:
            # Rows that add up to less than the diagonal make all eigenvalues positive.
            eye = f"torch.eye({shape[-1]}{dtype})"
            small = f"{0.5 / max(shape[-1], 1):.3g}"
            return Expression(f"torch.full({as_tuple}, {small}{dtype}) + {eye}", SUM)
        if needs_positive and not is_positive(d):
            return Expression(f"torch.rand({size}{dtype}).add(0.01)")
        if (d.zeros or not d.square) and is_divisor(program, part, name):
            d = replace(d, zeros=0.0)  # The model divides by none of the zeros.
            if not d.square:
                return Expression(f"torch.rand({size}{dtype}).add(0.01)")
        if spec.nbytes >= LARGE_BYTES:
            return draw_like_in_place(d, f"torch.randn({size}{dtype})")
        bounds = telling_range(program, part, name)
        if bounds and (across := draw_on_both_sides(d, *bounds, size, dtype)):
            return across
        if operators & SATURATING and d.square > LARGEST_SATURATING**2:
            d = d.scale(LARGEST_SATURATING / sqrt(d.square))
        return draw_like(d, size, as_tuple, dtype)

    def _draw_seen_complex(self, name: str, size: str, as_tuple: str, dtype: str) -> str | None:
        """Return an expression of complex numbers as seen in the model; None for typical ones."""
        if self.safe_numbers in {None, "unit"} or name not in self.observed:
            return None
        least, largest, first = self.observed[name]
        if self.safe_numbers == "one":
            return f"torch.full({as_tuple}, {first!r}, dtype=torch.{dtype})"
        part_dtype = ", dtype=torch.float64" if dtype == "complex128" else ""
        parts = [
            f"torch.empty({size}{part_dtype}).uniform_({low!r}, {high!r})"
            for low, high in ((least.real, largest.real), (least.imag, largest.imag))
        ]
        return f"torch.complex({', '.join(parts)})"


def _count_nonzero(program: Program, part: Part, name: str) -> int | None:
    """Return how many elements of a value are not zero, if an operation looks for them."""
    for i in part.operations:
        op = program.graph.operations[i]
        indices = next((output for output in op.outputs if output in program.graph.values), None)
        if op.name in _NONZERO_OPERATORS and next(op.refs(), None) == name and indices is not None:
            return program.spec(indices).shape[0]
    return None


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) > 1 and shape[-1] == shape[-2]


def _share_statement(op: Operation, later: Operation) -> bool:
    """Return whether two operations run in one statement of the author's."""
    first_origin, later_origin = op.origin, later.origin
    return (
        first_origin is not None
        and later_origin is not None
        and (first_origin.file, first_origin.statement)
        == (later_origin.file, later_origin.statement)
    )


def _copy_with_strides(value: str, spec: TensorSpec) -> str:
    if spec.contiguous or spec.is_expanded:  # An expanded tensor cannot be copied into.
        return value
    buffer = f"torch.empty_strided({spec.shape}, {spec.stride}, dtype=torch.{spec.dtype})"
    return f"{buffer}.copy_({value})"


def _module_attribute(program: Program, name: str) -> str:
    """Return the author's attribute of the torch.nn module that computes a value, else `buffer`."""
    i = program.producers.get(name)
    scopes = program.graph.operations[i].scopes if i is not None else ()
    attribute = scopes[-1].path.rpartition(".")[2] if scopes and scopes[-1].builtin else ""
    return attribute if attribute.isidentifier() else "buffer"


def _draw_windows(
    drawer: _InputDrawer, part: Part, names: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """Return statements that draw buffers that several inputs share, and expressions of the inputs.

    Drawn one by one, each with the gaps between its elements, they would take more memory than in
    the model.
    """
    program = drawer.program
    lines: list[str] = []
    windows: dict[str, str] = {}
    with_gaps = [
        n for n in names if n not in program.graph.observed_values and has_gaps(program.spec(n))
    ]
    for source, group in group_windows(program, with_gaps):
        specs = {name: program.spec(name) for name in group}
        length = max(offset + extent(specs[name]) for name, offset in group.items())
        slices = {name: find_slice(specs[name], offset) for name, offset in group.items()}
        buffer_shapes = {cut_slice[0] if cut_slice else () for cut_slice in slices.values()}
        buffer_shape = buffer_shapes.pop() if len(buffer_shapes) == 1 else ()
        draws = {
            drawer.draw_numbers(drawer.typical[n], specs[n], buffer_shape or (length,)).text
            for n in group
        }
        if len(draws) == 1 and length < sum(map(extent, specs.values())):
            buffer = make_unique(
                _module_attribute(program, source), drawer.recipe_writer.taken_names | RESERVED
            )
            drawer.recipe_writer.taken_names.add(buffer)
            lines.append(f"{buffer} = {draws.pop()}")
            for name, offset in group.items():
                layout = f"{specs[name].shape}, {specs[name].stride}"
                layout += f", {offset}" if offset else ""
                cut = slices[name]
                windows[name] = buffer + (
                    cut[1] if buffer_shape and cut else f".as_strided({layout})"
                )
    return lines, windows
