"""Merges classes that differ only in numbers into one, and names the numbers as its arguments.

For example `InvertedResidual(in_channels=16, hidden=96, out_channels=24, stride=2)`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from runner.emit.code.line_breaks import split_arguments, split_comment
from runner.emit.naming.value_names import identifier, make_unique

MOST_PARAMETERS = 8
"""Most numbers that a class takes; if more differ, each variant is a class of its own."""

_NUMBER = re.compile(r"(?<![\w.\"])(\d+\.?\d*(?:e-?\d+)?)(?![\w.])")
_CONSTRUCTION = re.compile(r"(self\.(\w+) = [\w.]+\()(\w+=.*)\)")
_DEFAULTS = {"stride": "1", "padding": "0", "dilation": "1", "groups": "1", "bias": "True"}
_INPUTS = {"in_channels", "in_features", "input_size"}
_OUTPUTS = {"out_channels", "out_features", "hidden_size"}
_BOTH = {"channels", "features"}
_NEUTRAL = {"num_features", "num_channels", "normalized_shape"}
_SETTINGS = {"kernel_size", "stride", "padding", "dilation", "output_padding", "bias", "eps"}
_PLACES = {
    ".view(": "batch", ".reshape(": "batch", ".expand(": "batch", ".uniform_(-": "bound",
    "in range(": "count",
}  # fmt: skip
"""Text before a number -> role of the number."""
LOCAL = "local "
"""Prefix of the name of a variable that the author's `__init__` computes."""
UNNAMED = "size"
"""Name of a number about which nothing is known; a class has at most one."""

_Key = tuple[str, tuple[str, ...]]
"""Identity of a parameter: `size` or the keyword of a setting, and its value in each variant."""


@dataclass(slots=True)
class _Use:
    """A place in a statement at which the variants have different numbers."""

    keyword: str
    """Keyword argument that the number is, or ''."""
    attribute: str
    """Attribute that the statement assigns to, or ''."""
    values: tuple[str, ...]
    """Number in each variant."""
    place: str = ""
    """Role of the number in its call, if that is known: `batch`, `bound`, `count`."""
    twice: bool = False
    """Whether the next length in the shape is the same, as for a square."""
    in_comment: bool = False
    """Whether the number stands in the comment with the shape."""

    @property
    def key(self) -> _Key:
        """Identity of the parameter that stands for the number."""
        return self.keyword if self.keyword in _SETTINGS else "size", self.values


_Statement = list[str | _Use]
"""A statement as text between the numbers that vary."""


@dataclass(frozen=True, slots=True)
class Template:
    """The statements of a class with parameters, and the parameters' values in each variant."""

    made: tuple[str, ...]
    """Statements of `__init__`."""
    lines: tuple[str, ...]
    """Statements of `forward`."""
    parameters: tuple[str, ...]
    """Names of the parameters of `__init__`."""
    values: tuple[tuple[str, ...], ...] = field(default=())
    """For each parameter its value in each variant."""

    def arguments(self, variant: int) -> str:
        """Return the constructor arguments of a variant: `in_channels=16, stride=2`."""
        pairs = zip(self.parameters, self.values, strict=True)
        return ", ".join(f"{name}={values[variant]}" for name, values in pairs)


