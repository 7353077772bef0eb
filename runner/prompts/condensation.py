"""Formats many facts in few lines, without leaving out a shape.

The facts come with equal operations already merged and counted. Here, operations that differ in one
or two sizes share a line, and module paths that differ in a number share a path.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from runner.prompts.facts import Fact, TensorFacts

LEAST_ALIKE = 4
"""Fewest operations that share a line if they differ in one or two sizes."""
_SYMBOLS = ("N", "M")
_MOST_PLACES = 8


def format_lines(facts: Sequence[Fact], dtype: str) -> Iterator[str]:
    """Yield a line for each fact, or for several that only differ in sizes, in order of the first.

    `dtype` is the usual one, which is not written.
    """
    forms = [_FactForm.of(fact, dtype) for fact in facts]
    groups = _group_similar(facts, forms)
    for index, (fact, form) in enumerate(zip(facts, forms, strict=True)):
        if index not in groups:
            yield _format_line([fact], form.format_shapes({}), "")
        elif index == groups[index].members[0]:
            yield _format_line(
                [facts[member] for member in groups[index].members],
                *_format_group(form, groups[index], facts),
            )


def format_paths(places: Iterable[str]) -> str:
    """Return module paths without repetition, merged where numbers differ: `blocks.{0-11}.qkv`."""
    merged = _merge_paths([tuple(path.split(".")) for path in dict.fromkeys(places) if path])
    more = f" and {len(merged) - _MOST_PLACES} more" if len(merged) > _MOST_PLACES else ""
    return ", ".join(merged[:_MOST_PLACES]) + more


def format_tensors(tensors: Sequence[TensorFacts], dtype: str) -> str:
    """Return tensors as text: `x 4x197x384, mask 4x1x128x128 bool`."""
    return (
        ", ".join(_format_tensor(tensor, dtype, list(map(str, tensor.shape))) for tensor in tensors)
        or "nothing"
    )


# --- facts that only differ in sizes --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FactForm:
    """A fact's tensors with equal neighbours merged, and all their counts and sizes in one row."""

    inputs: tuple[TensorFacts, ...]
    weights: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    dtype: str
    numbers: tuple[int, ...]
    """For each tensor its count, negated so that it never equals a size, then its sizes."""

    @classmethod
    def of(cls, fact: Fact, dtype: str) -> "_FactForm":
        kinds: list[tuple[TensorFacts, ...]] = []
        numbers: list[int] = []
        for side in (fact.inputs, fact.weights, fact.outputs):
            runs = [(tensor, len(list(same))) for tensor, same in groupby(side)]
            kinds.append(tuple(tensor for tensor, _ in runs))
            for tensor, count in runs:
                numbers += [-count, *tensor.shape]
        return cls(kinds[0], kinds[1], kinds[2], dtype, tuple(numbers))

    @property
    def key(self) -> tuple[object, ...]:
        """Properties of the tensors, except sizes, that all facts of one line have in common."""
        return tuple(
            (kind, tensor.name, tensor.dtype, len(tensor.shape), tensor.stride and "stride")
            for kind in ("inputs", "weights", "outputs")
            for tensor in getattr(self, kind)
        )

    def format_shapes(self, symbols: dict[int, str]) -> str:
        """Return `4x197x384 → 4x197x1152; weight 1152x384`.

        `symbols`: position in `numbers` -> symbol that is written instead of the number.
        """
        number_texts = (
            symbols.get(position, str(abs(number))) for position, number in enumerate(self.numbers)
        )

        def format_side(tensors: Sequence[TensorFacts]) -> str:
            texts = []
            for tensor in tensors:
                count, sizes = next(number_texts), [next(number_texts) for _ in tensor.shape]
                texts.append(
                    ("" if count == "1" else f"{count} × ")
                    + _format_tensor(tensor, self.dtype, sizes)
                )
            return ", ".join(texts)

        inputs, weights, outputs = (
            format_side(self.inputs),
            format_side(self.weights),
            format_side(self.outputs),
        )
        flow = f"{inputs or 'nothing'} → {outputs or 'nothing'}"
        return f"{flow}; {weights}" if weights else flow


@dataclass(frozen=True, slots=True)
class _SimilarFacts:
    """Facts that share a line."""

    members: tuple[int, ...]
    """Indices of the facts."""
    positions: tuple[frozenset[int], ...]
    """For each symbol, its positions in the numbers of a form."""
    values: tuple[tuple[int, ...], ...]
    """For each member, the value of each symbol; negative for a count."""


_LineKey = tuple[tuple[frozenset[int], ...], tuple[object, ...]]
"""Key of a line: positions of its symbols, and all that its operations have in common."""


