"""Writes get_inputs(): drawn by the author's own rule, or like what arrives in the model.

A tensor that the model computes from nothing (a mask, positions) is computed in the same way. What
a cheap operation gives a structure (a softmax, a causal mask) is drawn before that operation. Any
other intermediate is drawn from the distribution that the graph says it has, unless those that read
it need another (a logarithm what is positive, an index an existing row).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf
from typing import Literal, NamedTuple

from runner.emit.code.literals import ATOM, COMPARISON, SUM, Text
from runner.emit.inputs.derivations import LONGEST_CONSTANT, constant_recipe, recipe_of
from runner.emit.inputs.input_strides import (
    extent,
    has_gaps,
    slice_of,
    storage_order,
    windows_of_one,
)
from runner.emit.inputs.random_numbers import is_positive, like, like_in_place, rounded
from runner.emit.inputs.tensor_recipes import Recipes
from runner.emit.inputs.typical_instance import Usual, usual_inputs
from runner.emit.inputs.value_domains import (
    INDEXES,
    NEEDS_DEFINITE,
    NEEDS_OVER_ONE,
    NEEDS_UNIT,
    bound,
    bound_of_cast,
    ends_of_groups,
    is_divisor,
    must_be_positive,
    readers,
)
from runner.emit.naming.name_tables import made_name
from runner.emit.naming.value_names import RESERVED, identifier, unique
from runner.graph.distributions.pointwise import BELOW_ZERO
from runner.graph.ir import Operation, Recipe, Ref, TensorSpec
from runner.graph.operations import is_sized_by_values, reads_only_shape
from runner.tree.interface import Program
from runner.tree.part import Part

SMALL_DIVISORS = 8
"""A divisor that is a whole number is drawn from 1 to below this."""
Tame = Literal["seen", "definite", "unit", "one"]
"""Numbers that a file draws where it gives NaN on such as are usual where it is used: those between
the least and the largest that arrived there once; symmetric matrices with positive eigenvalues
beside these; those between 0 and 1, of which all roots and powers are finite; and, in each input,
one number that arrived."""


_CHOOSING = {"nonzero", "nonzero_numpy", "argwhere"}


class Arrived(NamedTuple):
    """The numbers of a value in a run of the model."""

    least: float
    largest: float
    first: float


MOST_DRAWN = 16
"""So many times an input's elements may be drawn to make it."""
LARGE_BYTES = 1 << 30
"""An input from this size on is drawn in place, without a second one beside it."""


def inputs_text(
    program: Program,
    parts: Sequence[Part],
    names: Sequence[str],
    tame: Tame | None,
    arrived: Mapping[str, Arrived],
) -> list[str]:
    """Statements of get_inputs(), the return included; `names` are those of forward's arguments.

    `parts`: the instances of the workload, of which each input's most usual one is drawn.
    `tame`: which numbers are drawn in place of usual ones; with them a mask fills nothing with
    infinity. `arrived`: what values were in a run of the model.
    """
    part = parts[0]
    recipes = Recipes({*names})
    own = {i.name: i for i in program.graph.inputs}
    usual = usual_inputs(program, parts)
    rules = {
        name: (
            own[it.value].recipe
            if it.value in own and it.value not in program.graph.observed_values
            else constant_recipe(program, it.value)
        )
        for name, it in usual.items()
    }
    without = [name for name, recipe in rules.items() if recipe is None]
    draw = _Draw(program, usual, tame, arrived, recipes)
    structured = {name for name in without if draw.has_structure(name)}
    shown = {n: found for n in without if (found := _shown(program, parts, n))}
    apart = [n for n in without if n not in structured and n not in shown]
    lines, windows = _windows(draw, part, apart if tame != "definite" else [])
    variables = dict(zip(part.io.inputs, names, strict=True))
    bases = {base for base, _ in shown.values()}
    results: dict[str, str] = {}
    after = sorted(shown, key=lambda n: program.producers[n])
    for name in [*(n for n in part.io.inputs if n not in shown), *after]:
        variable, recipe = variables[name], rules[name]
        if recipe is not None:
            statements, value = recipes.write(recipe, result_name=variable)
        elif name in shown:
            base, views = shown[name]
            given = {base: Text(results[base])}
            statements, value = recipes.write(views, given, variable, {base: results[base]})
        elif name in structured:
            statements, value = draw.again(name, variable)
        else:
            statements, value = [], windows.get(name) or draw.one(name)
        long = statements or name in windows or len(value) > 60
        if not value.isidentifier() and len(names) > 1 and (long or name in bases):
            statements.append(f"{variable} = {value}")
            value = variable
        lines += statements
        results[name] = value
    return [*lines, f"return [{', '.join(results[name] for name in part.io.inputs)}]"]


