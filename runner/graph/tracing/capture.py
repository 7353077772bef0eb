"""Traces a problem's forward and returns its graph.

There are three capture strategies, and the graph names the one that worked: fake tensors throughout
(no memory, no compute); real parameters and inputs, traced by torch.export; a concrete trace with
real inputs.
"""

from __future__ import annotations

import contextlib
import logging
import re
import resource
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from runner.errors import CaptureError, ProblemError
from runner.graph.ir import (
    Capture,
    Graph,
    Mode,
)
from runner.graph.placement import copy_untraced, note_placement
from runner.graph.tracing.concrete_trace import restore_attributes, trace, trace_below_autograd
from runner.graph.tracing.convert import convert
from runner.graph.tracing.export_trace import (
    BuiltProblem,
    SizeFromWeightsError,
    TracedProgram,
    export,
    is_about_values,
    silence_torch_logs,
)
from runner.graph.tracing.hidden_tracing import (
    forget_cached_tensors,
    forget_last_trace,
    import_without_modes,
    list_entries,
)
from runner.graph.tracing.layer_copies import check_repeated_layers, write_repeated_layers
from runner.graph.tracing.provenance import (
    ProvenanceRecorder,
)
from runner.graph.tracing.refusal import DENSE, PADDED, PLAIN, CaptureRefusal
from runner.graph.tracing.repeated_layers import find_repeated_layers
from runner.graph.tracing.source_statement import is_torchs_or_kdruns
from runner.graph.tracing.value_recipes import ValueRecorder
from runner.problems import (
    LoadedProblem,
    Problem,
    author_code,
    author_error,
    check_inputs,
    is_out_of_memory,
    load_problem,
    seed,
)
from runner.torch_internals import FakeTensorMode
from runner.torch_tracing import (
    accept_grouped_dtypes,
    accept_numpy_scalars,
    allow_argument_mod,
    convert_fake_weights,
    draw_fake_weights,
    keep_fake_weights,
)

_ABOUT_NESTED_TENSORS = re.compile(r"Nested(Tensor|Int)")
_ABOUT_SPARSE_TENSORS = re.compile(r"Sparse(Tensor|CPU|CUDA|Meta|Cs[rc]|Bs[rc])")
_ABOUT_FAKE_TENSORS = re.compile(r"fake|meta tensor|meta device", re.IGNORECASE)
_LOGGER = logging.getLogger(__name__)
_LONGEST_INPUT = 4096
"""Most numbers that get_inputs(), and the files emitted for it, may write out: a graph's edges."""


class WeightsShortageError(MemoryError):
    """The model has to be built with real weights, which do not fit into the process's memory."""

    def __init__(self, needed_bytes: int) -> None:
        super().__init__(f"the weights have {needed_bytes} bytes")
        self.needed_bytes = needed_bytes


def capture(problem: Problem, mode: Mode = "eval") -> Graph:
    """Return the problem's program at its exact shapes.

    Raises:
        ProblemError: the author's code fails.
        CaptureError: the model runs, but no capture strategy could write its program down.
        MemoryError: only a model with real weights could be captured, and memory is short. It is a
            WeightsShortageError if the weights alone need more than the process may have.
    """
    # The fast path is one opaque operator in the place of the attention that the author wrote.
    torch.backends.mha.set_fastpath_enabled(False)
    # With opt_einsum installed, torch.einsum would multiply in another order.
    torch.backends.opt_einsum.enabled = False
    errors: list[Exception] = []
    weights_bytes = 0
    strategies: tuple[
        tuple[Capture, Callable[[], Any], Callable[[BuiltProblem], TracedProgram]], ...
    ] = (
        ("fake", lambda: FakeTensorMode(allow_non_fake_inputs=True), export),
        ("real_parameters", contextlib.nullcontext, export),
        ("concrete", contextlib.nullcontext, trace),
        ("concrete", contextlib.nullcontext, trace_below_autograd),
    )
    for strategy, tensor_mode, tracer in strategies:
        built: BuiltProblem | None = None
        try:
            if weights_bytes > _memory_limit_bytes():
                raise WeightsShortageError(weights_bytes)
            with (
                warnings.catch_warnings(),
                torch.no_grad(),
                forget_cached_tensors(),
                import_without_modes(),
            ):
                warnings.simplefilter("ignore")
                built = _build(problem, mode, tensor_mode())
                if strategy == "fake":
                    weights_bytes = _count_weights_bytes(built.model)
                    graph = _capture_first_layers(problem, mode, built)
                    if graph is not None:
                        return graph
                return _trace(problem, mode, strategy, tracer, built)
        except MemoryError as error:
            _explain_shortage(error, problem, mode, errors)
            raise
        except ProblemError as error:
            if strategy != "fake":
                raise
            errors.append(error)
        except Exception as error:  # Whatever tracing raises, the next strategy is tried.
            if is_out_of_memory(error):
                shortage = MemoryError(str(error))
                _explain_shortage(shortage, problem, mode, errors)
                raise shortage from error
            errors.append(error)
            is_last = tracer is strategies[-1][-1]
            if built and (is_last or (strategy != "fake" and _is_authors_raise(error))):
                _raise_authors_own_error(problem, mode, built, errors)
    raise _refusal(problem, errors)


