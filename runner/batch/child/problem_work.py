"""Does one problem's work inside its child process and answers how it ended.

Every public entry point takes a task as JSON and returns an answer as JSON. Errors of a problem
become answers; only the end of the process itself is left to the parent to notice. Importing this
file imports torch and the whole engine, so only the fork server does so.
"""

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

import torch

from runner.batch.child.answer import (
    Answer,
    EstimateAnswer,
    FactsAnswer,
    FailureAnswer,
    FailureCause,
    VerdictAnswer,
    describe_problem_error,
    request_more_memory,
)
from runner.batch.child.device import find_device
from runner.batch.child.fork_server import allow_memory
from runner.batch.child.input_repair import rewrite_inputs
from runner.batch.child.task import Task
from runner.batch.child.tree_backfill import backfill_tree
from runner.batch.machine import GIB, resident_bytes
from runner.batch.memory_request import (
    Forecast,
    describe_largest_node,
    describe_shortage,
    request_with_margin,
)
from runner.emit.decomposition import capture_graph, write_decomposition
from runner.errors import (
    DecompositionError,
    KdrunError,
    ProblemError,
    UsageError,
    comes_from_full_disk,
)
from runner.graph.peak_memory import Estimate, estimate_graph
from runner.graph.recognition.formula_search import rows_of_all_formulas
from runner.graph.tracing.capture import WeightsShortageError
from runner.problems import Problem, is_out_of_memory, read_problem, read_variant
from runner.problems.package_model import suggest_init
from runner.prompts.brief import MOST_FINDINGS
from runner.prompts.fact_collection import collect_facts
from runner.statuses import Status
from runner.store.result import Figures
from runner.tree.document import Tree
from runner.verify import VerifyOptions, write_reports
from runner.verify import verify as verify_directory
from runner.verify.options import DRAWN_AGAIN_BYTES
from runner.verify.original_check import raise_if_original_fails
from runner.verify.results import Verdict, components_with_bad_inputs, list_faults
from runner.verify.runtime.memory_fit import plan_memory

rows_of_all_formulas()  # Takes 0.15 s; done here, the fork server does it once for all children.

_PACKAGE = Path(__file__).parents[2]
_COPIES_WHEN_APART = 3
"""Number of processes that hold the model while somebody else's directory is verified."""
UNVERIFIED = "not verified, as --no-verify asks"
"""Reason of a decomposition that was to be written only."""
SMALL_OPERATIONS = 8
"""A problem without a source level and with at most this many operations counts as one fusion."""


def _answering(body: Callable[[Task, "Stages"], Answer]) -> Callable[[str], str]:
    """Return a function for a child process, from the JSON of a task to the JSON of an answer.

    Every exception that `body` raises becomes an answer.
    """

    @wraps(body)
    def answer_task(argument: str) -> str:
        task = Task.model_validate_json(argument)
        torch.set_num_threads(task.threads)
        stages = Stages(task.stage_file)
        try:
            answer = body(task, stages)
        except Exception as error:
            answer = _describe_error(error, task, stages.current_stage)
        stages.end_forked_copy()
        measured = {"seconds": stages.seconds, "figures": stages.figures}
        return answer.model_copy(update=measured).model_dump_json()

    return answer_task


@_answering
def estimate(task: Task, stages: "Stages") -> Answer:
    """Capture a problem and return the answer with its memory forecast; nothing is computed."""
    with stages("load"):
        problem = read_problem(task.problem)
    if refusal := _refuse_variant(task):
        return refusal
    with stages("capture"):
        graph = capture_graph(problem, mode=task.options.mode)
        return EstimateAnswer(
            forecast=forecast_memory(problem, estimate_graph(graph)),
            input_shapes=[list(graph.values[item.name].shape) for item in graph.inputs],
        )


def forecast_memory(problem: Problem, estimated: Estimate) -> Forecast:
    """Return the forecast; `forward_bytes` also covers parts that run alone and inputs drawn again.

    Parts of problems of levels 1 and 2, and of small ones, are single kernels, which hold no more
    than the whole problem does.
    """
    is_small = problem.level is None and estimated.operations <= SMALL_OPERATIONS
    parts_bytes = 0 if is_small or problem.level in (1, 2) else estimated.parts_bytes
    redraw_bytes = estimated.drawing_bytes if estimated.inputs_bytes <= DRAWN_AGAIN_BYTES else 0
    return Forecast(
        forward_bytes=max(estimated.peak.resident_bytes, parts_bytes, redraw_bytes),
        inputs_bytes=estimated.inputs_bytes,
        outputs_bytes=estimated.outputs_bytes,
        flops=estimated.flops,
        weights_bytes=estimated.weights_bytes,
        operations=estimated.operations,
        workloads=estimated.workloads,
        steps=estimated.steps,
        process_bytes=resident_bytes(),
    )


@_answering
def facts(task: Task, stages: "Stages") -> Answer:
    """Capture a problem and return the answer with the facts that a decomposer's brief states."""
    with stages("load"):
        problem = read_problem(task.problem)
    if refusal := _refuse_variant(task):
        return refusal
    with stages("capture"):
        return FactsAnswer(facts=collect_facts(problem, task.options.mode))