def _shown(program: Program, parts: Sequence[Part], name: str) -> tuple[str, Recipe] | None:
    """Another input that an input is a view of, in all instances, and the views on the way."""
    place = parts[0].io.inputs.index(name)
    found = [_base_among(program, part.io.inputs, part.io.inputs[place]) for part in parts]
    both = zip(parts, found, strict=True)
    places = {part.io.inputs.index(f[0]) if f else None for part, f in both}
    if None in places or len(places) != 1 or found[0] is None:
        return None
    base, operations = found[0]
    specs = {n: program.spec(n) for op in operations for n in op.outputs if n}
    return base, Recipe(tuple(operations), name, tuple(specs.items()))


def _base_among(
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


class _Draw:
    """Expressions that draw the inputs of one file."""

    def __init__(
        self,
        program: Program,
        usual: Mapping[str, Usual],
        tame: Tame | None,
        arrived: Mapping[str, Arrived],
        recipes: Recipes,
    ) -> None:
        self.program = program
        self.usual = usual
        self.tame = tame
        self.arrived = arrived
        self.recipes = recipes

    def one(self, name: str) -> str:
        """An expression that draws a tensor like this value, with its shape, dtype and strides."""
        spec = self.program.spec(name)
        if name in self.program.graph.observed_values:
            return _as_laid_out(self.program.graph.observed_values[name], spec)
        if self.tame == "definite" and _is_square(spec.shape) and not spec.is_expanded:
            return _as_laid_out(self.numbers(self.usual[name], spec, spec.shape).text, spec)
        return self._laid_out(self.usual[name], spec).text

    def _laid_out(self, usual: Usual, spec: TensorSpec) -> Text:
        shape, back = storage_order(spec)
        text = self.numbers(usual, spec, shape)
        return Text(text.at(ATOM) + back) if back else text

    def has_structure(self, name: str) -> bool:
        """Whether cheap operations give a value a structure, so that they are run again."""
        return self._structure_of(name) is not None

    def again(self, name: str, variable: str) -> tuple[list[str], str]:
        """(statements, expression) of a value with the operations that give it its structure."""
        made = self._structure_of(name)
        assert made is not None
        recipe, begin = made
        made_by = self.program.producers
        run = {made_by[n] for op in recipe.operations for n in op.outputs if n in made_by}
        part = replace(self.usual[name].part, operations=tuple(sorted(run)))
        read = [n for op in recipe.operations for n in op.refs()]
        statements, texts = [], {}
        for value in begin:
            leaf = Usual(part, value, self.program.distributions[value])
            seen = value in self.program.graph.observed_values
            spec = self.program.spec(value)
            texts[value] = Text(self.one(value)) if seen else self._laid_out(leaf, spec)
            if read.count(value) > 1:
                variable = unique(self._wish(value), self.recipes.taken | RESERVED)
                self.recipes.taken.add(variable)
                statements.append(f"{variable} = {texts[value].text}")
                texts[value] = Text(variable)
        more, result = self.recipes.write(
            recipe, texts, variable, {value: self._wish(value) for value in begin}
        )
        return [*statements, *more], result

    def _wish(self, name: str) -> str:
        i = self.program.producers.get(name)
        if i is None:
            return "x"
        op, after = self.program.graph.operations[i], self.program.graph.operations[i + 1 :]
        statement = takewhile(lambda other: _same_line(op, other), after)
        inside = any(name in other.refs() for other in statement)
        if op.origin and len(op.origin.targets) == 1 and not inside:
            return identifier(op.origin.targets[0])
        return made_name(op.name) or "x"

    def _structure_of(self, name: str) -> tuple[Recipe, list[str]] | None:
        """The operations that give a value its structure, and the values that they begin with."""
        program = self.program
        part, value, d = (usual := self.usual[name]).part, usual.value, usual.distribution
        number = self._is_number(value)
        if name in program.graph.observed_values or (number and (self.tame or not d.structured)):
            return None
        if _chosen(program, part, value) is not None:
            return None
        if readers(program, part, value) & (NEEDS_OVER_ONE | NEEDS_UNIT | NEEDS_DEFINITE):
            return None
        if not is_positive(d) and must_be_positive(program, part, value, or_divides=False):
            return None
        recipe = (
            recipe_of(program, value, self._is_drawn)
            if number
            else recipe_of(program, value, self._is_drawn_number, inputs=True)
        )
        if recipe is None or len(recipe.operations) > LONGEST_CONSTANT:
            return None
        specs = program.graph.values | recipe.specs
        if any(is_sized_by_values(op, specs) for op in recipe.operations):
            return None
        if number and self._is_part_of_an_activation(recipe):
            return None
        made = {n for op in recipe.operations for n in op.outputs}
        begin = [n for op in recipe.operations for n in op.refs() if n not in made]
        begin = list(dict.fromkeys(begin))
        if program.spec(value).nbytes >= LARGE_BYTES:
            return None
        room = MOST_DRAWN * max(program.spec(value).numel, 1)
        fits = sum(program.spec(n).numel for n in begin) <= room
        from_numbers = bool(begin) and not number and program.spec(value).dtype != "bool"
        return (recipe, begin) if fits and not from_numbers else None

    def _is_part_of_an_activation(self, recipe: Recipe) -> bool:
        """Whether a recipe only cuts a piece out of what an activation gives: not worth drawing."""
        spec = self.program.spec
        views = [op for op in recipe.operations if op.view]
        activated = all(op.view or op.name in BELOW_ZERO for op in recipe.operations)
        return activated and any(
            len(op.outputs) > 1 or spec(op.outputs[0]).numel != spec(next(op.refs())).numel
            for op in views
        )

    def _is_drawn(self, name: str) -> bool:
        """Whether a value that others are made from is drawn, because it has no structure."""
        program = self.program
        if name in program.graph.observed_values:
            return True
        if name in program.fixed or program.is_state(name):
            return program.is_state(name) and program.graph.states[name].kind == "parameter"
        if program.distributions[name].structured:
            return False
        i = program.producers.get(name)
        if i is None:
            return True
        op = program.graph.operations[i]
        return reads_only_shape(op) or op.name not in INDEXES

    def _is_drawn_number(self, name: str) -> bool:
        """The same for what a mask or an index is made from: numbers alone are drawn."""
        given = {i.name for i in self.program.graph.inputs if i.recipe is not None}
        return name not in given and self._is_number(name) and self._is_drawn(name)

    def _is_number(self, name: str) -> bool:
        spec = self.program.spec(name)
        return spec.floating or spec.dtype.startswith("complex")

    def _fills_with_infinity(self, name: str) -> bool:
        """Whether a mask says what becomes infinite: nothing, where the original stays finite."""
        program = self.program
        for i in program.consumers.get(name, ()):
            op = program.graph.operations[i]
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

    def numbers(self, usual: Usual, spec: TensorSpec, shape: tuple[int, ...]) -> Text:
        """An expression that draws the elements of a value, in another shape."""
        program = self.program
        size = ", ".join(map(str, shape)) or "()"
        as_tuple = f"({size},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
        dtype = "" if spec.dtype == "float32" else f", dtype=torch.{spec.dtype}"
        part, name, d = usual.part, usual.value, usual.distribution
        positive = must_be_positive(program, part, name, or_divides=not spec.floating)
        if self.tame and self._fills_with_infinity(name):
            return Text(f"torch.zeros({size}, dtype=torch.bool)")
        if (chosen := _chosen(program, part, name)) is not None:
            view = "" if len(shape) == 1 else f".view({size})"
            kind = "" if spec.dtype == "bool" else f".to(torch.{spec.dtype})"
            return Text(f"(torch.arange({spec.numel}) < {chosen}){view}{kind}")
        if spec.dtype == "bool":  # at least one of a mask by whose sum something is divided
            share = min(max(d.mean, 0.1), 0.9) if d.low >= 0 and d.high <= 1 else 0.5
            draw = Text(f"torch.rand({size}) < {rounded(share)}", COMPARISON)
            return Text(f"torch.ones({size}{dtype})") if positive else draw
        if (groups := ends_of_groups(program, part, name)) is not None:
            ends = f"torch.linspace({groups / shape[0]:g}, {groups}, {shape[0]})"
            return Text(f"{ends}.to(torch.{spec.dtype})")
        if not spec.floating:
            below = bound(program, part, name, SMALL_DIVISORS if positive else 2)
            low = int(positive and below > 1)
            dtype = "" if spec.dtype == "int64" else dtype
            return Text(f"torch.randint({low}, {below}, {as_tuple}{dtype})")
        if spec.dtype.startswith("float8"):
            return Text(f"torch.randn({size}).to(torch.{spec.dtype})")
        if spec.dtype.startswith("complex"):
            return Text(f"torch.randn({size}{dtype})")
        if (rows := bound_of_cast(program, part, name)) is not None:
            return Text(f"torch.randint({rows}, {as_tuple}{dtype or ', dtype=torch.float32'})")
        reading = readers(program, part, name)
        if reading & NEEDS_OVER_ONE:
            return Text(f"torch.rand({size}{dtype}).add(1.01)")
        definite = _is_square(shape) and (reading & NEEDS_DEFINITE or self.tame == "definite")
        if self.tame and not definite and name in self.arrived:
            seen = self.arrived[name]
            if self.tame == "one":
                return Text(f"torch.full({as_tuple}, {seen.first!r}{dtype})")
            if self.tame != "unit":
                between = f"uniform_({seen.least!r}, {seen.largest!r})"
                return Text(f"torch.empty({size}{dtype}).{between}")
        if (self.tame and not definite) or reading & NEEDS_UNIT:
            return Text(f"torch.rand({size}{dtype}).clamp(0.01, 0.99)")
        if definite:
            # Rows that add up to less than the diagonal: positive eigenvalues.
            eye = f"torch.eye({shape[-1]}{dtype})"
            small = f"{0.5 / max(shape[-1], 1):.3g}"
            return Text(f"torch.full({as_tuple}, {small}{dtype}) + {eye}", SUM)
        if positive and not is_positive(d):
            return Text(f"torch.rand({size}{dtype}).add(0.01)")
        if (d.zeros or not d.square) and is_divisor(program, part, name):
            d = replace(d, zeros=0.0)  # nothing is divided by them in the model
            if not d.square:
                return Text(f"torch.rand({size}{dtype}).add(0.01)")
        if spec.nbytes >= LARGE_BYTES:
            return like_in_place(d, f"torch.randn({size}{dtype})")
        return like(d, size, as_tuple, dtype)


def _chosen(program: Program, part: Part, name: str) -> int | None:
    """How many elements of a value are not zero, where an operation of a part asks for those."""
    for i in part.operations:
        op = program.graph.operations[i]
        made = next((output for output in op.outputs if output in program.graph.values), None)
        if op.name in _CHOOSING and next(op.refs(), None) == name and made is not None:
            return program.spec(made).shape[0]
    return None


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) > 1 and shape[-1] == shape[-2]


