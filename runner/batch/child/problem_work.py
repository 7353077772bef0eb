"""Does one problem's work inside its child process, and says how it ended.

Every function takes a task as JSON and returns a record as JSON. It raises for nothing that a
problem can do short of ending the process; who waits outside sees that. Importing this file
imports torch and the whole engine: only the server that forks the children does.
"""

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

from runner.batch.child.device import find_device
from runner.batch.child.fork_server import allow_memory
from runner.batch.child.input_repair import write_again
from runner.batch.child.task import Record, Task, more_than_given, record_of
from runner.batch.child.tree_backfill import describe
from runner.batch.machine import GIB, resident_bytes
from runner.batch.memory_request import Forecast, granted_for, than_the_largest, too_large
from runner.emit.decomposition import captured, write
from runner.errors import DecompositionError, KdrunError, ProblemError, UsageError
from runner.graph import estimate as capture_and_estimate
from runner.graph.peak_memory import Estimate, demands
from runner.graph.recognition.formula_search import rows_of_all_formulas
from runner.problems import Problem, example_of_init, out_of_memory, read_problem
from runner.prompts.brief import MOST_FINDINGS
from runner.prompts.fact_collection import facts_of
from runner.store.result import Figures
from runner.tree.document import Tree
from runner.verify import VerifyOptions, write_reports
from runner.verify import verify as verify_directory
from runner.verify.options import DRAWN_AGAIN_BYTES
from runner.verify.original_check import raise_if_original_fails
from runner.verify.results import Verdict, components_with_bad_inputs, list_faults
from runner.verify.runtime.memory_fit import plan_memory

rows_of_all_formulas()  # It takes 0.15 s; here the server does it once for all its children.

_PACKAGE = Path(__file__).parents[2]
_PROCESSES = 3
"""Copies of a model's weights and activations while files of others' are judged from outside."""
SMALL = 8
"""Operations up to which a problem of no level is hardly more than one fusion."""


def estimate(argument: str) -> str:
    """How much memory a problem needs: captured only, nothing is computed."""

    def body(task: Task, stages: Stages) -> Record:
        with stages("load"):
            problem = read_problem(task.problem)
        with stages("capture"):
            return Record(status="passed", forecast=forecast(problem, task.options.mode))

    return _run(argument, body)


def forecast(problem: Problem, mode: Literal["eval", "train"]) -> Forecast:
    """What a problem's program says about memory, and what this process has by then.

    Raises:
        ProblemError: the author's code fails.
        CaptureError: the model runs, but its program cannot be written down.
    """
    return _forecast(problem, capture_and_estimate(problem, mode=mode))


def _forecast(problem: Problem, estimated: Estimate) -> Forecast:
    """Levels 1 and 2 have no parts but kernels, as what is small; those hold no more than it."""
    small = problem.level is None and estimated.operations <= SMALL
    parts = 0 if small or problem.level in (1, 2) else estimated.parts_bytes
    again = estimated.drawing_bytes if estimated.inputs_bytes <= DRAWN_AGAIN_BYTES else 0
    return Forecast(
        forward_bytes=max(estimated.peak.resident_bytes, parts, again),
        inputs_bytes=estimated.inputs_bytes,
        outputs_bytes=estimated.outputs_bytes,
        flops=estimated.flops,
        weights_bytes=estimated.weights_bytes,
        operations=estimated.operations,
        workloads=estimated.workloads,
        steps=estimated.steps,
        process_bytes=resident_bytes(),
    )


def facts(argument: str) -> str:
    """What a problem's program does, for who is to take it apart."""

    def body(task: Task, stages: Stages) -> Record:
        with stages("load"):
            problem = read_problem(task.problem)
        with stages("capture"):
            return Record(status="passed", facts=facts_of(problem, task.options.mode))

    return _run(argument, body)