def _count_weights_bytes(model: torch.nn.Module) -> int:
    """Return the bytes of a model's parameters; a tensor that is two of them counts once."""
    parameters = [p for p in model.parameters() if not is_lazy(p)]
    return sum(p.numel() * p.element_size() for p in parameters)


def _memory_limit_bytes() -> float:
    """Return the most bytes of data that this process may have; infinity without a limit."""
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return float("inf") if limit_bytes == resource.RLIM_INFINITY else limit_bytes


def _capture_first_layers(problem: Problem, mode: Mode, built: BuiltProblem) -> Graph | None:
    """Return the program, of whose equal layers only the first is traced; None if that fails."""
    built.layers = find_repeated_layers(built.model)
    if built.layers is None:
        return None
    try:
        return _trace(problem, mode, "fake", export, built)
    except (MemoryError, SizeFromWeightsError):
        raise
    except Exception as error:  # Traced one by one, the layers tell what there is to tell.
        _LOGGER.debug("each layer is traced: %s", error)
        built.layers = None
        forget_last_trace(built.model_recorder.has_made, built.own_entries)
        return None


def _trace(
    problem: Problem,
    mode: Mode,
    strategy: Capture,
    tracer: Callable[[BuiltProblem], TracedProgram],
    built: BuiltProblem,
) -> Graph:
    with (
        silence_torch_logs(),
        allow_argument_mod(),
        accept_numpy_scalars(),
        accept_grouped_dtypes(),
    ):
        untraced = copy_untraced(built) if strategy == "fake" else None
        with restore_attributes(built.model):
            traced = tracer(built)
        if built.layers is not None:
            check_repeated_layers(traced, built.layers)
        if tracer is export:
            rebuild = partial(_build, problem, mode) if strategy == "fake" else None
            note_placement(built, traced, rebuild, untraced)
        if built.layers is not None:
            write_repeated_layers(traced, built.layers)
        return convert(problem, built, traced, strategy, mode)


def capture_object(
    problem: Problem,
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mode: Mode,
) -> Graph:
    """Return the program of a model in memory for these inputs, and leave the model as it is.

    `problem` names the model in messages. torch.export works on fake copies of the weights, so that
    a capture needs neither memory nor arithmetic; only a model that it cannot trace runs.

    Raises:
        CaptureError: no capture strategy could write the program down.
        ProblemError: the inputs do not fit forward(), or it raises.
    """
    training = {module: module.training for module in model.modules()}
    fast_path = torch.backends.mha.get_fastpath_enabled()
    einsum = torch.backends.opt_einsum.enabled
    torch.backends.mha.set_fastpath_enabled(False)
    torch.backends.opt_einsum.enabled = False
    errors: list[Exception] = []
    strategies: tuple[tuple[Capture, Callable[[BuiltProblem], TracedProgram]], ...] = (
        ("real_parameters", export),
        ("concrete", trace),
        ("concrete", trace_below_autograd),
    )
    try:
        model.train(mode == "train")
        check_inputs(problem, model, args, kwargs)
        loaded = LoadedProblem(problem, ModuleType(problem.name), type(model))
        recorder, inputs_recorder = ValueRecorder(), ValueRecorder(inputs=True)
        built = BuiltProblem(loaded, model, args, kwargs, recorder, inputs_recorder)
        for strategy, tracer in strategies:
            try:
                with (
                    warnings.catch_warnings(),
                    torch.no_grad(),
                    restore_attributes(model),
                    silence_torch_logs(),
                    allow_argument_mod(),
                    accept_numpy_scalars(),
                    accept_grouped_dtypes(),
                ):
                    warnings.simplefilter("ignore")
                    traced = tracer(built)
                    return convert(problem, built, traced, strategy, mode)
            except MemoryError:
                raise
            except Exception as error:  # Whatever tracing raises, the next strategy is tried.
                errors.append(error)
        with torch.no_grad(), author_code(problem):
            model(*args, **kwargs)
        raise _refusal(problem, errors) from errors[-1]
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        torch.backends.opt_einsum.enabled = einsum
        for module, is_training in training.items():
            module.training = is_training


