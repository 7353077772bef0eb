"""Rolls up repeated statements into loops over modules or over numbers.

`x = x + self.layers_0(x)`, `x = x + self.layers_1(x)` and so on become a list of modules and
`for layer in self.layers`; `y = self.step(x[:, 0], y)`, `y = self.step(x[:, 1], y)` and so on
`for t in range(12)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from runner.emit.code.child_loops import SHORTEST_LOOP, common_stem, loop_variable
from runner.emit.code.line_breaks import split_comment
from runner.emit.code.module_attributes import Weight, module_list
from runner.emit.naming.value_names import RESERVED, make_unique

_MADE = re.compile(r"self\.((\w+?)(?:_\d+)?) = ((?:nn\.)?\w+)\((.*)\)")
"""A statement that makes a module: attribute, attribute without number, class and arguments."""
_STEP = "{module}"
"""Placeholder for the module in the statements of a loop."""
_LONGEST_BODY = 6
"""Most statements in a loop over a number."""
_INDEX = re.compile(r"(?<=[\[(,= ])(\d+)(?=[\]),])")
"""A number that is an index or an argument by itself."""


def roll_module_loops(
    made: Sequence[str], lines: Sequence[str], weights: Sequence[Weight]
) -> tuple[list[str], list[str], list[Weight]]:
    """Return statements of `__init__` and `forward` with loops over modules, and renamed weights.

    A weight `layers_0.weight` becomes `layers.0.weight`.
    """
    made, lines, weights = list(made), list(lines), list(weights)
    stems = dict.fromkeys(match[2] for text in made if (match := _MADE.fullmatch(text)))
    for stem in stems:
        for run in _runs(stem, made):
            start, body, after = _repeated(run, lines)
            if not body or not _only_there(run, made, lines):
                continue
            attribute = common_stem(run)
            taken = {*RESERVED, *re.findall(r"(?<![\w.])[A-Za-z_]\w*", " ".join(lines))}
            each = loop_variable(attribute, taken)
            constructions = [_construction(name, made) for name in run]
            first = next(n for n, text in enumerate(made) if text.startswith(f"self.{run[0]} ="))
            if any(text.startswith(f"self.{attribute} =") for text in made):
                continue
            own = {f"self.{name} = {text}" for name, text in zip(run, constructions, strict=True)}
            made[first] = f"self.{attribute} = {module_list(constructions)}"
            made = [text for text in made if text not in own]
            loop = [f"    {text.replace(_STEP, each)}" for text in body]
            lines[start : start + len(run) * len(body)] = [
                f"for {each} in self.{attribute}:", *loop, *after
            ]  # fmt: skip
            new = {name: f"{attribute}.{k}" for k, name in enumerate(run)}
            weights = [_renamed(weight, new) for weight in weights]
    return made, lines, weights


def _runs(stem: str, made: Sequence[str]) -> list[list[str]]:
    """Return runs of modules `stem_0`, `stem_1`, ... of one class, as their attributes.

    Those of a torch.nn class also have equal arguments.
    """
    runs: list[list[str]] = []
    before: tuple[str, str] | None = None
    for text in made:
        match = _MADE.fullmatch(text)
        if match is None or match[2] != stem:
            continue
        kind = (match[3], match[4] if match[3].startswith("nn.") else "")
        if kind != before:
            runs.append([])
        runs[-1].append(match[1])
        before = kind
    return [run for run in runs if len(run) >= SHORTEST_LOOP]


def _construction(name: str, made: Sequence[str]) -> str:
    prefix = f"self.{name} = "
    return next(text.removeprefix(prefix) for text in made if text.startswith(prefix))


def _only_there(run: Sequence[str], made: Sequence[str], lines: Sequence[str]) -> bool:
    """Return whether each module is made once and called once, and mentioned nowhere else."""
    times = Counter(re.findall(r"self\.(\w+)", "\n".join((*made, *lines))))
    return all(times[name] == 2 for name in run)


def _repeated(run: Sequence[str], lines: Sequence[str]) -> tuple[int, list[str], list[str]]:
    """Return (index of the first statement, the loop's body, statements after it).

    The body is empty if the statements do not repeat. If the last turn's result is returned
    directly, the loop assigns it, and a return statement follows.
    """
    nothing: tuple[int, list[str], list[str]] = (0, [], [])
    places = [
        next((n for n, line in enumerate(lines) if f"self.{name}(" in line), -1) for name in run
    ]
    sizes = {b - a for a, b in pairwise(places)}
    if len(sizes) != 1 or min(places) < 0 or (size := sizes.pop()) < 1:
        return nothing
    for start in range(places[0], max(places[0] - size, -1), -1):
        groups = [list(lines[start + k * size :][:size]) for k in range(len(run))]
        after: list[str] = []
        if len(groups[-1]) == size and groups[-1][-1].startswith("return "):
            target, equals, _ = groups[0][-1].partition(" = ")
            if equals and target.isidentifier():
                groups[-1][-1] = f"{target} = {groups[-1][-1].removeprefix('return ')}"
                after = [f"return {target}"]
        steps = [
            [line.replace(f"self.{name}(", f"{_STEP}(") for line in group]
            for name, group in zip(run, groups, strict=True)
        ]
        codes = [[split_comment(line)[0] for line in step] for step in steps]
        if all(code == codes[0] for code in codes) and len(codes[0]) == size:
            same = [len(set(several)) == 1 for several in zip(*steps, strict=True)]
            body = [s if k else c for s, c, k in zip(steps[0], codes[0], same, strict=True)]
            return start, body, after
    return nothing


def _renamed(weight: Weight, new: dict[str, str]) -> Weight:
    module, dot, rest = weight.local.partition(".")
    return replace(weight, local=f"{new[module]}{dot}{rest}") if module in new else weight


def roll_number_loops(lines: Sequence[str]) -> list[str]:
    """Return the statements of `forward`, with loops for those that differ in a rising number."""
    statements = [split_comment(line) for line in lines]
    written: list[str] = []
    start = 0
    while start < len(lines):
        loops = (_counted_loop(statements, start, n) for n in _BODIES)
        loop, size = max(loops, key=lambda found: found[1])
        written += loop if size else [lines[start]]
        start += size or 1
    return written


_BODIES = range(_LONGEST_BODY, 0, -1)


def _counted_loop(
    statements: Sequence[tuple[str, str]], start: int, size: int
) -> tuple[list[str], int]:
    """Return a loop whose body is the `size` statements from `start` on, and how many it replaces.

    `statements` are pairs of code and comment. ([], 0) if there is no such loop.
    """
    turns = (len(statements) - start) // size
    if turns < SHORTEST_LOOP or statements[start][0].startswith((" ", "return")):
        return [], 0

    def body(turn: int) -> list[str]:
        place = start + turn * size
        return _INDEX.split("\n".join(code for code, _ in statements[place : place + size]))

    first = body(0)
    moving = {k for k, (a, b) in enumerate(zip(first, body(1), strict=False)) if a != b}
    if not moving or len({first[k] for k in moving}) > 1 or any(k % 2 == 0 for k in moving):
        return [], 0
    begin = int(first[min(moving)])

    def expected(turn: int) -> list[str]:
        return [str(begin + turn) if k in moving else text for k, text in enumerate(first)]

    turns = next((turn for turn in range(turns) if body(turn) != expected(turn)), turns)
    if turns < SHORTEST_LOOP:
        return [], 0
    text = "\n".join(code + comment for code, comment in statements[start:])
    index = make_unique("t", {*RESERVED, *re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)})
    codes = "".join(index if k in moving else text for k, text in enumerate(first)).split("\n")
    comments = [[comment for _, comment in statements[start + n : start + turns * size : size]]
                for n in range(size)]  # fmt: skip
    same = [each[0] if len({*each}) == 1 else "" for each in comments]
    span = f"{begin}, {begin + turns}" if begin else f"{turns}"
    written = [f"    {code}{comment}" for code, comment in zip(codes, same, strict=True)]
    return [f"for {index} in range({span}):", *written], turns * size
