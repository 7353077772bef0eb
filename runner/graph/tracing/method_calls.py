"""Calls of modules that no tracer sees: by a method's name, or of modules in plain objects.

`layer.forward_parallel(x)` and `flow.inverse(x)` are calls of a module as `layer(x)` is, and so is
`self.sampler.denoiser(x)` where the sampler is no module. While a tracer writes an operation down,
the frames that run say which modules they belong to, and the operation's stack trace keeps it.
"""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

import torch

from runner.graph.ir import Scope
from runner.graph.tracing.constant_tensors import plain_modules
from runner.graph.tracing.source_statement import forwards_and_helpers
from runner.torch_internals import filter_trace_frames

_CALL = torch.nn.Module.__call__.__code__
_TORCH = str(Path(torch.__file__).parent)
_KDRUN = str(Path(__file__).parents[2])
_NOTE = re.compile(r", in \S+?\|(?P<calls>\S+)$", re.MULTILINE)


def authors_frames(model: torch.nn.Module) -> contextlib.AbstractContextManager[None]:
    """While a tracer of torch runs, its stack traces hold the functions that a forward calls.

    By itself it keeps frames called `forward` alone, and so loses who wrote what in a helper. A
    module's method that is called by name is a forward, too.
    """
    modules = _ModuleFrames(model)

    def kept(summary: traceback.StackSummary) -> traceback.StackSummary:
        summary, note = modules.noted(summary)
        summary = forwards_and_helpers(summary)
        if summary and note:
            summary[-1] = _named(summary[-1], f"{summary[-1].name}|{note}")
        return summary

    return filter_trace_frames(kept)


class _ModuleFrames:
    """Knows a model's modules, and which calls of them the running frames are in."""

    def __init__(self, model: torch.nn.Module) -> None:
        registered = {id(vars(m)): (p, m) for p, m in reversed(list(model.named_modules()))}
        plain = {id(vars(m)): (p, m) for p, m in reversed(list(plain_modules(model).items()))}
        # A tracer's stand-in for a module is another object with the same attributes.
        self.places = {**plain, **registered}
        self.registered = frozenset(registered)
        self.calls: Counter[str] = Counter()
        self.latest: dict[str, tuple[FrameType, int]] = {}
        """By path: the frame of the latest call that frames alone show, and its number."""

    def noted(self, summary: traceback.StackSummary) -> tuple[traceback.StackSummary, str]:
        """A stack trace in which such a method is called `forward`, and a note of all such calls.

        For each, the note says how many calls of the tracer's own stack of modules are around it. A
        forward that is no module's, or that its module's own method calls, is a function.
        """
        frames = _running()[: len(summary)]
        if [(f.f_code.co_filename, f.f_code.co_name) for f in frames] != [
            (entry.filename, entry.name) for entry in summary
        ]:
            return summary, ""
        self._forget_finished(frames)
        entries, around, notes, depth = list(summary), [""], list[str](), 0
        by_name: str | None = None
        for n, frame in enumerate(frames):
            called = frame.f_code is _CALL
            own = not frame.f_code.co_filename.startswith((_TORCH, _KDRUN))
            module = _first_argument(frame) if own or called else None
            path = self._path(module)
            no_call = not isinstance(module, torch.nn.Module) or path == around[-1] == by_name
            if own and frame.f_code.co_name == "forward" and no_call:
                entries[n] = _named(entries[n], _function(frame))
            registered = called and id(getattr(module, "__dict__", None)) in self.registered
            depth += registered and path != ""
            if not isinstance(module, torch.nn.Module) or path is None or path in around:
                continue
            around.append(path)
            if not registered:
                notes.append(f"{depth}|{self._scope(path, module, frame)}")
            if not called:
                entries[n], by_name = _named(entries[n], "forward"), path
        note = ";".join(notes)
        return traceback.StackSummary.from_list(entries), "" if " " in note else note

    def _path(self, module: object) -> str | None:
        found = self.places.get(id(vars(module))) if isinstance(module, torch.nn.Module) else None
        return found and found[0]

    def _scope(self, path: str, module: torch.nn.Module, frame: FrameType) -> str:
        if path not in self.latest or self.latest[path][0] is not frame:
            self.latest[path] = frame, self.calls[path]
            self.calls[path] += 1
        method = "" if frame.f_code is _CALL else frame.f_code.co_name
        cls = f"{type(module).__module__}.{type(module).__qualname__}"
        return "|".join((path, cls.replace(" ", ""), str(self.latest[path][1]), method))

    def _forget_finished(self, frames: list[FrameType]) -> None:
        """Let go of what finished calls held; their frames are only compared with others."""
        live = set(map(id, frames))
        for frame, _ in self.latest.values():
            if id(frame) not in live:
                with contextlib.suppress(RuntimeError):
                    frame.clear()


def _first_argument(frame: FrameType) -> object:
    """What a method is called of; None for a function that is no forward."""
    code = frame.f_code
    if not code.co_argcount or (code.co_varnames[0] != "self" and code.co_name != "forward"):
        return None
    return frame.f_locals.get(code.co_varnames[0])


def _function(frame: FrameType) -> str:
    """What a forward is called that is no call of a module: by its class, where that is known."""
    cls = getattr(frame.f_code, "co_qualname", "").rpartition(".")[0].rpartition(".")[2]
    return "forward_" if isinstance(_first_argument(frame), torch.nn.Module) or not cls else cls


def _named(entry: traceback.FrameSummary, name: str) -> traceback.FrameSummary:
    """A line of a stack trace with another function's name."""
    return traceback.FrameSummary(entry.filename, entry.lineno, name, lookup_line=False)


def with_methods(scopes: tuple[Scope, ...], trace: str) -> tuple[Scope, ...]:
    """The module calls around an operation, those that only its stack trace notes among them."""
    note = _NOTE.search(trace)
    found = list(scopes)
    for n, text in enumerate(note["calls"].split(";") if note is not None else ()):
        depth, path, cls, call, method = text.split("|")
        builtin = cls.startswith("torch.nn.")
        scope = Scope(path, cls.rpartition(".")[2], int(call), builtin, method)
        found.insert(int(depth) + n, scope)
    return tuple(found)


def _running() -> list[FrameType]:
    """The frames that run, outermost first."""
    frames, frame = list[FrameType](), sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames[::-1]
