"""This file knows about saying many facts in few lines, without leaving out a shape.

Equal operations are counted already. Here operations that differ in one or two sizes are one line,
and module paths that differ in a number are one path.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from runner.prompts.facts import Fact, Tensor

LEAST_ALIKE = 4
"""So many operations that differ in one or two sizes are one line."""
_SYMBOLS = ("N", "M")
_MOST_PLACES = 8


def lines(facts: Sequence[Fact], dtype: str) -> Iterator[str]:
    """A line for each fact, or for several that differ in sizes alone, in the order of the first.

    `dtype` is the one that goes without saying.
    """
    forms = [_Form.of(fact, dtype) for fact in facts]
    alike = _alike(facts, forms)
    for number, (fact, form) in enumerate(zip(facts, forms, strict=True)):
        if number not in alike:
            yield _line([fact], form.shown({}), "")
        elif number == alike[number].members[0]:
            yield _line(
                [facts[n] for n in alike[number].members], *_together(form, alike[number], facts)
            )


def paths(places: Iterable[str]) -> str:
    """`blocks.{0-11}.attn.qkv`: every path once, as few as they can be."""
    merged = _merged([tuple(path.split(".")) for path in dict.fromkeys(places) if path])
    more = f" and {len(merged) - _MOST_PLACES} more" if len(merged) > _MOST_PLACES else ""
    return ", ".join(merged[:_MOST_PLACES]) + more


def tensors(many: Sequence[Tensor], dtype: str) -> str:
    """`x 4x197x384, mask 4x1x128x128 bool`."""
    return ", ".join(_shape(one, dtype, list(map(str, one.shape))) for one in many) or "nothing"


# --- what differs in sizes alone ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """A fact's tensors with their sizes taken out: equal neighbours are one with a count."""

    inputs: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    dtype: str
    numbers: tuple[int, ...]
    """For each tensor its count, negative so that no size is mistaken for it, then its sizes."""

    @classmethod
    def of(cls, fact: Fact, dtype: str) -> "_Form":
        kinds: list[tuple[Tensor, ...]] = []
        numbers: list[int] = []
        for tensors in (fact.inputs, fact.weights, fact.outputs):
            runs = [(one, len(list(same))) for one, same in groupby(tensors)]
            kinds.append(tuple(one for one, _ in runs))
            for one, count in runs:
                numbers += [-count, *one.shape]
        return cls(kinds[0], kinds[1], kinds[2], dtype, tuple(numbers))

    @property
    def key(self) -> tuple[object, ...]:
        """What has to be the same of all that are in one line."""
        return tuple(
            (kind, one.name, one.dtype, len(one.shape), one.stride and "stride")
            for kind in ("inputs", "weights", "outputs")
            for one in getattr(self, kind)
        )

    def shown(self, symbols: dict[int, str]) -> str:
        """`4x197x384 → 4x197x1152; weight 1152x384`, with symbols where they are given."""
        waiting = (symbols.get(p, str(abs(n))) for p, n in enumerate(self.numbers))

        def some(tensors: Sequence[Tensor]) -> str:
            said = []
            for one in tensors:
                count, sizes = next(waiting), [next(waiting) for _ in one.shape]
                said.append(
                    ("" if count == "1" else f"{count} × ") + _shape(one, self.dtype, sizes)
                )
            return ", ".join(said)

        inputs, weights, outputs = some(self.inputs), some(self.weights), some(self.outputs)
        flow = f"{inputs or 'nothing'} → {outputs or 'nothing'}"
        return f"{flow}; {weights}" if weights else flow


@dataclass(frozen=True, slots=True)
class _Alike:
    members: tuple[int, ...]
    positions: tuple[frozenset[int], ...]
    """For each symbol, where it stands."""
    values: tuple[tuple[int, ...], ...]
    """For each member, the value of each symbol."""


_Line = tuple[tuple[frozenset[int], ...], tuple[object, ...]]
"""Where operations of one line differ, and what is the same of all."""


