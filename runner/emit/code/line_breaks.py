"""This file knows about lines of emitted code: no wider than 88 columns, broken as is usual."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 88
_PLAIN = re.compile(r"-?\d[\w.+-]*|True|False|-?float\(\"\w+\"\)")
"""A number as it is written."""
_NUMBER = re.compile(r"(?<![\w.])\d+")


def typical_width(text: str) -> int:
    """Columns of a text, with two for each number: blocks that differ in sizes are split alike."""
    return len(_NUMBER.sub("00", text))


def indented(lines: Iterable[str], indent: int) -> list[str]:
    """Statements at an indentation, each broken where it is too wide."""
    return [broken for line in lines for broken in fitted(line, indent)]


def fitted(line: str, indent: int = 0) -> list[str]:
    """One statement as lines: as it is where it fits, else opened at its last bracket.

    What is in the brackets goes to a line of its own, or to one line each, with a comma at the end.
    Where only the comment is too much, it goes above.
    """
    own = len(line) - len(line.lstrip())
    indent, line = indent + own, line[own:]
    space = " " * indent
    if indent + len(line) <= WIDTH or not line:
        return [space + line]
    code, comment = uncommented(line)
    if indent + len(code) <= WIDTH:
        return [space + comment.strip(), space + code]
    opening = _last_bracket(code)
    if opening is None or _closing(code, opening) < len(code.rstrip(":,")) - 1:
        return _in_parentheses(code, comment, indent) or [space + line]
    closing = _closing(code, opening)
    head, inside, tail = code[: opening + 1], code[opening + 1 : closing], code[closing:]
    if indent + len(head) > WIDTH:
        return _in_parentheses(code, comment, indent) or [space + line]
    items = split_arguments(inside)
    inner = " " * (indent + 4)
    is_call = code[opening - 1 : opening].isalnum() or code[opening - 1 : opening] in {
        "_",
        ")",
        "]",
    }
    is_group = code[opening] == "(" and not is_call and len(items) == 1 and inside[-1] != ","
    is_list = len(items) > 1 or not is_call or ("=" in items[0] and items[0][0] != "[")
    each, loop, over = inside.rpartition(" for ")
    if indent + 4 + len(inside) <= WIDTH and (is_call or len(items) == 1):
        body = [inner + inside]
    elif loop and len(items) == 1 and each.count("(") == each.count(")") and inside[0] != "[":
        body = [*fitted(each, indent + 4), f"{inner}for {over}"]
    elif len(items) > 1 and all(map(_PLAIN.fullmatch, items)):
        body = _filled(items, indent + 4)
    elif is_group:
        body = [f"{inner}{part}" for part in _summands(inside)]
    elif is_list:
        body = [broken for item in items for broken in fitted(f"{item},", indent + 4)]
    else:
        body = fitted(inside, indent + 4)
    return [space + head, *body, space + tail + comment]


def _summands(inside: str) -> list[str]:
    """Split before each `+` and `-` outside of inner brackets."""
    hidden = {place for start, end in _pairs(inside).items() for place in range(start, end)}
    places = [m.start() for m in re.finditer(r" [+-] ", inside) if m.start() not in hidden]
    ends = [*places, len(inside)]
    return [inside[a:b].strip() for a, b in zip([0, *places], ends, strict=True)]


def _filled(items: Iterable[str], indent: int) -> list[str]:
    """Numbers with commas between them, as many to a line as it holds."""
    text = ", ".join(items) + ","
    space = " " * indent
    return textwrap.wrap(text, WIDTH, initial_indent=space, subsequent_indent=space)


def _in_parentheses(code: str, comment: str, indent: int) -> list[str] | None:
    """An assigned or returned value that no bracket of its own can hold."""
    target, equals, value = code.partition(" = ")
    if code.startswith("return "):
        target, equals, value = "return", " ", code.removeprefix("return ")
    if not equals:
        return None
    space = " " * indent
    return [f"{space}{target}{equals}(", f"{space}    {value}", f"{space}){comment}"]


def uncommented(line: str) -> tuple[str, str]:
    """A statement and its comment, two blanks included."""
    quote = ""
    for place, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote and line[place - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#":
            return line[:place].rstrip(), f"  {line[place:]}"
    return line, ""


def _pairs(code: str) -> dict[int, int]:
    """Where each bracket that nothing else encloses closes."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    quote = ""
    for place, letter in enumerate(code):
        if quote:
            quote = "" if letter == quote and code[place - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            stack.append(place)
        elif letter in ")]}" and stack:
            start = stack.pop()
            if not stack:
                pairs[start] = place
    return pairs


def _last_bracket(code: str) -> int | None:
    """The last outer bracket with something in it."""
    filled = [start for start, end in _pairs(code).items() if code[start + 1 : end].strip()]
    return max(filled, default=None)


def _closing(code: str, opening: int) -> int:
    return _pairs(code)[opening]


def split_arguments(inside: str) -> list[str]:
    """Split at the commas outside of inner brackets."""
    inner = _pairs(inside)
    hidden = {place for start, end in inner.items() for place in range(start, end)}
    items, start, quote = [], 0, ""
    for place, letter in enumerate(inside):
        if quote:
            quote = "" if letter == quote and inside[place - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "," and place not in hidden:
            items.append(inside[start:place].strip())
            start = place + 1
    last = inside[start:].strip()
    return [*items, last] if last else items
