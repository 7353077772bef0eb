"""Rolls up repeated statements into loops over modules or over numbers.

`x = x + self.layers_0(x)`, `x = x + self.layers_1(x)` and so on become a list of modules and
`for layer in self.layers`; `y = self.step(x[:, 0], y)`, `y = self.step(x[:, 1], y)` and so on
`for t in range(12)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from runner.emit.code.child_loops import SHORTEST_LOOP, common_stem, loop_variable
from runner.emit.code.line_breaks import split_comment
from runner.emit.code.module_attributes import Weight, module_list
from runner.emit.naming.value_names import RESERVED, make_unique

_CONSTRUCTION = re.compile(r"self\.((\w+?)(?:_\d+)?) = ((?:nn\.)?\w+)\((.*)\)")
"""A statement that makes a module: attribute, attribute without number, class and arguments."""
_CALL = re.compile(r"self\.(\w+)\(")
_MODULE_SLOT = "{module}"
"""Placeholder for the module in the statements of a loop."""
_LONGEST_BODY = 6
"""Most statements in a loop over a number."""
_INDEX = re.compile(r"(?<=[\[(,= ])(\d+)(?=[\]),])")
"""A number that is an index or an argument by itself."""


def roll_module_loops(
    init_lines: Sequence[str], forward_lines: Sequence[str], weights: Sequence[Weight]
) -> tuple[list[str], list[str], list[Weight]]:
    """Return statements of `__init__` and `forward` with loops over modules, and renamed weights.

    A weight `layers_0.weight` becomes `layers.0.weight`.
    """
    init_lines, forward_lines, weights = list(init_lines), list(forward_lines), list(weights)
    stems = Counter(match[2] for text in init_lines if (match := _CONSTRUCTION.fullmatch(text)))
    first_calls = _first_calls(forward_lines)
    for stem in [stem for stem, count in stems.items() if count >= SHORTEST_LOOP]:
        for run in _module_runs(stem, init_lines):
            start, body, tail = _find_repetition(run, forward_lines, first_calls)
            if not body or not _are_used_once(run, init_lines, forward_lines):
                continue
            attribute = common_stem(run)
            names = {*RESERVED, *re.findall(r"(?<![\w.])[A-Za-z_]\w*", " ".join(forward_lines))}
            variable = loop_variable(attribute, names)
            values = {
                target: value for target, _, value in (t.partition(" = ") for t in init_lines)
            }
            constructions = [values[f"self.{name}"] for name in run]
            place = next(
                n for n, text in enumerate(init_lines) if text.startswith(f"self.{run[0]} =")
            )
            if any(text.startswith(f"self.{attribute} =") for text in init_lines):
                continue
            assignments = {
                f"self.{name} = {text}" for name, text in zip(run, constructions, strict=True)
            }
            init_lines[place] = f"self.{attribute} = {module_list(constructions)}"
            init_lines = [text for text in init_lines if text not in assignments]
            loop = [f"    {text.replace(_MODULE_SLOT, variable)}" for text in body]
            forward_lines[start : start + len(run) * len(body)] = [
                f"for {variable} in self.{attribute}:", *loop, *tail
            ]  # fmt: skip
            first_calls = _first_calls(forward_lines)
            new_names = {name: f"{attribute}.{k}" for k, name in enumerate(run)}
            weights = [_rename_weight(weight, new_names) for weight in weights]
    return init_lines, forward_lines, weights


def _module_runs(stem: str, init_lines: Sequence[str]) -> list[list[str]]:
    """Return runs of modules `stem_0`, `stem_1`, ... of one class, as their attributes.

    Those of a torch.nn class also have equal arguments.
    """
    runs: list[list[str]] = []
    previous: tuple[str, str] | None = None
    for text in init_lines:
        match = _CONSTRUCTION.fullmatch(text) if text.startswith(f"self.{stem}") else None
        if match is None or match[2] != stem:
            continue
        kind = (match[3], match[4] if match[3].startswith("nn.") else "")
        if kind != previous:
            runs.append([])
        runs[-1].append(match[1])
        previous = kind
    return [run for run in runs if len(run) >= SHORTEST_LOOP]


def _are_used_once(
    run: Sequence[str], init_lines: Sequence[str], forward_lines: Sequence[str]
) -> bool:
    """Return whether each module is made once and called once, and mentioned nowhere else."""
    counts = Counter(re.findall(r"self\.(\w+)", "\n".join((*init_lines, *forward_lines))))
    return all(counts[name] == 2 for name in run)


def _first_calls(forward_lines: Sequence[str]) -> dict[str, int]:
    """Return name of a module -> index of the first statement that calls it."""
    first_calls: dict[str, int] = {}
    for n, line in enumerate(forward_lines):
        for name in _CALL.findall(line):
            first_calls.setdefault(name, n)
    return first_calls


def _find_repetition(
    run: Sequence[str], forward_lines: Sequence[str], first_calls: Mapping[str, int]
) -> tuple[int, list[str], list[str]]:
    """Return (index of the first statement, the loop's body, statements after it).

    The body is empty if the statements do not repeat. If the last turn's result is returned
    directly, the loop assigns it, and a return statement follows.
    """
    no_repetition: tuple[int, list[str], list[str]] = (0, [], [])
    positions = [first_calls.get(name, -1) for name in run]
    sizes = {b - a for a, b in pairwise(positions)}
    if len(sizes) != 1 or min(positions) < 0 or (size := sizes.pop()) < 1:
        return no_repetition
    for start in range(positions[0], max(positions[0] - size, -1), -1):
        first_line, second_line = forward_lines[start], forward_lines[start + size]
        if _code_with_slot(first_line, run[0]) != _code_with_slot(second_line, run[1]):
            continue
        groups = [list(forward_lines[start + turn * size :][:size]) for turn in range(len(run))]
        tail: list[str] = []
        if len(groups[-1]) == size and groups[-1][-1].startswith("return "):
            target, equals, _ = groups[0][-1].partition(" = ")
            if equals and target.isidentifier():
                groups[-1][-1] = f"{target} = {groups[-1][-1].removeprefix('return ')}"
                tail = [f"return {target}"]
        if _are_equal_turns(groups, run):
            steps = [
                [_with_slot(line, name) for line in group]
                for name, group in zip(run, groups, strict=True)
            ]
            has_equal_comments = [len(set(variants)) == 1 for variants in zip(*steps, strict=True)]
            body = [
                line if is_equal else split_comment(line)[0]
                for line, is_equal in zip(steps[0], has_equal_comments, strict=True)
            ]
            return start, body, tail
    return no_repetition


def _are_equal_turns(groups: Sequence[Sequence[str]], run: Sequence[str]) -> bool:
    """Return whether each module's statements are those of the first one, but for comments."""
    first = groups[0]
    return all(
        len(group) == len(first)
        and all(
            _code_with_slot(line, name) == _code_with_slot(expected, run[0])
            for line, expected in zip(group, first, strict=True)
        )
        for name, group in zip(run[1:], groups[1:], strict=True)
    )


def _with_slot(line: str, name: str) -> str:
    return line.replace(f"self.{name}(", f"{_MODULE_SLOT}(")


def _code_with_slot(line: str, name: str) -> str:
    return split_comment(_with_slot(line, name))[0]


def _rename_weight(weight: Weight, new_names: dict[str, str]) -> Weight:
    module, dot, tail = weight.local.partition(".")
    return (
        replace(weight, local=f"{new_names[module]}{dot}{tail}") if module in new_names else weight
    )


def roll_number_loops(lines: Sequence[str]) -> list[str]:
    """Return the statements of `forward`, with loops for those that differ in a rising number."""
    statements = [split_comment(line) for line in lines]
    rolled_lines: list[str] = []
    start = 0
    while start < len(lines):
        loops = (_roll_number_loop(statements, start, n) for n in _BODY_SIZES)
        loop, size = max(loops, key=lambda candidate: candidate[1])
        rolled_lines += loop if size else [lines[start]]
        start += size or 1
    return rolled_lines


_BODY_SIZES = range(_LONGEST_BODY, 0, -1)


def _roll_number_loop(
    statements: Sequence[tuple[str, str]], start: int, size: int
) -> tuple[list[str], int]:
    """Return a loop whose body is the `size` statements from `start` on, and how many it replaces.

    `statements` are pairs of code and comment. ([], 0) if there is no such loop.
    """
    turns = (len(statements) - start) // size
    if turns < SHORTEST_LOOP or statements[start][0].startswith((" ", "return")):
        return [], 0

    def turn_pieces(turn: int) -> list[str]:
        position = start + turn * size
        return _INDEX.split("\n".join(code for code, _ in statements[position : position + size]))

    first_pieces = turn_pieces(0)
    moving_indices = {
        k for k, (a, b) in enumerate(zip(first_pieces, turn_pieces(1), strict=False)) if a != b
    }
    if (
        not moving_indices
        or len({first_pieces[k] for k in moving_indices}) > 1
        or any(k % 2 == 0 for k in moving_indices)
    ):
        return [], 0
    begin = int(first_pieces[min(moving_indices)])

    def expected_pieces(turn: int) -> list[str]:
        return [
            str(begin + turn) if k in moving_indices else text
            for k, text in enumerate(first_pieces)
        ]

    turns = next(
        (turn for turn in range(turns) if turn_pieces(turn) != expected_pieces(turn)), turns
    )
    if turns < SHORTEST_LOOP:
        return [], 0
    text = "\n".join(code + comment for code, comment in statements[start:])
    index = make_unique("t", {*RESERVED, *re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)})
    codes = "".join(
        index if k in moving_indices else text for k, text in enumerate(first_pieces)
    ).split("\n")
    comments = [[comment for _, comment in statements[start + n : start + turns * size : size]]
                for n in range(size)]  # fmt: skip
    shared_comments = [
        turn_comments[0] if len({*turn_comments}) == 1 else "" for turn_comments in comments
    ]
    span = f"{begin}, {begin + turns}" if begin else f"{turns}"
    body_lines = [
        f"    {code}{comment}" for code, comment in zip(codes, shared_comments, strict=True)
    ]
    return [f"for {index} in range({span}):", *body_lines], turns * size