@_answering
def decompose(task: Task, stages: "Stages") -> Answer:
    """Decompose a problem into `task.build_directory`, and verify the result."""
    device = find_device(task.options.device)
    with stages("load"):
        problem = read_problem(task.problem)
    if refusal := _refuse_variant(task):
        return refusal
    with stages("capture"):
        graph = capture_graph(problem, mode=task.options.mode)
        memory_forecast = forecast_memory(problem, estimate_graph(graph))
    options = task.options
    larger_request = request_more_memory(task, memory_forecast)
    if options.verify and larger_request:
        return larger_request
    with stages("decompose"):
        tree = write_decomposition(
            problem, graph, task.build_directory, keeps_values=task.keeps_values
        )
    metadata = tree.metadata
    stages.figures = Figures.of_tree(metadata)
    if not options.verify:
        return FailureAnswer(
            status="written", reason=UNVERIFIED, stage="verify", forecast=memory_forecast
        )
    needed_bytes, _ = plan_memory(tree, task.most_memory_bytes, device)
    if needed_bytes > task.memory_bytes:
        may_fit = needed_bytes <= task.most_memory_bytes
        shortage = describe_shortage(needed_bytes, task.most_memory_bytes)
        is_kept = options.unverified and not may_fit
        return FailureAnswer(
            status="written" if is_kept else "too_large",
            reason=f"not verified: {shortage}" if is_kept else shortage,
            stage="verify",
            cause=FailureCause.OUT_OF_MEMORY if may_fit else None,
            forecast=memory_forecast,
        )
    # Convolutions allocate scratch memory that they never touch; it costs the machine nothing.
    allow_memory(metadata.estimated_allocation_bytes - metadata.estimated_peak_bytes)
    # Use no more than a run would grant, so that as many outputs are kept, and the peak is the
    # same, in a run and in `kdrun decompose`.
    used_limit_bytes = min(task.memory_bytes, request_with_margin(memory_forecast.expected_bytes))
    task = task.model_copy(update={"memory_bytes": used_limit_bytes})
    answer = _verify_directory(task, stages, task.build_directory, device, problem)
    if isinstance(answer, VerdictAnswer) and (answer.given_bad_inputs or answer.constant_kernels):
        with stages("decompose"):
            is_rewritten = rewrite_inputs(
                problem,
                graph,
                task.build_directory,
                answer.given_bad_inputs,
                answer.constant_kernels,
                keeps_values=task.keeps_values,
            )
        if is_rewritten:
            answer = _verify_directory(task, stages, task.build_directory, device, problem)
    return answer.model_copy(update={"forecast": memory_forecast})


def _refuse_variant(task: Task) -> FailureAnswer | None:
    """Return the answer of a variant that does not exist, or None if the problem is to be run."""
    variant = read_variant(task.problem)
    if variant is None or variant.refusal is None:
        return None
    status: Status = "too_large" if variant.fit else "error"
    return FailureAnswer(status=status, reason=variant.refusal, stage="load")


@_answering
def verify(task: Task, stages: "Stages") -> Answer:
    """Verify the decomposition in `task.directory`, without writing to it."""
    device = find_device(task.options.device)
    return _verify_directory(task, stages, task.directory, device, write=False)


@_answering
def judge(task: Task, stages: "Stages") -> Answer:
    """Verify a decomposer's delivery in `task.build_directory`, and write the verdicts there."""
    device = find_device(task.options.device)
    answer = _verify_directory(task, stages, task.build_directory, device)
    if answer.status == "passed":
        with stages("describe"):
            backfill_tree(task.build_directory, task.options.mode)
    return answer