def decompose(argument: str) -> str:
    """Take a problem apart into `task.built`, and verify what was written."""

    def body(task: Task, stages: Stages) -> Record:
        device = find_device(task.options.device)
        with stages("load"):
            problem = read_problem(task.problem)
        with stages("capture"):
            graph = captured(problem, mode=task.options.mode)
            expected = _forecast(problem, demands(graph))
        if asked := more_than_given(task, expected):
            return asked
        with stages("decompose"):
            tree = write(problem, graph, task.built)
        metadata = tree.metadata
        stages.figures = Figures(
            components=metadata.total_components,
            by_level={str(level): n for level, n in metadata.by_level.items()},
            unique_kernels=metadata.unique_kernels,
            kernel_instances=metadata.kernel_instances,
            capture=metadata.capture,
            estimated_peak_bytes=metadata.estimated_peak_bytes,
        )
        needed, _ = plan_memory(tree, task.most_memory_bytes, device)
        if needed > task.memory_bytes:
            return Record(
                status="too_large",
                reason=too_large(needed, task.most_memory_bytes),
                stage="verify",
                forecast=expected,
                out_of_memory=needed <= task.most_memory_bytes,
            )
        # what a convolution asks for, and gives back untouched, takes nothing of the machine
        allow_memory(metadata.estimated_allocation_bytes - metadata.estimated_peak_bytes)
        # as much as a run gives: what is kept, and so the peak, is the same in a run and alone
        enough = min(task.memory_bytes, granted_for(expected.expected_bytes))
        task = task.model_copy(update={"memory_bytes": enough})
        record = _verified(task, stages, task.built, device, problem)
        if record.given_bad_inputs:
            with stages("decompose"):
                write_again(problem, graph, task.built, record.given_bad_inputs)
            record = _verified(task, stages, task.built, device, problem)
        return record.model_copy(update={"forecast": expected})

    return _run(argument, body)


def verify(argument: str) -> str:
    """Verify the decomposition that stands in `task.directory`, which is only read."""

    def body(task: Task, stages: Stages) -> Record:
        device = find_device(task.options.device)
        return _verified(task, stages, task.directory, device, write=False)

    return _run(argument, body)


def judge(argument: str) -> str:
    """Verify what somebody else delivered into `task.built`, and write the verdicts there."""

    def body(task: Task, stages: Stages) -> Record:
        record = _verified(task, stages, task.built, find_device(task.options.device))
        if record.status == "passed":
            with stages("describe"):
                describe(task.built, task.options.mode)
        return record

    return _run(argument, body)


def _verified(
    task: Task,
    stages: "Stages",
    directory: Path,
    device: str,
    problem: Problem | None = None,
    *,
    write: bool = True,
) -> Record:
    """Judge a directory; `problem` is what kdrun itself took apart to write it.

    Raises:
        ProblemError: that problem fails on its own inputs, or cannot be repeated.
    """
    try:
        tree = Tree.read(directory)
    except DecompositionError:
        streamed = False  # the gates say what is wrong with it
    else:
        _, streamed = plan_memory(tree, task.most_memory_bytes, device)
        if streamed and problem is None:
            needed = too_large(tree.metadata.estimated_peak_bytes, task.most_memory_bytes)
            reason = f"{needed}; weights are streamed only where kdrun has just written the files"
            return Record(status="too_large", reason=reason, stage="verify")
        apart = _PROCESSES * tree.metadata.estimated_peak_bytes
        if problem is None and apart > task.memory_bytes:
            reason = f"{too_large(apart, task.most_memory_bytes)}: several processes hold the model"
            return Record(status="too_large", reason=reason, stage="verify")
    with stages("verify"):
        torch.empty(0, device=device)  # A device starts here, not while a component's file runs.
        options = VerifyOptions(
            mode=task.options.mode,
            trials=task.options.trials,
            device=device,
            memory_bytes=task.memory_bytes,
            power=task.options.power,
            streamed=streamed,
        )
        tell = stages.detail
        verification = verify_directory(
            directory, options, lambda gate: tell(f"verify: {gate}"), trusted=problem is not None
        )
        composition = verification.gate("composition").verdict
        if problem and not streamed and composition in {Verdict.BROKEN, Verdict.FAILED}:
            raise_if_original_fails(problem, options)
        if write:
            write_reports(directory, verification)
    failed = verification.status != "passed"
    return Record(
        status=verification.status,
        reason=(verification.first_failure or "a gate did not pass") if failed else None,
        stage=stages.now if failed else None,
        bitwise_equal=verification.bitwise_equal,
        max_diff=verification.max_diff,
        health=verification.health,
        warnings=verification.warnings,
        peak_device_bytes=_peak_device_bytes(device),
        findings=list_faults(verification.gates, MOST_FINDINGS),
        given_bad_inputs=components_with_bad_inputs(verification.gates),
        verification=None if write else verification.model_dump(mode="json"),
    )


