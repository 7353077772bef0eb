"""Finds the author's statement for an operation, its targets and the calls that lead to it."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch

from runner.graph.ir import Origin

_TORCH = str(Path(torch.__file__).parent) + os.sep
_KDRUN = str(Path(__file__).parents[2]) + os.sep
_SITE_PACKAGES = "site-packages/"
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


@dataclass(frozen=True, slots=True)
class CalledLine:
    """A line that runs, and the function that it is in."""

    file: str
    line: int
    function: str


def is_torchs_or_kdruns(file: str) -> bool:
    """Return whether a file is torch's or kdrun's own; torchvision's is not."""
    return file.startswith((_TORCH, _KDRUN))


def select_authors_lines(lines: Sequence[CalledLine]) -> list[CalledLine]:
    """Keep the forwards, and what the innermost one calls in its own file or package.

    For a forward in no package, such as a problem file's, keep its calls in packages, too.
    `lines`: those that run, outermost first, without torch's and kdrun's.
    """
    forwards = [i for i, line in enumerate(lines) if line.function == "forward"]
    if not forwards:
        return []
    package = _package(lines[forwards[-1]].file)
    helpers = [line for line in lines[forwards[-1] + 1 :] if _is_helper(line.file, package)]
    return [*(lines[i] for i in forwards), *helpers]


def _is_helper(file: str, package: str) -> bool:
    """Return whether a file is in the forward's own package, or in any if the forward has none."""
    return _package(file) == package or (_SITE_PACKAGES in file and _SITE_PACKAGES not in package)


@functools.cache
def _package(file: str) -> str:
    """Return the installed package that a file belongs to, or else the file."""
    head, separator, tail = file.rpartition(_SITE_PACKAGES)
    return head + separator + tail.partition("/")[0] if separator else file


def find_origin(trace: str, problem_file: str) -> Origin | None:
    """Return the place of a stack trace's operation; None if no frame is the author's."""
    frames = [
        (m["file"], int(m["line"]), m["function"].partition("|")[0]) for m in _FRAME.finditer(trace)
    ]
    frames = [f for f in frames if not is_torchs_or_kdruns(f[0])]
    if not frames:
        return None
    start = max((i + 1 for i, frame in enumerate(frames) if frame[2] == "forward"), default=0)
    called = [
        (file, function, frames[i - 1][1], _is_in_loop(file, line))
        for i, (file, line, function) in enumerate(frames)
        if i >= max(start, 1) and not function.startswith(("<", "__"))
    ]
    package = _package(frames[start - 1][0]) if start else ""
    frames = [
        f for i, f in enumerate(frames) if i < start or _package(f[0]) == package or not package
    ]
    function_name = next((f for _, _, f in reversed(frames) if not f.startswith("<")), "")
    frames = [*frames[:start], *frames[start:][-1:]]
    problem_lines = [line for file, line, _ in frames if file == problem_file]
    calls = [line if file == problem_file else None for file, line, f in frames if f == "forward"]
    *callers, (file, line, _) = frames
    statement, targets, joined = _find_statement(file, line)
    outer_statements = tuple((file, *_find_statement(file, line)[:2]) for file, line, _ in callers)
    problem_line = problem_lines[-1] if problem_lines else None
    return Origin(
        file,
        statement,
        targets,
        problem_line,
        tuple(calls),
        outer_statements,
        joined,
        function_name,
        tuple(call[:3] for call in called),
        tuple(in_loop for *_, in_loop in called),
    )


def current_origin() -> Origin | None:
    """Return the author's statement that is running, from the frame outside torch and kdrun."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_torchs_or_kdruns(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    file = frame.f_code.co_filename
    statement, targets, _ = _find_statement(file, frame.f_lineno)
    return Origin(file, statement, targets)


_Statement = tuple[int, tuple[str, ...], str]
"""First line, the names that it assigns to, and the list of tensors that it joins."""


@functools.cache
def _find_statement(file: str, line: int) -> _Statement:
    """Return the innermost simple statement at a line."""
    candidates = [
        (end - first, s) for first, end, s in _list_statements(file) if first <= line <= end
    ]
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else (line, (), "")


@functools.lru_cache(maxsize=4)
def _nodes(file: str) -> list[ast.AST]:
    """Return the nodes of a file's syntax tree; empty if it is no Python."""
    try:
        return list(ast.walk(ast.parse("".join(linecache.getlines(file)))))
    except SyntaxError:
        return []


def _is_in_loop(file: str, line: int) -> bool:
    """Return whether a line stands in the body of a `for` or `while` loop."""
    return any(first <= line <= last for first, last in _loop_bodies(file))


@functools.cache
def _loop_bodies(file: str) -> list[tuple[int, int]]:
    """Return the first and last line of the body of each loop in a file."""
    loops = (node for node in _nodes(file) if isinstance(node, (ast.For, ast.While)))
    return [(node.body[0].lineno, node.body[-1].end_lineno or 0) for node in loops]


@functools.cache
def _list_statements(file: str) -> list[tuple[int, int, _Statement]]:
    """Return, for each simple statement, its first and last line and its description."""
    statements = []
    for node in _nodes(file):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
            targets = (
                node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            )
            has_single_target = len(targets) == 1 and not (
                isinstance(node.value, _NO_TENSOR) and not isinstance(targets[0], ast.Tuple)
            )
            names = tuple(_target_names(targets[-1])) if has_single_target else ()
            statement = (node.lineno, names, _joined_list(node))
            statements.append((node.lineno, node.end_lineno or node.lineno, statement))
    return statements


_NO_TENSOR = (ast.Lambda, ast.List, ast.ListComp, ast.GeneratorExp, ast.Dict, ast.DictComp)
"""Expressions whose value is a function or holds several tensors."""
_JOINS = {"cat", "concat", "concatenate", "stack"}


def _joined_list(statement: ast.stmt) -> str:
    """Return the variable of the only list that `torch.cat` or `torch.stack` joins."""
    lists = [
        call.args[0].id
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _JOINS
        and call.args
        and isinstance(call.args[0], ast.Name)
    ]
    return lists[0] if len(lists) == 1 else ""


def _target_names(target: ast.AST | None) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, ast.Subscript):
        yield from _target_names(target.value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _target_names(item)