def _verify_directory(
    task: Task,
    stages: "Stages",
    directory: Path,
    device: str,
    problem: Problem | None = None,
    *,
    write: bool = True,
) -> VerdictAnswer | FailureAnswer:
    """Verify a directory and return the verdict, or why there is none.

    `problem` is the problem that kdrun itself decomposed into the directory; None if somebody else
    wrote the directory. With `write`, the reports are written into the directory.

    Raises:
        ProblemError: the problem fails on its own inputs, or gives other values the second time.
    """
    try:
        tree = Tree.read(directory)
    except DecompositionError:
        streamed = False  # The gates will report what is wrong with the tree.
    else:
        _, streamed = plan_memory(tree, task.most_memory_bytes, device)
        if streamed and problem is None:
            shortage = describe_shortage(tree.metadata.estimated_peak_bytes, task.most_memory_bytes)
            reason = f"{shortage}; weights are streamed only where kdrun has just written the files"
            return FailureAnswer(status="too_large", reason=reason, stage="verify")
        apart_bytes = _COPIES_WHEN_APART * tree.metadata.estimated_peak_bytes
        if problem is None and apart_bytes > task.memory_bytes:
            reason = (
                f"{describe_shortage(apart_bytes, task.most_memory_bytes)}"
                ": several processes hold the model"
            )
            return FailureAnswer(status="too_large", reason=reason, stage="verify")
    with stages("verify"):
        torch.empty(0, device=device)  # Initialise the device before a component's file runs.
        options = VerifyOptions(
            mode=task.options.mode,
            trials=task.options.trials,
            device=device,
            memory_bytes=task.memory_bytes,
            power=task.options.power,
            streamed=streamed,
        )
        announce = stages.announce
        verification = verify_directory(
            directory,
            options,
            lambda gate: announce(f"verify: {gate}"),
            trusted=problem is not None,
        )
        composition = verification.gate("composition").verdict
        if problem and not streamed and composition in {Verdict.BROKEN, Verdict.FAILED}:
            raise_if_original_fails(problem, options)
        if write:
            write_reports(directory, verification)
    has_failed = verification.status != "passed"
    return VerdictAnswer(
        status=verification.status,
        reason=(verification.first_failure or "a gate did not pass") if has_failed else None,
        stage=stages.current_stage if has_failed else None,
        bitwise_equal=verification.bitwise_equal,
        max_diff=verification.max_diff,
        health=verification.health,
        warnings=verification.warnings,
        peak_device_bytes=_peak_device_bytes(device),
        findings=list_faults(verification.gates, MOST_FINDINGS),
        given_bad_inputs=components_with_bad_inputs(verification.gates),
        constant_kernels=frozenset() if streamed else verification.constant_kernels,
        verification=None if write else verification.model_dump(mode="json"),
    )


class Stages:
    """Current stage of a child, written to a file for the parent, and the seconds of each stage."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.current_stage = "start"
        self.seconds: dict[str, float] = {}
        self.figures: Figures | None = None
        """Figures of the decomposition that was written, even if its verification fails."""
        self.process_id = os.getpid()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.announce(name)
        started = time.monotonic()
        try:
            yield
        finally:
            took = self.seconds.get(name, 0.0) + time.monotonic() - started
            self.seconds[name] = round(took, 3)
            self.end_forked_copy()

    def announce(self, name: str) -> None:
        self.end_forked_copy()
        self.current_stage = name
        self.file.write_text(name, encoding="utf-8")

    def end_forked_copy(self) -> None:
        """End this process if the problem's code forked it, so that it does not repeat our work."""
        if os.getpid() != self.process_id:
            os._exit(0)


def _describe_error(error: Exception, task: Task, stage: str) -> FailureAnswer:
    """Return the answer for an error; print the traceback if it is none that kdrun raises."""
    cause = FailureCause.DISK_FULL if comes_from_full_disk(error) else None
    status: Status = "failed"
    needed_bytes = 0
    if isinstance(error, ProblemError):
        answer = describe_problem_error(error, stage)
        if task.import_name and (example := suggest_init(task.import_name, error.__cause__)):
            missing = {"missing": str(error.__cause__), "hint": f"give --init '{example}'"}
            return answer.model_copy(update=missing | {"cause": FailureCause.MISSING})
        return answer
    if isinstance(error, UsageError):
        reason, cause = str(error), FailureCause.REFUSED
    elif isinstance(error, KdrunError):
        reason = str(error)
    else:
        traceback.print_exc()  # The log keeps the full traceback.
        if isinstance(error.__cause__ or error, torch.OutOfMemoryError):  # on an accelerator
            message = str(error).partition("\n")[0]
            status, reason = "too_large", f"needs more memory than the device has free: {message}"
        elif is_out_of_memory(error):
            status, cause = "too_large", FailureCause.OUT_OF_MEMORY
            needed = f"needs more than {task.memory_bytes / GIB:.1f} GiB"
            if isinstance(error, WeightsShortageError):
                needed_bytes = error.needed_bytes
                needed = f"needs {needed_bytes / GIB:.1f} GiB for its weights"
                if needed_bytes > task.most_memory_bytes:
                    cause = None  # No further attempt could fit.
            reason = (
                f"{needed} in {stage!r}"
                + describe_largest_node(task.most_memory_bytes)
                + "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
            )
        else:
            reason = _describe_defect(error, stage)
    return FailureAnswer(
        status=status, reason=reason, stage=stage, cause=cause, needed_bytes=needed_bytes
    )


def _describe_defect(error: Exception, stage: str) -> str:
    """Return the reason for an error of kdrun itself, with file, line, stage and what to report."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [f for f in frames if Path(f.filename).is_relative_to(_PACKAGE)]
    frame = own_frames[-1] if own_frames else frames[-1]
    message = f"{type(error).__name__}: {error}".partition("\n")[0]
    return (
        f"a defect of kdrun, not of the model: {message} "
        f"({Path(frame.filename).name}:{frame.lineno}, "
        f"in {stage!r}); report it with the problem file and its log"
    )


def _peak_device_bytes(device: str) -> int | None:
    """Return the peak bytes of tensors on the device; None if the device does not count them."""
    read_peak = getattr(torch.get_device_module(device), "max_memory_allocated", None)
    return int(read_peak()) if read_peak else None