def _is_authors_raise(error: Exception) -> bool:
    """Return whether a line of the author's, or of a library but torch, raised the error itself."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return not is_torchs_or_kdruns(frame.f_code.co_filename)


def _explain_shortage(
    shortage: MemoryError, problem: Problem, mode: Mode, errors: list[Exception]
) -> None:
    """Note on a shortage of memory why the capture on fake tensors, which needs none, failed.

    An error that the author's code raised there, or that is raised there without a tracer too, is
    raised instead, unless it was raised while another was handled: fake tensors may have caused
    that one.
    """
    traceback.clear_frames(shortage.__traceback__)  # They hold what did not fit.
    for error in errors[:1]:
        cause = error.__cause__ if isinstance(error, ProblemError) else error
        if cause is None:
            raise error
        is_first = cause is not None and cause.__context__ is None
        if isinstance(cause, Exception) and is_first and _is_authors_raise(cause):
            raise author_error(problem, cause) from cause
        if untraced := _find_error_untraced(problem, mode):
            raise author_error(problem, untraced) from untraced
        why = "forward() asks for numbers that only real weights give: "
        why = why if is_about_values(error) else ""
        shortage.add_note(f"it needs memory because {why}{_reason(problem, error)[0]}")


def _find_error_untraced(problem: Problem, mode: Mode) -> Exception | None:
    """Return the error that the forward raises on fake tensors without a tracer, if it is its own.

    One about fake tensors, or about a number that they do not have, is not.
    """
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with torch.no_grad():
            built = _build(problem, mode, fake)
            with fake, keep_fake_weights(), silence_torch_logs():
                built.model(*built.args, **built.kwargs)
    except MemoryError:
        raise
    except Exception as error:  # The author's code may raise anything.
        is_builtin = type(error).__module__ == "builtins" and not is_out_of_memory(error)
        error.__context__ = None  # Otherwise the shortage counts as its first reason.
        is_own = not is_about_values(error) and not _ABOUT_FAKE_TENSORS.search(str(error))
        return error if is_builtin and is_own else None
    return None


def _refusal(problem: Problem, errors: list[Exception]) -> CaptureError:
    """Return the error for a model that no capture strategy captures.

    It gives the first reason with a specific hint, else the last that kdrun has a sentence for,
    else the failure of the last strategy, the real run.
    """
    refusals = [error for error in errors if isinstance(error, CaptureRefusal)]
    specific = [refusal for refusal in refusals if refusal.hint != PLAIN]
    for refusal in specific[:1] or refusals[-1:]:
        reason = f"cannot be captured: {refusal}"
        return CaptureError(problem.path, reason, hint=refusal.hint, line=refusal.line)
    reason, line = _reason(problem, errors[-1])
    hint = DENSE if _ABOUT_SPARSE_TENSORS.search(reason) else PLAIN
    if _ABOUT_NESTED_TENSORS.search(reason):
        reason, hint = "the model computes with nested tensors", PADDED
    return CaptureError(problem.path, f"cannot be captured: {reason}", hint=hint, line=line)


def _reason(problem: Problem, error: Exception) -> tuple[str, int | None]:
    """Return a failure's reason, and the line of the problem file that it is about."""
    if isinstance(error, CaptureRefusal):
        return str(error), error.line
    if not isinstance(error, ProblemError):
        error = author_error(problem, error)
    return error.reason, error.line


def _build(problem: Problem, mode: Mode, tensor_mode: Any) -> BuiltProblem:
    model_recorder, inputs_recorder = ProvenanceRecorder(), ProvenanceRecorder(_LONGEST_INPUT)
    with tensor_mode, convert_fake_weights(), draw_fake_weights():
        seed(0)
        loaded = load_problem(problem)
        seed(0)
        with model_recorder:
            model = loaded.build()
        seed(0)
        with inputs_recorder:
            args, kwargs = loaded.get_inputs()
    model.train(mode == "train")
    check_inputs(problem, model, args, kwargs)
    seed(0)
    entries = list_entries(loaded.module)
    return BuiltProblem(
        loaded, model, args, kwargs, model_recorder, inputs_recorder, own_entries=entries
    )


@torch.no_grad()
def _raise_authors_own_error(
    problem: Problem, mode: Mode, built: BuiltProblem, errors: list[Exception]
) -> None:
    """Run the model without a tracer; an error that it raises by itself is the author's, not ours.

    A traced model may keep fake tensors in its own objects. If it fails, a newly built model
    decides whose error it is.
    """
    try:
        try:
            built.model(*built.args, **built.kwargs)
            return
        except MemoryError:
            raise
        except Exception:
            untraced = _build(problem, mode, contextlib.nullcontext())
        with author_code(problem):
            untraced.model(*untraced.args, **untraced.kwargs)
    except MemoryError as shortage:
        _explain_shortage(shortage, problem, mode, errors)
        raise