def _alike(facts: Sequence[Fact], forms: Sequence[_Form]) -> dict[int, _Alike]:
    """For each fact that is in a line with others: with which, and where they differ."""
    found: dict[int, _Alike] = {}
    for symbols in (1, 2):
        groups: defaultdict[_Line, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        for number, (fact, form) in enumerate(zip(facts, forms, strict=True)):
            if number in found:
                continue
            where: dict[int, frozenset[int]] = {
                value: frozenset(p for p, n in enumerate(form.numbers) if n == value)
                for value in dict.fromkeys(form.numbers)
            }
            for chosen in combinations(where, symbols):
                positions = tuple(where[value] for value in chosen)
                free = frozenset().union(*positions)
                rest = tuple(n for p, n in enumerate(form.numbers) if p not in free)
                same = (fact.name, fact.spelling, fact.lines, form.key, rest)
                groups[positions, same].append((number, chosen))
        for (positions, _), members in sorted(groups.items(), key=lambda group: -len(group[1])):
            left = [(number, chosen) for number, chosen in members if number not in found]
            if len(left) >= LEAST_ALIKE:
                numbers, values = zip(*left, strict=True)
                one = _Alike(numbers, positions, values)
                found.update(dict.fromkeys(numbers, one))
    return found


def _together(form: _Form, alike: _Alike, facts: Sequence[Fact]) -> tuple[str, str]:
    """The shapes with symbols, and the values of those."""
    symbols = {
        p: name
        for name, positions in zip(_SYMBOLS, alike.positions, strict=False)
        for p in positions
    }
    counts: Counter[tuple[int, ...]] = Counter()
    for number, values in zip(alike.members, alike.values, strict=True):
        counts[values] += len(facts[number].places)
    names = _SYMBOLS[: len(alike.positions)]
    said = [
        _pair(map(str, map(abs, values))) + (f" ×{count}" if count > 1 else "")
        for values, count in counts.items()
    ]
    return form.shown(symbols), f"; {_pair(names)} = {', '.join(said)}"


def _pair(said: Iterable[str]) -> str:
    texts = list(said)
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


# --- one line -------------------------------------------------------------------------------------


def _line(facts: Sequence[Fact], shown: str, sizes: str) -> str:
    name, spelling = facts[0].name, facts[0].spelling
    places = [place for fact in facts for place in fact.places]
    lines = sorted({line for fact in facts for line in fact.lines})
    itself = spelling.partition("(")[0] == name
    called = spelling if itself else name
    times = f" ×{len(places)}" if len(places) > 1 else ""
    made_of = f" = {spelling}" if spelling and not itself else ""
    at = f"line {', '.join(map(str, lines))}" if lines else ""
    where = ", ".join(filter(None, (paths(places), at)))
    return f"- {called}{times}{made_of}: {shown}{sizes}" + (f"  [{where}]" if where else "")


def _shape(one: Tensor, dtype: str, sizes: Sequence[str]) -> str:
    said = [one.name, "x".join(sizes) or "scalar", one.dtype if one.dtype != dtype else ""]
    if one.stride is not None:
        said.append(f"stride {one.stride}")
    return " ".join(filter(None, said))


# --- paths ----------------------------------------------------------------------------------------


def _merged(parts: Sequence[tuple[str, ...]]) -> list[str]:
    """Paths by their first name; numbers that are followed by the same are one."""
    below: dict[str, list[tuple[str, ...]]] = {}
    for path in parts:
        below.setdefault(path[0], []).append(path[1:])
    same: dict[tuple[str, ...], list[str]] = {}
    for name, rest in below.items():
        deeper = [path for path in rest if path]
        tails = [f".{tail}" for tail in _merged(deeper)] if deeper else []
        tails = ["", *tails] if len(deeper) < len(rest) else tails
        same.setdefault((*tails, "" if name.isdecimal() else name), []).append(name)
    return [f"{_range(names)}{tail}" for (*tails, _), names in same.items() for tail in tails]


def _range(names: Sequence[str]) -> str:
    """`{0-5,8}`."""
    if len(names) == 1:
        return names[0]
    runs: list[list[int]] = []
    for number in sorted(map(int, names)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return "{" + ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs) + "}"