class Stages:
    """What is being done now, told to who waits outside, and how long each stage took."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.now = "start"
        self.seconds: dict[str, float] = {}
        self.figures: Figures | None = None
        """Stay true of what was written, however the rest ends."""
        self.process = os.getpid()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.detail(name)
        started = time.monotonic()
        try:
            yield
        finally:
            took = self.seconds.get(name, 0.0) + time.monotonic() - started
            self.seconds[name] = round(took, 3)
            self.only_once()

    def detail(self, name: str) -> None:
        self.only_once()
        self.now = name
        self.file.write_text(name, encoding="utf-8")

    def only_once(self) -> None:
        """A problem that forks returns here twice; its copy must not do our work again."""
        if os.getpid() != self.process:
            os._exit(0)


def _run(argument: str, body: Callable[[Task, Stages], Record]) -> str:
    """The edge of a child: whatever a problem or the engine raises becomes a record here."""
    task = Task.model_validate_json(argument)
    torch.set_num_threads(task.threads)
    stages = Stages(task.stage_file)
    try:
        record = body(task, stages)
    except ProblemError as error:
        record = record_of(error, stages.now)
        if task.named and (example := example_of_init(task.named, error.__cause__)):
            missing = {"missing": str(error.__cause__), "hint": f"give --init '{example}'"}
            record = record.model_copy(update=missing)
    except UsageError as error:
        refused = str(error)
        record = Record(status="failed", reason=refused, stage=stages.now, refused=refused)
    except KdrunError as error:
        record = Record(status="failed", reason=str(error), stage=stages.now)
    except Exception as error:
        traceback.print_exc()  # into the log, in full
        if isinstance(error.__cause__ or error, torch.OutOfMemoryError):  # an accelerator's
            said = str(error).partition("\n")[0]
            reason = f"needs more memory than the device has free: {said}"
            record = Record(status="too_large", reason=reason, stage=stages.now)
        elif out_of_memory(error):
            record = Record(
                status="too_large",
                reason=f"needs more than {task.memory_bytes / GIB:.1f} GiB in {stages.now!r}"
                + than_the_largest(task.most_memory_bytes),
                stage=stages.now,
                out_of_memory=True,
            )
        else:
            record = Record(status="failed", reason=_defect(error, stages.now), stage=stages.now)
    stages.only_once()
    known = {"seconds": stages.seconds, "figures": stages.figures}
    return record.model_copy(update=known).model_dump_json()


def _defect(error: Exception, stage: str) -> str:
    """The sentence for an error of kdrun's own: what, in which file and stage, and what to send."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).is_relative_to(_PACKAGE)]
    place = own[-1] if own else frames[-1]
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    return (
        f"a defect of kdrun, not of the model: {said} ({Path(place.filename).name}:{place.lineno}, "
        f"in {stage!r}); report it with the problem file and its log"
    )


def _peak_device_bytes(device: str) -> int | None:
    """Return the most memory that tensors took of an accelerator that counts it, else None."""
    most = getattr(torch.get_device_module(device), "max_memory_allocated", None)
    return int(most()) if most else None