def _same_line(op: Operation, other: Operation) -> bool:
    """Whether two operations run in one statement, whose variable is the last one's result."""
    a, b = op.origin, other.origin
    return a is not None and b is not None and (a.file, a.statement) == (b.file, b.statement)


def _as_laid_out(value: str, spec: TensorSpec) -> str:
    if spec.contiguous or spec.is_expanded:  # into what is expanded nothing can be copied
        return value
    made = f"torch.empty_strided({spec.shape}, {spec.stride}, dtype=torch.{spec.dtype})"
    return f"{made}.copy_({value})"


def _module(program: Program, name: str) -> str:
    """The author's name for the module of torch's that computes a value: `qkv`; else `buffer`."""
    i = program.producers.get(name)
    scopes = program.graph.operations[i].scopes if i is not None else ()
    attribute = scopes[-1].path.rpartition(".")[2] if scopes and scopes[-1].builtin else ""
    return attribute if attribute.isidentifier() else "buffer"


def _windows(draw: _Draw, part: Part, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Statements that draw buffers of which several inputs are windows, and those windows.

    One by one, each with what lies between its own elements, they would take more memory than in
    the model.
    """
    program = draw.program
    lines: list[str] = []
    windows: dict[str, str] = {}
    apart = [
        n for n in names if n not in program.graph.observed_values and has_gaps(program.spec(n))
    ]
    for source, group in windows_of_one(program, apart):
        specs = {name: program.spec(name) for name in group}
        length = max(begin + extent(specs[name]) for name, begin in group.items())
        found = {name: slice_of(specs[name], begin) for name, begin in group.items()}
        wholes = {each[0] if each else () for each in found.values()}
        whole = wholes.pop() if len(wholes) == 1 else ()
        rules = {draw.numbers(draw.usual[n], specs[n], whole or (length,)).text for n in group}
        if len(rules) == 1 and length < sum(map(extent, specs.values())):
            buffer = unique(_module(program, source), draw.recipes.taken | RESERVED)
            draw.recipes.taken.add(buffer)
            lines.append(f"{buffer} = {rules.pop()}")
            for name, begin in group.items():
                place = f"{specs[name].shape}, {specs[name].stride}"
                place += f", {begin}" if begin else ""
                cut = found[name]
                windows[name] = buffer + (cut[1] if whole and cut else f".as_strided({place})")
    return lines, windows
