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
_SHARED_WIDTHS = {"channels", "features"}
_INNER_WIDTHS = {"num_features", "num_channels", "normalized_shape"}
_SETTINGS = {"kernel_size", "stride", "padding", "dilation", "output_padding", "bias", "eps"}
_ROLES = {
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
class _VaryingNumber:
    """A place in a statement at which the variants have different numbers."""

    keyword: str
    """Keyword argument that the number is, or ''."""
    attribute: str
    """Attribute that the statement assigns to, or ''."""
    values: tuple[str, ...]
    """Number in each variant."""
    role: str = ""
    """Role of the number in its call, if that is known: `batch`, `bound`, `count`."""
    is_repeated: bool = False
    """Whether the next length in the shape is the same, as for a square."""
    in_comment: bool = False
    """Whether the number stands in the comment with the shape."""

    @property
    def key(self) -> _Key:
        """Identity of the parameter that stands for the number."""
        return self.keyword if self.keyword in _SETTINGS else "size", self.values


_Statement = list[str | _VaryingNumber]
"""A statement as text between the numbers that vary."""


@dataclass(frozen=True, slots=True)
class Template:
    """The statements of a class with parameters, and the parameters' values in each variant."""

    init_lines: tuple[str, ...]
    """Statements of `__init__`."""
    forward_lines: tuple[str, ...]
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
    number_names: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> Template | None:
    """Return one class for all variants, each given as the statements of `__init__` and `forward`.

    `number_names`: (attribute, keyword) -> the author's name for the keyword's value where the
    attribute is made, '' for an expression without a name. None if the variants differ in more than
    numbers, or in too many of them.
    """
    if len(variants) == 1:
        return Template(tuple(variants[0][0]), tuple(variants[0][1]), ())
    init_statements = _align_variants([variant[0] for variant in variants])
    forward_statements = _align_variants([variant[1] for variant in variants])
    if init_statements is None or forward_statements is None:
        return None
    numbers = [
        piece
        for s in (*init_statements, *forward_statements)
        for piece in s
        if isinstance(piece, _VaryingNumber)
    ]
    assigned = [re.match(r"(?:self\.)?(\w+) = ", text) for text in variants[0][0]]
    assigned_names = {match[1] for match in assigned if match}
    names = _ParameterNames(
        [number for number in numbers if not number.in_comment], assigned_names, number_names
    )
    parameters = names.parameters
    unnamed_count = sum(name.startswith(UNNAMED) for name in parameters.values())
    if len(parameters) > MOST_PARAMETERS or unnamed_count > 1:
        return None
    forward_keys = [
        p.key
        for s in forward_statements
        for p in s
        if isinstance(p, _VaryingNumber) and not p.in_comment
    ]
    stored = [
        f"self.{name} = {name}" for name in dict.fromkeys(map(names.base_parameter, forward_keys))
    ]
    return Template(
        (*stored, *(_fill_statement(statement, names, "") for statement in init_statements)),
        tuple(_fill_statement(statement, names, "self.") for statement in forward_statements),
        tuple(parameters.values()),
        tuple(values for _, values in parameters),
    )


def _fill_statement(statement: _Statement, names: _ParameterNames, prefix: str) -> str:
    """Return a statement with parameters in place of its varying numbers.

    `prefix` stands before each parameter: `self.` in `forward`.
    """
    pieces = []
    for piece, following in zip(statement, [*statement[1:], ""], strict=True):
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        text = names.expression(piece.key, "" if piece.in_comment else prefix)
        starts_value = pieces[-1][-1:] in "=([" or pieces[-1].endswith(", ")
        is_whole_value = starts_value and isinstance(following, str) and following[:1] in ",)]"
        pieces.append(text if is_whole_value or text.isidentifier() else f"({text})")
    return "".join(pieces)


# --- differences ----------------------------------------------------------------------------------


def _align_variants(variants: Sequence[Sequence[str]]) -> list[_Statement] | None:
    """Return statements merged over all variants; None if they differ in more than numbers."""
    if len({len(statements) for statements in variants}) > 1:
        return None
    aligned = [_merge_statements(statements) for statements in zip(*variants, strict=True)]
    merged = [statement for statement in aligned if statement is not None]
    return merged if len(merged) == len(aligned) else None


def _merge_statements(statements: Sequence[str]) -> _Statement | None:
    """Return one statement for several that differ only in numbers, None if they differ in more.

    In the comment with the shape, a length that no parameter stands for becomes `_`.
    """
    if len(set(statements)) == 1:
        return [statements[0]]
    pairs = [split_comment(statement) for statement in statements]
    codes = [code for code, _ in pairs]
    merged = _merge_constructions(codes) or _merge_tokens(codes)
    shapes = _merge_tokens([comment for _, comment in pairs])
    if merged is None or shapes is None:
        return merged
    for piece in shapes:
        if isinstance(piece, _VaryingNumber):
            piece.in_comment = True
    return [*merged, *shapes]


def _merge_constructions(codes: Sequence[str]) -> _Statement | None:
    """Merge constructions such as `self.conv = nn.Conv2d(in_channels=16, stride=2)`.

    Some of them may leave out an argument that has its default. None if they cannot be merged.
    """
    matches = [_CONSTRUCTION.fullmatch(code) for code in codes]
    complete = [match for match in matches if match is not None]
    if len(complete) < len(codes) or len({match[1] for match in complete}) > 1:
        return None
    arguments = [
        {key: value for key, _, value in (a.partition("=") for a in split_arguments(match[3]))}
        for match in complete
    ]
    keywords = list(
        dict.fromkeys(
            key for own_arguments in sorted(arguments, key=len)[::-1] for key in own_arguments
        )
    )
    if any(
        key not in own_arguments and key not in _DEFAULTS
        for own_arguments in arguments
        for key in keywords
    ):
        return None
    pieces: _Statement = [complete[0][1]]
    for position, key in enumerate(keywords):
        values = tuple(
            own_arguments.get(key, _DEFAULTS.get(key, "")) for own_arguments in arguments
        )
        pieces.append(f"{', ' if position else ''}{key}=")
        is_equal = len(set(values)) == 1
        pieces.append(values[0] if is_equal else _VaryingNumber(key, complete[0][2], values))
    return [*pieces, ")"]


def _merge_tokens(codes: Sequence[str]) -> _Statement | None:
    """Merge texts that are the same between their numbers; None if they are not."""
    token_lists = [_NUMBER.split(code) for code in codes]
    if len({len(tokens) for tokens in token_lists}) > 1:
        return None
    pieces: _Statement = []
    for position, tokens in enumerate(zip(*token_lists, strict=True)):
        if len(set(tokens)) == 1:
            pieces.append(tokens[0])
        elif position % 2 == 0:
            return None
        else:
            previous = token_lists[0][position - 1]
            word = re.search(r"(\w+)=$", previous)
            role = next((role for end, role in _ROLES.items() if previous.endswith(end)), "")
            is_repeated = all(
                t[position].isdigit() and t[position + 1 : position + 3] == [", ", t[position]]
                for t in token_lists
            )
            pieces.append(_VaryingNumber(word[1] if word else "", "", tokens, role, is_repeated))
    return pieces


# --- names ----------------------------------------------------------------------------------------


class _ParameterNames:
    """The parameter that stands for each varying number, or its formula from another parameter."""

    def __init__(
        self,
        numbers: Sequence[_VaryingNumber],
        assigned_names: Collection[str],
        number_names: Mapping[tuple[str, str], str],
    ) -> None:
        self._assigned_names = assigned_names
        """Names that `__init__` assigns to."""
        self.parameters: dict[_Key, str] = {}
        """Number -> name of its parameter."""
        self._formulas: dict[_Key, tuple[_Key, str]] = {}
        """Number -> another number and the formula that computes this one from it: `{} // 2`."""
        self._numbers: dict[_Key, list[_VaryingNumber]] = {}
        for number in numbers:
            self._numbers.setdefault(number.key, []).append(number)
        self._name_by_author(number_names)
        self._name_widths([number for number in numbers if not self._is_known(number.key)])
        for key in sorted(self._numbers, key=self._naming_rank):
            if not self._is_known(key) and not self._try_derive_unnamed(key):
                preferred = self._preferred_name(key)
                if preferred != UNNAMED or not self._try_derive_from_any(key):
                    self._add_parameter(key, preferred)

    def expression(self, key: _Key, prefix: str = "") -> str:
        """Return the expression of a number, or `_`; `prefix` is `self.` in `forward`."""
        if key in self._formulas:
            source, formula = self._formulas[key]
            inner = self.expression(source, prefix)
            return formula.format(inner if inner.replace(".", "").isidentifier() else f"({inner})")
        return f"{prefix}{self.parameters[key]}" if key in self.parameters else "_"

    def base_parameter(self, key: _Key) -> str:
        """Return the parameter that a number is, or is computed from."""
        return (
            self.base_parameter(self._formulas[key][0])
            if key in self._formulas
            else self.parameters[key]
        )

    def _add_parameter(self, key: _Key, preferred: str) -> None:
        self.parameters[key] = make_unique(
            preferred, {*self._assigned_names, *self.parameters.values()}
        )

    def _is_known(self, key: _Key) -> bool:
        return key in self.parameters or key in self._formulas

    def _name_by_author(self, number_names: Mapping[tuple[str, str], str]) -> None:
        """Give numbers the names of the author's `__init__`; derive those that it computes."""
        computed_keys: list[_Key] = []
        preferred: dict[_Key, str] = {}
        local_keys: set[_Key] = set()
        for key, numbers in self._numbers.items():
            names = {number_names.get((number.attribute, number.keyword)) for number in numbers} - {
                None
            }
            if len(names - {""}) == 1:
                (name,) = names - {""}
                preferred[key] = identifier(str(name).removeprefix(LOCAL))
                local_keys |= {key} if str(name).startswith(LOCAL) else set()
            elif names == {""}:
                computed_keys.append(key)
        counts = Counter(preferred.values())
        for key in sorted(preferred, key=lambda key: (key[0] in _SETTINGS, key in local_keys)):
            if counts[preferred[key]] > 1:
                continue
            if key not in local_keys or not self._try_derive(key, list(self.parameters)):
                self._add_parameter(key, preferred[key])
        for key in computed_keys:
            self._try_derive(key, list(self.parameters))

    def _name_widths(self, numbers: Sequence[_VaryingNumber]) -> None:
        """Name numbers of channels and features: those of inputs, of inner layers, of outputs."""
        keywords: dict[_Key, set[str]] = {}
        for number in numbers:
            keywords.setdefault(number.key, set()).add(number.keyword)
        inputs = [key for key, words in keywords.items() if words & (_INPUTS | _SHARED_WIDTHS)]
        last_positions = {
            number.key: n
            for n, number in enumerate(numbers)
            if number.keyword in _OUTPUTS | _SHARED_WIDTHS
        }
        outputs = [key for key, words in keywords.items() if words & (_OUTPUTS | _SHARED_WIDTHS)]
        first, final = inputs[:1], sorted(outputs, key=last_positions.__getitem__)[-1:]
        first = [key for key in first if keywords[key] & _INPUTS]
        inner = [
            key
            for key, words in keywords.items()
            if words & (_OUTPUTS | {"hidden"}) and key not in (*first, *final)
        ]
        preferred: dict[_Key, str] = {}
        for key in first:
            preferred[key] = (
                _width_unit(keywords[key]) if key in final else f"in_{_width_unit(keywords[key])}"
            )
        if len(inner) > 1 or self.parameters:
            widths = [
                key for key, words in keywords.items() if words & (_SHARED_WIDTHS | _INNER_WIDTHS)
            ]
            sources = [*self.parameters, *first, *(key for key in widths if key not in inner)]
            inner = [
                key for n, key in enumerate(inner) if not self._try_derive(key, sources + inner[:n])
            ]
            if self.parameters:
                final = [key for key in final if not self._try_derive(key, [*self.parameters])]
        for key in inner:
            number = next(
                candidate
                for candidate in self._numbers[key]
                if candidate.keyword in _OUTPUTS | {"hidden"}
            )
            unit = "hidden" if number.keyword == "hidden" else _width_unit(keywords[key])
            preferred[key] = f"{number.attribute}_{unit}" if len(inner) > 1 else "hidden"
        for key in final:
            if keywords[key] & _OUTPUTS:
                preferred.setdefault(key, f"out_{_width_unit(keywords[key])}")
        for key, words in keywords.items():
            if words & (_SHARED_WIDTHS | _INNER_WIDTHS) and key not in self._formulas:
                preferred.setdefault(key, _width_unit(words))
        for key, name in preferred.items():
            self._add_parameter(key, name)

    def _naming_rank(self, key: _Key) -> int:
        """Return 0 for a number with a keyword, 1 for the side of a square, 2 for others.

        Numbers are named in this order.
        """
        numbers = self._numbers[key]
        return 0 if any(number.keyword for number in numbers) else 1 if _is_side(numbers) else 2

    def _preferred_name(self, key: _Key) -> str:
        numbers = self._numbers[key]
        keyword = next((number.keyword for number in numbers if number.keyword), "")
        if keyword:
            return keyword
        if _is_side(numbers):
            return "side"
        return numbers[0].role or UNNAMED

    def _try_derive_unnamed(self, key: _Key) -> bool:
        """Derive a number without a keyword, or a padding, from a parameter; False if it cannot."""
        if any(number.keyword not in ("", "padding") for number in self._numbers[key]):
            return False
        return self._try_derive(key, list(self.parameters))

    def _try_derive_from_any(self, key: _Key) -> bool:
        """Derive a number from any other, by a difference if need be; False if it cannot."""
        settled = [*self.parameters, *self._formulas]
        if self._try_derive(key, settled):
            return True
        for source in settled:
            formula = _difference_formula(source[1], key[1])
            if formula and source[0] == "size":
                self._formulas[key] = source, formula
                return True
        return False

    def _try_derive(self, key: _Key, sources: Sequence[_Key]) -> bool:
        """Derive a number as a multiple, a part, a square or an inverse root of another.

        Return whether one of `sources` fits; its formula is stored.
        """
        is_bound = any(number.role == "bound" for number in self._numbers[key])
        for source in sources:
            formula = _find_formula(source[1], key[1]) or (
                is_bound and _root_bound_formula(source[1], key[1])
            )
            if formula and (source[0], key[0]) in (("size", "size"), ("kernel_size", "padding")):
                self._formulas[key] = source, formula
                return True
        return False


def _is_side(numbers: Sequence[_VaryingNumber]) -> bool:
    return any(number.is_repeated for number in numbers)


def _width_unit(keywords: Collection[str]) -> str:
    return "channels" if any("channels" in keyword for keyword in keywords) else "features"


def _difference_formula(parameters: Sequence[str], values: Sequence[str]) -> str:
    """Return `{} - 3` if each value is 3 less than its parameter; '' if the differences vary."""
    if not all(map(str.isdigit, (*parameters, *values))):
        return ""
    differences = {int(n) - int(v) for n, v in zip(parameters, values, strict=True)}
    return f"{{}} - {min(differences)}" if len(differences) == 1 and min(differences) > 0 else ""


def _root_bound_formula(parameters: Sequence[str], values: Sequence[str]) -> str:
    """Return `{}**-0.5` if each value nearly is the inverse root of its parameter, else ''.

    The bound of an initialisation rounds in another order than this formula.
    """
    pairs = zip(parameters, values, strict=True)
    is_close = all(
        n.isdigit() and int(n) and math.isclose(float(v), int(n) ** -0.5) for n, v in pairs
    )
    return "{}**-0.5" if is_close else ""


def _find_formula(parameters: Sequence[str], values: Sequence[str]) -> str:
    """Return a formula such as `{} // 2` that computes each value from its parameter, else ''."""
    if not all(map(str.isdigit, parameters)) or "0" in (*parameters, *values):
        return ""
    numbers = [int(parameter) for parameter in parameters]
    if not all(map(str.isdigit, values)):
        return "{}**-0.5" if [repr(n**-0.5) for n in numbers] == list(values) else ""
    targets = [int(value) for value in values]
    if [number**2 for number in numbers] == targets:
        return "{}**2"
    if [number // 2 for number in numbers] == targets:
        return "{} // 2"
    ratios = {Fraction(value, number) for value, number in zip(targets, numbers, strict=True)}
    ratio = ratios.pop()
    if ratios or 1 not in (ratio.numerator, ratio.denominator):
        return ""
    return f"{ratio} * {{}}" if ratio > 1 else f"{{}} // {ratio.denominator}"
