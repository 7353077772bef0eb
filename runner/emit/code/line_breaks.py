"""Breaks the statements of emitted code into lines of at most 88 columns, as formatters do."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 88
"""Columns of a line."""
_PLAIN = re.compile(r"-?\d[\w.+-]*|True|False|-?float\(\"\w+\"\)")
"""A number or a boolean, as Python writes it."""
_NUMBER = re.compile(r"(?<![\w.])\d+")
_CODE = re.compile(r"""(?:[^"'#]|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')*+""")
"""A statement without its comment."""


def typical_width(text: str) -> int:
    """Return the columns of a text, counting two for each number.

    So blocks that differ in their sizes alone are broken at the same places.
    """
    return len(_NUMBER.sub("00", text))


def indent_lines(lines: Iterable[str], indent: int) -> list[str]:
    """Return the lines of statements at an indentation, each broken where it is too wide."""
    return [piece for line in lines for piece in fit_line(line, indent)]


def fit_line(line: str, indent: int = 0) -> list[str]:
    """Return the lines of one statement: one if it fits, else broken at its last outer bracket.

    The text in the brackets goes on a line of its own, or each of its items on one, with a comma at
    the end. If the statement fits without its comment, the comment goes on a line above.
    """
    own_indent = len(line) - len(line.lstrip())
    indent, line = indent + own_indent, line[own_indent:]
    space = " " * indent
    if indent + len(line) <= WIDTH or not line:
        return [space + line]
    code, comment = split_comment(line)
    if indent + len(code) <= WIDTH:
        return [space + comment.strip(), space + code]
    opening = _find_last_bracket(code)
    if opening is None or _bracket_pairs(code)[opening] < len(code.rstrip(":,")) - 1:
        return _wrap_in_parentheses(code, comment, indent) or [space + line]
    closing = _bracket_pairs(code)[opening]
    head, inside, tail = code[: opening + 1], code[opening + 1 : closing], code[closing:]
    if indent + len(head) > WIDTH:
        return _wrap_in_parentheses(code, comment, indent) or [space + line]
    items = split_arguments(inside)
    inner = " " * (indent + 4)
    is_call = code[opening - 1 : opening].isalnum() or code[opening - 1 : opening] in {
        "_",
        ")",
        "]",
    }
    is_group = code[opening] == "(" and not is_call and len(items) == 1 and inside[-1] != ","
    is_list = len(items) > 1 or not is_call or ("=" in items[0] and items[0][0] != "[")
    element, loop, iterable = inside.rpartition(" for ")
    if indent + 4 + len(inside) <= WIDTH and (is_call or len(items) == 1):
        body = [inner + inside]
    elif loop and len(items) == 1 and element.count("(") == element.count(")") and inside[0] != "[":
        body = [*fit_line(element, indent + 4), f"{inner}for {iterable}"]
    elif len(items) > 1 and all(map(_PLAIN.fullmatch, items)):
        body = _fill_lines(items, indent + 4)
    elif is_group:
        body = [f"{inner}{summand}" for summand in _split_sum(inside)]
    elif is_list:
        body = [piece for item in items for piece in fit_line(f"{item},", indent + 4)]
    else:
        body = fit_line(inside, indent + 4)
    return [space + head, *body, space + tail + comment]


def _split_sum(inside: str) -> list[str]:
    """Return the pieces of a sum, split before each `+` and `-` outside of inner brackets."""
    inner = {
        position for start, end in _bracket_pairs(inside).items() for position in range(start, end)
    }
    signs = [m.start() for m in re.finditer(r" [+-] ", inside) if m.start() not in inner]
    ends = [*signs, len(inside)]
    return [inside[a:b].strip() for a, b in zip([0, *signs], ends, strict=True)]


def _fill_lines(items: Iterable[str], indent: int) -> list[str]:
    """Return lines of numbers separated by commas, each as full as it can be."""
    text = ", ".join(items) + ","
    space = " " * indent
    return textwrap.wrap(text, WIDTH, initial_indent=space, subsequent_indent=space)


def _wrap_in_parentheses(code: str, comment: str, indent: int) -> list[str] | None:
    """Return an assignment or a return whose value stands in added parentheses; None for others."""
    target, equals, value = code.partition(" = ")
    if code.startswith("return "):
        target, equals, value = "return", " ", code.removeprefix("return ")
    if not equals:
        return None
    space = " " * indent
    return [f"{space}{target}{equals}(", f"{space}    {value}", f"{space}){comment}"]


def split_comment(line: str) -> tuple[str, str]:
    """Return a statement and its comment; the comment begins with two blanks, or is empty."""
    if "#" not in line:
        return line, ""
    code = _CODE.match(line)
    if code is None or not line.startswith("#", code.end()):
        return line, ""
    return code[0].rstrip(), f"  {line[code.end() :]}"


def _bracket_pairs(code: str) -> dict[int, int]:
    """Return the positions of the outermost brackets: opening -> closing."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    quote = ""
    for position, letter in enumerate(code):
        if quote:
            quote = "" if letter == quote and code[position - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            stack.append(position)
        elif letter in ")]}" and stack:
            start = stack.pop()
            if not stack:
                pairs[start] = position
    return pairs


def _find_last_bracket(code: str) -> int | None:
    """Return the position of the last outermost opening bracket that is not empty, if any."""
    nonempty = [
        start for start, end in _bracket_pairs(code).items() if code[start + 1 : end].strip()
    ]
    return max(nonempty, default=None)


def split_arguments(inside: str) -> list[str]:
    """Return the arguments in a text, split at the commas outside of inner brackets and quotes."""
    pairs = _bracket_pairs(inside)
    enclosed = {position for start, end in pairs.items() for position in range(start, end)}
    items, start, quote = [], 0, ""
    for position, letter in enumerate(inside):
        if quote:
            quote = "" if letter == quote and inside[position - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "," and position not in enclosed:
            items.append(inside[start:position].strip())
            start = position + 1
    tail = inside[start:].strip()
    return [*items, tail] if tail else items
