"""Finds module calls that no tracer sees: by a method's name, or of modules in plain objects.

`layer.forward_parallel(x)` and `flow.inverse(x)` are calls of a module as `layer(x)` is, and so is
`self.sampler.denoiser(x)` when the sampler is no module. While a tracer records an operation, the
running frames show the modules that they belong to, and the operation's stack trace stores them.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections import Counter
from dataclasses import replace
from types import CodeType, FrameType

import torch

from runner.graph.ir import Scope
from runner.graph.tracing.constant_tensors import find_plain_modules
from runner.graph.tracing.source_statement import (
    CalledLine,
    is_torchs_or_kdruns,
    select_authors_lines,
)
from runner.torch_tracing import replace_stack_traces

_CALL = torch.nn.Module.__call__.__code__
_NOTE = re.compile(r", in \S+?\|(?P<calls>\S+)$", re.MULTILINE)


def keep_authors_frames(model: torch.nn.Module) -> contextlib.AbstractContextManager[None]:
    """Keep the functions that a forward calls in torch's stack traces while a tracer runs.

    By itself a tracer keeps only frames called `forward`, and so loses the author's line in a
    helper. A module's method that is called by name counts as a forward.
    """
    return replace_stack_traces(ModuleFrames(model).describe)


class ModuleFrames:
    """Finds the module calls that the running frames belong to."""

    def __init__(self, model: torch.nn.Module) -> None:
        registered = {id(vars(m)): (p, m) for p, m in reversed(list(model.named_modules()))}
        plain = {id(vars(m)): (p, m) for p, m in reversed(list(find_plain_modules(model).items()))}
        # A tracer replaces a module by another object with the same attributes dict.
        self.modules = {**plain, **registered}
        self.registered = frozenset(registered)
        self.calls: Counter[str] = Counter()
        self.latest_calls: dict[str, tuple[FrameType, int]] = {}
        """By path: frame and number of the latest call that only frames show."""

    def describe(self) -> list[str]:
        """Return the author's lines among the running frames, and a note on the module calls."""
        lines, note = self.annotate(_find_relevant_frames())
        lines = select_authors_lines(lines)
        if lines and note:
            lines[-1] = replace(lines[-1], function=f"{lines[-1].function}|{note}")
        return [f'File "{line.file}", line {line.line}, in {line.function}\n' for line in lines]

    def find_innermost_call(self) -> str | None:
        """Return the path of the module whose call runs; None for one that is not registered."""
        calls = [frame for frame in _find_relevant_frames() if frame.f_code is _CALL]
        module = _first_argument(calls[-1])
        return self._find_path(module) if id(vars(module)) in self.registered else None

    def annotate(self, frames: list[FrameType]) -> tuple[list[CalledLine], str]:
        """Return the author's lines, with such a method called `forward`, and a note on the calls.

        For each, the note gives the number of calls around it on the tracer's own stack of modules.
        A forward that belongs to no module, or that its module's own method calls, counts as a
        function.
        """
        self._forget_finished(frames)
        lines, enclosing, notes, depth = list[CalledLine](), [""], list[str](), 0
        direct_path: str | None = None
        for frame in frames:
            is_call, name = frame.f_code is _CALL, frame.f_code.co_name
            module = _first_argument(frame)
            path = self._find_path(module)
            is_function = (
                not isinstance(module, torch.nn.Module) or path == enclosing[-1] == direct_path
            )
            if name == "forward" and is_function:
                name = _function_name(frame)
            is_registered = is_call and id(getattr(module, "__dict__", None)) in self.registered
            depth += is_registered and path != ""
            if isinstance(module, torch.nn.Module) and path is not None and path not in enclosing:
                enclosing.append(path)
                if not is_registered:
                    notes.append(f"{depth}|{self._describe_call(path, module, frame)}")
                if not is_call:
                    name, direct_path = "forward", path
            if not is_call:
                lines.append(CalledLine(frame.f_code.co_filename, frame.f_lineno, name))
        note = ";".join(notes)
        return lines, "" if " " in note else note

    def _find_path(self, module: object) -> str | None:
        entry = self.modules.get(id(vars(module))) if isinstance(module, torch.nn.Module) else None
        return entry and entry[0]

    def _describe_call(self, path: str, module: torch.nn.Module, frame: FrameType) -> str:
        if path not in self.latest_calls or self.latest_calls[path][0] is not frame:
            self.latest_calls[path] = frame, self.calls[path]
            self.calls[path] += 1
        method = "" if frame.f_code is _CALL else frame.f_code.co_name
        cls = f"{type(module).__module__}.{type(module).__qualname__}"
        return "|".join((path, cls.replace(" ", ""), str(self.latest_calls[path][1]), method))

    def _forget_finished(self, frames: list[FrameType]) -> None:
        """Release what finished calls hold; their frames are only compared with others."""
        live = set(map(id, frames))
        for frame, _ in self.latest_calls.values():
            if id(frame) not in live:
                with contextlib.suppress(RuntimeError):
                    frame.clear()


def _first_argument(frame: FrameType) -> object:
    """Return the object that a method is called on; None for a function that is no forward."""
    code = frame.f_code
    if not code.co_argcount or (code.co_varnames[0] != "self" and code.co_name != "forward"):
        return None
    return frame.f_locals.get(code.co_varnames[0])


def _function_name(frame: FrameType) -> str:
    """Return the name for a forward that is no module call: its class, if that is known."""
    cls = getattr(frame.f_code, "co_qualname", "").rpartition(".")[0].rpartition(".")[2]
    return "forward_" if isinstance(_first_argument(frame), torch.nn.Module) or not cls else cls


def add_method_scopes(scopes: tuple[Scope, ...], trace: str) -> tuple[Scope, ...]:
    """Return the module calls around an operation, with those that its stack trace notes."""
    note = _NOTE.search(trace)
    result = list(scopes)
    for n, text in enumerate(note["calls"].split(";") if note is not None else ()):
        depth, path, cls, call, method = text.split("|")
        builtin = cls.startswith("torch.nn.")
        scope = Scope(path, cls.rpartition(".")[2], int(call), builtin, method)
        result.insert(int(depth) + n, scope)
    return tuple(result)


def _find_relevant_frames() -> list[FrameType]:
    """Return the running frames that are module calls or the author's, outermost first."""
    frames, frame = list[FrameType](), sys._getframe(1)
    while frame is not None:
        if _is_relevant(frame.f_code):
            frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames[::-1]


@functools.lru_cache(4096)
def _is_relevant(code: CodeType) -> bool:
    return code is _CALL or not is_torchs_or_kdruns(code.co_filename)