def merge_variants(
    variants: Sequence[tuple[Sequence[str], Sequence[str]]],
    told: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> Template | None:
    """Return one class for all variants, each given as the statements of `__init__` and `forward`.

    `told`: (attribute, keyword) -> the author's name for the keyword's value where the attribute is
    made, '' for an expression without a name. None if the variants differ in more than numbers, or
    in too many of them.
    """
    if len(variants) == 1:
        return Template(tuple(variants[0][0]), tuple(variants[0][1]), ())
    made = _aligned([variant[0] for variant in variants])
    lines = _aligned([variant[1] for variant in variants])
    if made is None or lines is None:
        return None
    uses = [piece for s in (*made, *lines) for piece in s if isinstance(piece, _Use)]
    assigned = [re.match(r"(?:self\.)?(\w+) = ", text) for text in variants[0][0]]
    taken = {match[1] for match in assigned if match}
    names = _Names([use for use in uses if not use.in_comment], taken, told)
    parameters = names.parameters
    unnamed = sum(name.startswith(UNNAMED) for name in parameters.values())
    if len(parameters) > MOST_PARAMETERS or unnamed > 1:
        return None
    in_forward = [p.key for s in lines for p in s if isinstance(p, _Use) and not p.in_comment]
    kept = [f"self.{name} = {name}" for name in dict.fromkeys(map(names.base, in_forward))]
    return Template(
        (*kept, *(_filled(statement, names, "") for statement in made)),
        tuple(_filled(statement, names, "self.") for statement in lines),
        tuple(parameters.values()),
        tuple(values for _, values in parameters),
    )


def _filled(statement: _Statement, names: _Names, at: str) -> str:
    """Return a statement with parameters in place of its varying numbers.

    `at` stands before each parameter: `self.` in `forward`.
    """
    pieces = []
    for piece, after in zip(statement, [*statement[1:], ""], strict=True):
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        text = names.text(piece.key, "" if piece.in_comment else at)
        whole = pieces[-1][-1:] in "=([" or pieces[-1].endswith(", ")
        alone = whole and isinstance(after, str) and after[:1] in ",)]"
        pieces.append(text if alone or text.isidentifier() else f"({text})")
    return "".join(pieces)


# --- differences ----------------------------------------------------------------------------------


def _aligned(variants: Sequence[Sequence[str]]) -> list[_Statement] | None:
    """Return statements merged over all variants; None if they differ in more than numbers."""
    if len({len(statements) for statements in variants}) > 1:
        return None
    aligned = [_merged(statements) for statements in zip(*variants, strict=True)]
    found = [statement for statement in aligned if statement is not None]
    return found if len(found) == len(aligned) else None


def _merged(statements: Sequence[str]) -> _Statement | None:
    """Return one statement for several that differ only in numbers, None if they differ in more.

    In the comment with the shape, a length that no parameter stands for becomes `_`.
    """
    if len(set(statements)) == 1:
        return [statements[0]]
    parted = [split_comment(statement) for statement in statements]
    codes = [code for code, _ in parted]
    merged = _construction(codes) or _tokens(codes)
    shapes = _tokens([comment for _, comment in parted])
    if merged is None or shapes is None:
        return merged
    for piece in shapes:
        if isinstance(piece, _Use):
            piece.in_comment = True
    return [*merged, *shapes]


def _construction(codes: Sequence[str]) -> _Statement | None:
    """Merge constructions such as `self.conv = nn.Conv2d(in_channels=16, stride=2)`.

    Some of them may leave out an argument that has its default. None if they cannot be merged.
    """
    matches = [_CONSTRUCTION.fullmatch(code) for code in codes]
    found = [match for match in matches if match is not None]
    if len(found) < len(codes) or len({match[1] for match in found}) > 1:
        return None
    given = [dict(_pair(a) for a in split_arguments(match[3])) for match in found]
    keywords = list(dict.fromkeys(key for each in sorted(given, key=len)[::-1] for key in each))
    if any(key not in each and key not in _DEFAULTS for each in given for key in keywords):
        return None
    pieces: _Statement = [found[0][1]]
    for n, key in enumerate(keywords):
        values = tuple(each.get(key, _DEFAULTS.get(key, "")) for each in given)
        pieces.append(f"{', ' if n else ''}{key}=")
        same = len(set(values)) == 1
        pieces.append(values[0] if same else _Use(key, found[0][2], values))
    return [*pieces, ")"]


def _pair(argument: str) -> tuple[str, str]:
    key, _, value = argument.partition("=")
    return key, value


def _tokens(codes: Sequence[str]) -> _Statement | None:
    """Merge texts that are the same between their numbers; None if they are not."""
    split = [_NUMBER.split(code) for code in codes]
    if len({len(tokens) for tokens in split}) > 1:
        return None
    pieces: _Statement = []
    for place, tokens in enumerate(zip(*split, strict=True)):
        if len(set(tokens)) == 1:
            pieces.append(tokens[0])
        elif place % 2 == 0:
            return None
        else:
            before = split[0][place - 1]
            word = re.search(r"(\w+)=$", before)
            name = next((name for end, name in _PLACES.items() if before.endswith(end)), "")
            twice = all(
                t[place].isdigit() and t[place + 1 : place + 3] == [", ", t[place]] for t in split
            )
            pieces.append(_Use(word[1] if word else "", "", tokens, name, twice))
    return pieces


# --- names ----------------------------------------------------------------------------------------


class _Names:
    """The parameter that stands for each varying number, or its formula from another parameter."""

    def __init__(
        self, uses: Sequence[_Use], taken: Collection[str], told: Mapping[tuple[str, str], str]
    ) -> None:
        self._taken = taken
        """Names that `__init__` assigns to."""
        self.parameters: dict[_Key, str] = {}
        """Number -> name of its parameter."""
        self._formulas: dict[_Key, tuple[_Key, str]] = {}
        """Number -> another number and the formula that computes this one from it: `{} // 2`."""
        self._uses: dict[_Key, list[_Use]] = {}
        for use in uses:
            self._uses.setdefault(use.key, []).append(use)
        self._name_by_author(told)
        self._name_widths([use for use in uses if not self._is_known(use.key)])
        for key in sorted(self._uses, key=self._is_unnamed):
            if not self._is_known(key) and not self._is_derived(key):
                wish = self._wish(key)
                if wish != UNNAMED or not self._is_derived_of_any(key):
                    self._add(key, wish)

    def text(self, key: _Key, at: str = "") -> str:
        """Return the expression that stands for a number, or `_`; `at` is `self.` in `forward`."""
        if key in self._formulas:
            other, formula = self._formulas[key]
            inner = self.text(other, at)
            return formula.format(inner if inner.replace(".", "").isidentifier() else f"({inner})")
        return f"{at}{self.parameters[key]}" if key in self.parameters else "_"

    def base(self, key: _Key) -> str:
        """Return the parameter that a number is, or is computed from."""
        return self.base(self._formulas[key][0]) if key in self._formulas else self.parameters[key]

    def _add(self, key: _Key, wish: str) -> None:
        self.parameters[key] = make_unique(wish, {*self._taken, *self.parameters.values()})

    def _is_known(self, key: _Key) -> bool:
        return key in self.parameters or key in self._formulas

    def _name_by_author(self, told: Mapping[tuple[str, str], str]) -> None:
        """Give numbers the names of the author's `__init__`; derive those that it computes."""
        computed: list[_Key] = []
        wishes: dict[_Key, str] = {}
        local: set[_Key] = set()
        for key, uses in self._uses.items():
            found = {told.get((use.attribute, use.keyword)) for use in uses} - {None}
            if len(found - {""}) == 1:
                (name,) = found - {""}
                wishes[key] = identifier(str(name).removeprefix(LOCAL))
                local |= {key} if str(name).startswith(LOCAL) else set()
            elif found == {""}:
                computed.append(key)
        counts = Counter(wishes.values())
        for key in sorted(wishes, key=lambda key: (key[0] in _SETTINGS, key in local)):
            if counts[wishes[key]] > 1:
                continue
            if key not in local or not self._derive(key, list(self.parameters)):
                self._add(key, wishes[key])
        for key in computed:
            self._derive(key, list(self.parameters))

    def _name_widths(self, uses: Sequence[_Use]) -> None:
        """Name numbers of channels and features: those of inputs, of inner layers, of outputs."""
        keywords: dict[_Key, set[str]] = {}
        for use in uses:
            keywords.setdefault(use.key, set()).add(use.keyword)
        inputs = [key for key, found in keywords.items() if found & (_INPUTS | _BOTH)]
        last = {use.key: n for n, use in enumerate(uses) if use.keyword in _OUTPUTS | _BOTH}
        outputs = [key for key, found in keywords.items() if found & (_OUTPUTS | _BOTH)]
        first, final = inputs[:1], sorted(outputs, key=last.__getitem__)[-1:]
        first = [key for key in first if keywords[key] & _INPUTS]
        inner = [
            key
            for key, found in keywords.items()
            if found & (_OUTPUTS | {"hidden"}) and key not in (*first, *final)
        ]
        wishes: dict[_Key, str] = {}
        for key in first:
            wishes[key] = _unit(keywords[key]) if key in final else f"in_{_unit(keywords[key])}"
        if len(inner) > 1 or self.parameters:
            widths = [key for key, found in keywords.items() if found & (_BOTH | _NEUTRAL)]
            named = [*self.parameters, *first, *(key for key in widths if key not in inner)]
            inner = [key for n, key in enumerate(inner) if not self._derive(key, named + inner[:n])]
            if self.parameters:
                final = [key for key in final if not self._derive(key, [*self.parameters])]
        for key in inner:
            use = next(u for u in self._uses[key] if u.keyword in _OUTPUTS | {"hidden"})
            unit = "hidden" if use.keyword == "hidden" else _unit(keywords[key])
            wishes[key] = f"{use.attribute}_{unit}" if len(inner) > 1 else "hidden"
        for key in final:
            if keywords[key] & _OUTPUTS:
                wishes.setdefault(key, f"out_{_unit(keywords[key])}")
        for key, found in keywords.items():
            if found & (_BOTH | _NEUTRAL) and key not in self._formulas:
                wishes.setdefault(key, _unit(found))
        for key, wish in wishes.items():
            self._add(key, wish)

    def _is_unnamed(self, key: _Key) -> int:
        """Return 0 for a number with a keyword, 1 for the side of a square, 2 for others.

        Numbers are named in this order.
        """
        uses = self._uses[key]
        return 0 if any(use.keyword for use in uses) else 1 if _is_side(uses) else 2

    def _wish(self, key: _Key) -> str:
        uses = self._uses[key]
        keyword = next((use.keyword for use in uses if use.keyword), "")
        if keyword:
            return keyword
        if _is_side(uses):
            return "side"
        return uses[0].place or UNNAMED

    def _is_derived(self, key: _Key) -> bool:
        """Derive a number without a keyword, or a padding, from a parameter; False if it cannot."""
        if any(use.keyword not in ("", "padding") for use in self._uses[key]):
            return False
        return self._derive(key, list(self.parameters))

    def _is_derived_of_any(self, key: _Key) -> bool:
        """Derive a number from any other, by a difference if need be; False if it cannot."""
        known = [*self.parameters, *self._formulas]
        if self._derive(key, known):
            return True
        for other in known:
            formula = _less(other[1], key[1])
            if formula and other[0] == "size":
                self._formulas[key] = other, formula
                return True
        return False

    def _derive(self, key: _Key, others: Sequence[_Key]) -> bool:
        """Derive a number as a multiple, a part, a square or an inverse root of another.

        Return whether one of `others` fits; its formula is stored.
        """
        bound = any(use.place == "bound" for use in self._uses[key])
        for other in others:
            formula = _formula(other[1], key[1]) or (bound and _bound(other[1], key[1]))
            if formula and (other[0], key[0]) in (("size", "size"), ("kernel_size", "padding")):
                self._formulas[key] = other, formula
                return True
        return False


def _is_side(uses: Sequence[_Use]) -> bool:
    return any(use.twice for use in uses)


def _unit(keywords: Collection[str]) -> str:
    return "channels" if any("channels" in keyword for keyword in keywords) else "features"


def _less(parameters: Sequence[str], values: Sequence[str]) -> str:
    """Return `{} - 3` if each value is 3 less than its parameter; '' if the differences vary."""
    if not all(map(str.isdigit, (*parameters, *values))):
        return ""
    apart = {int(n) - int(v) for n, v in zip(parameters, values, strict=True)}
    return f"{{}} - {min(apart)}" if len(apart) == 1 and min(apart) > 0 else ""


def _bound(parameters: Sequence[str], values: Sequence[str]) -> str:
    """Return `{}**-0.5` if each value nearly is the inverse root of its parameter, else ''.

    The bound of an initialisation rounds in another order than this formula.
    """
    pairs = zip(parameters, values, strict=True)
    near = all(n.isdigit() and int(n) and math.isclose(float(v), int(n) ** -0.5) for n, v in pairs)
    return "{}**-0.5" if near else ""


def _formula(parameters: Sequence[str], values: Sequence[str]) -> str:
    """Return a formula such as `{} // 2` that computes each value from its parameter, else ''."""
    if not all(map(str.isdigit, parameters)) or "0" in (*parameters, *values):
        return ""
    numbers = [int(parameter) for parameter in parameters]
    if not all(map(str.isdigit, values)):
        return "{}**-0.5" if [repr(n**-0.5) for n in numbers] == list(values) else ""
    wanted = [int(value) for value in values]
    if [number**2 for number in numbers] == wanted:
        return "{}**2"
    if [number // 2 for number in numbers] == wanted:
        return "{} // 2"
    ratios = {Fraction(value, number) for value, number in zip(wanted, numbers, strict=True)}
    ratio = ratios.pop()
    if ratios or 1 not in (ratio.numerator, ratio.denominator):
        return ""
    return f"{ratio} * {{}}" if ratio > 1 else f"{{}} // {ratio.denominator}"
