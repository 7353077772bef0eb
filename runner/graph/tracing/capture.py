"""This file knows about torch.export: it runs a forward symbolically and writes down our graph.

Three rungs, and the graph says which one held: fake tensors throughout (no memory, no compute);
real parameters and inputs, traced by torch.export; a concrete trace with real inputs.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from runner.errors import CaptureError, ProblemError
from runner.graph.ir import (
    Capture,
    Graph,
    Mode,
)
from runner.graph.placement import note_placement
from runner.graph.tracing.concrete_trace import attributes_restored, trace, trace_below
from runner.graph.tracing.convert import convert
from runner.graph.tracing.export_trace import Built, Traced, export, quietly
from runner.graph.tracing.hidden_tracing import forgetting_results, plain_imports
from runner.graph.tracing.provenance import (
    Recorder,
)
from runner.graph.tracing.refusal import DENSE, PLAIN, Refused
from runner.problems import Problem, author_error, check_inputs, load_problem, seed
from runner.torch_internals import FakeTensorMode, accept_numpy_scalars, allow_argument_mod

_LONGEST_INPUT = 4096
"""Numbers that get_inputs() may write out, such as the edges of a graph, and its files too."""


def capture(problem: Problem, mode: Mode = "eval") -> Graph:
    """The problem's program at its exact shapes.

    Raises:
        ProblemError: the author's code fails.
        CaptureError: the model runs, but no rung could write its program down.
    """
    # The fast path is one opaque operator instead of the attention that was written.
    torch.backends.mha.set_fastpath_enabled(False)
    # With opt_einsum installed, torch.einsum would multiply in another order.
    torch.backends.opt_einsum.enabled = False
    errors: list[Exception] = []
    rungs: tuple[tuple[Capture, Callable[[], Any], Callable[[Built], Traced]], ...] = (
        ("fake", lambda: FakeTensorMode(allow_non_fake_inputs=True), export),
        ("real_parameters", contextlib.nullcontext, export),
        ("concrete", contextlib.nullcontext, trace),
        ("concrete", contextlib.nullcontext, trace_below),
    )
    for rung, tensors, write_down in rungs:
        built: Built | None = None
        try:
            with warnings.catch_warnings(), torch.no_grad(), forgetting_results(), plain_imports():
                warnings.simplefilter("ignore")
                built = _build(problem, mode, tensors())
                with quietly(), allow_argument_mod(), accept_numpy_scalars():
                    with attributes_restored(built.model):
                        traced = write_down(built)
                    if write_down is export:
                        anew = partial(_build, problem, mode) if rung == "fake" else None
                        note_placement(built, traced, anew)
                return convert(problem, built, traced, rung, mode)
        except MemoryError:
            raise
        except ProblemError as error:
            if rung != "fake":
                raise
            errors.append(error)
        except Exception as error:  # the boundary between torch's tracing and the next rung
            errors.append(error)
            if rung != "fake" and built is not None:
                _raise_authors_own_error(problem, mode, built)
    raise _refusal(problem, errors)


def _refusal(problem: Problem, errors: list[Exception]) -> CaptureError:
    """The error for a model that no rung captures.

    It gives the reason that has a remedy of its own, else why the last rung, the real run, failed.
    """
    known = (e for e in errors if isinstance(e, Refused) and e.hint != PLAIN)
    if first := next(known, None):
        return CaptureError(problem.path, f"cannot be captured: {first}", hint=first.hint)
    reason = _reason(problem, errors[-1])
    hint = DENSE if "Sparse" in reason else PLAIN
    return CaptureError(problem.path, f"cannot be captured: {reason}", hint=hint)


def _reason(problem: Problem, error: Exception) -> str:
    if isinstance(error, Refused):
        return str(error)
    return error.reason if isinstance(error, ProblemError) else author_error(problem, error)


def _build(problem: Problem, mode: Mode, tensors: Any) -> Built:
    made_model, made_inputs = Recorder(), Recorder(_LONGEST_INPUT)
    with tensors:
        seed(0)
        loaded = load_problem(problem)
        seed(0)
        with made_model:
            model = loaded.build()
        seed(0)
        with made_inputs:
            args, kwargs = loaded.get_inputs()
    model.train(mode == "train")
    check_inputs(problem, model, args, kwargs)
    seed(0)
    return Built(loaded, model, args, kwargs, made_model, made_inputs)


def _raise_authors_own_error(problem: Problem, mode: Mode, built: Built) -> None:
    """Run the model plainly: an error that it raises by itself is the author's, not ours.

    A model that was traced may keep what the tracer gave it, in objects of its own: where it fails,
    one that is built anew says whose error it is.
    """
    try:
        built.model(*built.args, **built.kwargs)
        return
    except MemoryError:
        raise
    except Exception:
        anew = _build(problem, mode, contextlib.nullcontext())
    try:
        anew.model(*anew.args, **anew.kwargs)
    except MemoryError:
        raise
    except Exception as error:
        raise ProblemError(problem.path, author_error(problem, error)) from error