def _group_similar(facts: Sequence[Fact], forms: Sequence[_FactForm]) -> dict[int, _SimilarFacts]:
    """Return the group of each fact that shares a line with others, by the fact's index."""
    group_of: dict[int, _SimilarFacts] = {}
    for symbol_count in (1, 2):
        candidates: defaultdict[_LineKey, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        for index, (fact, form) in enumerate(zip(facts, forms, strict=True)):
            if index in group_of:
                continue
            positions_of: dict[int, frozenset[int]] = {
                value: frozenset(p for p, n in enumerate(form.numbers) if n == value)
                for value in dict.fromkeys(form.numbers)
            }
            for combination in combinations(positions_of, symbol_count):
                positions = tuple(positions_of[value] for value in combination)
                replaced = frozenset().union(*positions)
                fixed = tuple(n for p, n in enumerate(form.numbers) if p not in replaced)
                common = (fact.name, fact.spelling, fact.lines, form.key, fixed)
                candidates[positions, common].append((index, combination))
        for (positions, _), members in sorted(candidates.items(), key=lambda group: -len(group[1])):
            remaining = [
                (index, combination) for index, combination in members if index not in group_of
            ]
            if len(remaining) >= LEAST_ALIKE:
                indices, values = zip(*remaining, strict=True)
                similar = _SimilarFacts(indices, positions, values)
                group_of.update(dict.fromkeys(indices, similar))
    return group_of


def _format_group(form: _FactForm, group: _SimilarFacts, facts: Sequence[Fact]) -> tuple[str, str]:
    """Return a group's shapes with symbols, and the text of the symbols' values."""
    symbols = {
        position: name
        for name, positions in zip(_SYMBOLS, group.positions, strict=False)
        for position in positions
    }
    counts: Counter[tuple[int, ...]] = Counter()
    for index, values in zip(group.members, group.values, strict=True):
        counts[values] += len(facts[index].places)
    names = _SYMBOLS[: len(group.positions)]
    value_texts = [
        _tuple_text(map(str, map(abs, values))) + (f" ×{count}" if count > 1 else "")
        for values, count in counts.items()
    ]
    return form.format_shapes(symbols), f"; {_tuple_text(names)} = {', '.join(value_texts)}"


def _tuple_text(items: Iterable[str]) -> str:
    texts = list(items)
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


# --- one line -------------------------------------------------------------------------------------


def _format_line(facts: Sequence[Fact], shapes: str, symbol_values: str) -> str:
    name, spelling = facts[0].name, facts[0].spelling
    places = [place for fact in facts for place in fact.places]
    lines = sorted({line for fact in facts for line in fact.lines})
    is_primitive = spelling.partition("(")[0] == name
    title = spelling if is_primitive else name
    count_text = f" ×{len(places)}" if len(places) > 1 else ""
    definition = f" = {spelling}" if spelling and not is_primitive else ""
    line_text = f"line {', '.join(map(str, lines))}" if lines else ""
    source = ", ".join(filter(None, (format_paths(places), line_text)))
    return f"- {title}{count_text}{definition}: {shapes}{symbol_values}" + (
        f"  [{source}]" if source else ""
    )


def _format_tensor(tensor: TensorFacts, dtype: str, sizes: Sequence[str]) -> str:
    words = [
        tensor.name,
        "x".join(sizes) or "scalar",
        tensor.dtype if tensor.dtype != dtype else "",
    ]
    if tensor.stride is not None:
        words.append(f"stride {tensor.stride}")
    return " ".join(filter(None, words))


# --- paths ----------------------------------------------------------------------------------------


def _merge_paths(parts: Sequence[tuple[str, ...]]) -> list[str]:
    """Return paths as texts, with numbers merged if the same paths follow them."""
    tails_by_name: dict[str, list[tuple[str, ...]]] = {}
    for path in parts:
        tails_by_name.setdefault(path[0], []).append(path[1:])
    names_by_tails: dict[tuple[str, ...], list[str]] = {}
    for name, tails_of_name in tails_by_name.items():
        nonempty = [path for path in tails_of_name if path]
        tails = [f".{tail}" for tail in _merge_paths(nonempty)] if nonempty else []
        tails = ["", *tails] if len(nonempty) < len(tails_of_name) else tails
        names_by_tails.setdefault((*tails, "" if name.isdecimal() else name), []).append(name)
    return [
        f"{_number_range(names)}{tail}"
        for (*tails, _), names in names_by_tails.items()
        for tail in tails
    ]


def _number_range(names: Sequence[str]) -> str:
    """Return a single name as it is, several numbers as ranges: `{0-5,8}`."""
    if len(names) == 1:
        return names[0]
    runs: list[list[int]] = []
    for number in sorted(map(int, names)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return "{" + ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs) + "}"
