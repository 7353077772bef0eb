"""Evaluates the solutions for one decomposition: right, faster, and what the model gains.

`evaluate` is the table of contents. It runs in a child process, which runs the decomposition's
files; each solution runs in a confined process of its own.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from runner import __version__
from runner.batch.machine import processor_name
from runner.errors import KdrunError
from runner.evaluate.correctness import (
    ModelDraw,
    Reference,
    SolutionJudge,
    copy_inputs,
    draw_model,
    judge_in_model,
    judge_on_own_inputs,
)
from runner.evaluate.judging import shorten, to_double
from runner.evaluate.model_comparison import ALL, ModelJudge, ModelSpeeds
from runner.evaluate.places import Builder, Place, build_component, get_arguments
from runner.evaluate.program import ProgramError, ProgramFile, ProgramServer
from runner.evaluate.requests import EvaluationAnswer, EvaluationRequest
from runner.evaluate.solutions import CLASS, Solution, find_solutions
from runner.evaluate.speed import BaselineError, NoTimeError, WrongOutput, measure
from runner.problems import is_out_of_memory
from runner.problems.loading import seed as seed_generators
from runner.quantities import pluralize
from runner.store.evaluation import (
    Evaluation,
    Machine,
    ModelEvaluation,
    SolutionEvaluation,
    Speed,
)
from runner.store.result import ProblemResult, first_mismatch
from runner.tree.document import Tree
from runner.verify.gates.weights import weights_of
from runner.verify.guard.standalone_runs import secret_seed
from runner.verify.loading_files import CannotJudge, Files

MODEL_TRIALS = 2
"""Draws of the model's weights and inputs; from the second on, weights are also varied."""
_SHARE_FOR_MEASURING = 0.8
"""Part of the time limit after which no further measurement of whole models begins."""
_COMPONENT, _SOLUTION, _COMPILED = "the component", "the solution", "the component compiled"
_MOST_WAITING = 0.05
"""Part of the time that programs may wait for a processor before a remark says so."""


def evaluate_in_child(argument: str) -> str:
    """Evaluate the solutions for one decomposition; take and return JSON."""
    request = EvaluationRequest.model_validate_json(argument)
    torch.set_num_threads(request.threads)
    try:
        return evaluate(request).model_dump_json()
    except (KdrunError, CannotJudge) as error:
        message = str(error)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        message = f"{request.directory}: it needs more memory than there is"
    return EvaluationAnswer(error=message).model_dump_json()


def evaluate(request: EvaluationRequest) -> EvaluationAnswer:
    """Judge and measure the solutions for one decomposition, one by one and in the model."""
    started, began = datetime.now(UTC), time.monotonic()
    tree = Tree.read(request.directory)
    solutions = find_solutions(tree, request.solutions, request.names)
    if not solutions:
        return EvaluationAnswer()
    with (
        tempfile.TemporaryDirectory(prefix="kdrun-") as folder,
        ProgramServer(Path(folder), request.threads) as server,
        Files(request.directory) as files,
    ):
        deadline = began + request.timeout_s * _SHARE_FOR_MEASURING
        builder = Builder(request.directory, tree, files)
        work = _Work(request, tree, builder, server, files, deadline)
        with ExitStack() as programs:
            judges = work.start_solutions(solutions, programs)
            work.judge_own_inputs(judges)
            work.judge_values_of_model(judges)
        # Their programs have ended, so that none can slow down what is measured.
        evaluations = [work.evaluate_solution(solution, judges) for solution in solutions]
        right = [s for s, e in zip(solutions, evaluations, strict=True) if e.judgement == "right"]
        model, evaluations, text = work.evaluate_model(right, evaluations, Path(folder))
    evaluation = Evaluation(
        problem=f"{tree.metadata.source_level}/{request.directory.resolve().name}",
        source_sha256=tree.metadata.source_sha256,
        kdrun_version=__version__,
        machine=Machine(
            processor=processor_name(), threads=request.threads, torch=torch.__version__
        ),
        started=started,
        seconds=round(time.monotonic() - began, 2),
        forward_seconds=round(work.forward_s + work.server.forward_s, 3),
        solutions=evaluations,
        model=model,
        notes=_list_notes(request, evaluations, model, work),
    )
    return EvaluationAnswer(evaluation=evaluation, text=text)


@dataclass(slots=True)
class _Work:
    """The parts of one evaluation, with their shared state."""

    request: EvaluationRequest
    tree: Tree
    builder: Builder
    server: ProgramServer
    files: Files
    deadline: float
    """Time on the monotonic clock after which nothing more is measured in the model."""
    forward_s: float = 0.0
    changes_in_training: bool = False
    """Whether the original computes something else in training mode than in eval mode."""
    unmeasured: int = 0
    """Number of comparisons for which there was no time."""
    baseline_failures: list[str] = field(default_factory=list)
    """Why components or the original could not be measured."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a solution could not be started, by its component."""
    draws: list[ModelDraw] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    """Modules of the model in which each parent of a solution's component is refactored."""

    @property
    def training(self) -> bool:
        return self.tree.metadata.mode == "train"

    def announce(self, part: str) -> None:
        """Tell the parent which part of the work begins."""
        if self.request.progress is not None:
            with self.request.progress.open("a", encoding="utf-8") as lines:
                lines.write(f"{part}\n")

    def start_solutions(
        self, solutions: Sequence[Solution], programs: ExitStack
    ) -> dict[str, SolutionJudge]:
        """Start each solution's program; return a judge for each one that starts."""
        judges = {}
        for solution in solutions:
            module = self.builder.load_component(solution.component)
            arguments = get_arguments(module)
            file = ProgramFile(
                solution.file, CLASS, arguments, training=self.training, is_solution=True
            )
            try:
                program = programs.enter_context(self.server.start(file))
                program.build()
            except ProgramError as error:
                self.failures[solution.component] = str(error)
                continue
            model = build_component(module).train(self.training)
            reference = Reference(model, to_double(model))
            judges[solution.component] = SolutionJudge(solution, program, reference)
        return judges

    def judge_own_inputs(self, judges: dict[str, SolutionJudge]) -> None:
        for component, judge in judges.items():
            self.announce(f"{judge.solution.name} on its own inputs")
            judge_on_own_inputs(judge, self.builder.load_component(component), self.training)

    def judge_values_of_model(self, judges: dict[str, SolutionJudge]) -> None:
        """Compare each solution on the values that reach its places in the model."""
        if not judges:
            return
        refactored = self.builder.find_refactored(list(judges))
        model = self.builder.build(refactored)
        for trial in range(MODEL_TRIALS):
            self.announce(f"values of the model, draw {trial + 1} of {MODEL_TRIALS}")
            draw = draw_model(self.files.problem(), self.training, vary=trial > 0)
            self.draws.append(draw)
            self.places = self.places or self.builder.find_places(
                model, copy_inputs(draw.inputs), refactored
            )
            self.forward_s += judge_in_model(
                self.builder, model, self.places, refactored, judges, draw
            )
        self.forward_s += sum(judge.reference.seconds for judge in judges.values())

    def evaluate_solution(
        self, solution: Solution, judges: dict[str, SolutionJudge]
    ) -> SolutionEvaluation:
        """Return the verdict on one solution; measure it if it is right."""
        judge = judges.get(solution.component)
        comparisons = judge.comparisons if judge else []
        verdict: tuple[Any, str | None] = ("right", None)
        if judge is None:
            verdict = ("broken", self.failures[solution.component])
        elif fault := judge.fault:
            verdict = (fault.judgement, fault.reason)
        elif not {c.place for c in comparisons} >= set(solution.nodes):
            verdict = ("broken", "the model did not call it in each of its places")
        measures: dict[str, Any] = {}
        if judge is not None and verdict[0] == "right" and self.request.measured:
            try:
                measures = self._measure_solution(judge)
            except (BaselineError, NoTimeError) as error:
                self.note_unmeasured(str(error))
            except (ProgramError, WrongOutput) as error:
                wrong = isinstance(error, WrongOutput)
                verdict = ("wrong" if wrong else "broken", str(error))
        return SolutionEvaluation(
            name=solution.name,
            level=solution.level,
            file=str(solution.file),
            sha256=solution.sha256,
            places=len(solution.nodes),
            judgement=verdict[0],
            reason=verdict[1],
            comparisons=comparisons,
            **measures,
        )

    def _measure_solution(self, judge: SolutionJudge) -> dict[str, Any]:
        """Return the speeds of a solution and of the compiled component."""
        component = judge.solution.component
        self.announce(f"{judge.solution.name} beside the component")
        module = self.builder.load_component(component)
        seed_generators(secret_seed())
        weights = weights_of(judge.reference.model)

        def draw() -> Any:
            return tuple(module.get_inputs()), {}

        file = self.request.directory / component
        eager = ProgramFile(file, "Model", get_arguments(module), training=self.training)

        files = {_COMPONENT: eager, _SOLUTION: judge.program.file}
        if self.request.compiled:
            files[_COMPILED] = replace(eager, compiled=True)
        measurement = measure(
            {
                name: partial(self.server.start_with_weights, f, weights)
                for name, f in files.items()
            },
            draw,
            allowed={_SOLUTION: judge.allowed, _COMPILED: 100.0},
            deadline=self.deadline,
        )
        measures: dict[str, Any] = {"speed": measurement.compare(_COMPONENT, _SOLUTION)}
        if self.request.compiled:
            speed, failure = self._measure_compiled(
                lambda: measurement.compare(_COMPONENT, _COMPILED)
            )
            measures |= {"compiled": speed, "compiled_failure": failure}
        return measures

    def _measure_compiled(self, measure: Callable[[], Speed]) -> tuple[Speed | None, str | None]:
        try:
            return measure(), None
        except NoTimeError:
            self.note_unmeasured("")
            return None, None
        except (BaselineError, ProgramError, WrongOutput) as error:
            return None, str(error)

    def note_unmeasured(self, reason: str) -> None:
        """Note a comparison for which there was no time, or whose first program failed."""
        self.unmeasured += not reason
        if reason and reason not in self.baseline_failures:
            self.baseline_failures.append(reason)

    def evaluate_model(
        self, right: Sequence[Solution], evaluations: list[SolutionEvaluation], folder: Path
    ) -> tuple[ModelEvaluation | None, list[SolutionEvaluation], str | None]:
        """Judge and measure the whole model with each right solution, and with all of them."""
        if not right or not self.request.in_model:
            return None, evaluations, None
        judge = ModelJudge(
            self.builder,
            self.files.problem(),
            self.server,
            folder,
            self.draws,
            self.places,
            self.deadline,
        )
        self.draws.clear()
        self.changes_in_training = judge.changes_in_training
        self.announce("the model of its parts")
        judge.judge_control(right)
        for solution in right if len(right) > 1 else []:
            self.announce(f"the model with {solution.name}")
            judge.judge(solution.name, [solution])
        self.announce(ALL)
        text = judge.judge(ALL, right)
        speeds = ModelSpeeds()
        compiled: tuple[Speed | None, str | None] = (None, None)
        if self.request.measured:
            speeds = judge.measure(right, self.announce)
            if self.request.compiled:
                self.announce("the original compiled")
                compiled = self._measure_compiled(judge.measure_compiled)
        self.forward_s += judge.forward_s
        for reason in judge.unmeasured:
            self.note_unmeasured(reason)
        model = ModelEvaluation(
            comparisons=[*judge.comparisons.values()],
            speed=speeds.all,
            parts=speeds.parts,
            compiled=compiled[0],
            compiled_failure=compiled[1],
        )
        finished = [_complete(e, speeds.alone.get(e.name), speeds.control_s) for e in evaluations]
        return model, finished, text if judge.comparisons[ALL].judgement == "right" else None


def _complete(
    evaluation: SolutionEvaluation, measured: Speed | None, control_s: float | None
) -> SolutionEvaluation:
    """Return a solution's evaluation with its share of the model and what follows from it."""
    speed = evaluation.speed
    if speed is None or not control_s:
        return evaluation
    share = min(1.0, min(speed.before_s) * evaluation.places / control_s)
    predicted = 1 / (1 - share + share / speed.speedup)
    return evaluation.model_copy(
        update={
            "share": shorten(share),
            "predicted": shorten(predicted),
            "measured": measured,
        }
    )


def _list_notes(
    request: EvaluationRequest,
    evaluations: Sequence[SolutionEvaluation],
    model: ModelEvaluation | None,
    work: _Work,
) -> list[str]:
    """Return remarks on the decomposition and on the machine that make the numbers say less."""
    notes, directory = list[str](), request.directory
    for reason in work.baseline_failures:
        notes.append(f"A component or the original could not be measured: {reason}.")
    if work.unmeasured:
        count = pluralize(work.unmeasured, "comparison")
        notes.append(
            f"{count} did not fit into --timeout {request.timeout_s:.0f}: raise it to measure them."
        )
    if work.changes_in_training:
        notes.append(
            "The model is judged in eval mode. In training mode, in which KernelBench's harness "
            "runs it, the original computes something else (dropout, batch norm): for that, "
            "decompose it with --mode train."
        )
    try:
        result = ProblemResult.from_directory(directory)
        changed = first_mismatch(directory, result.files)
        if result.status != "passed":
            notes.append(
                f"The decomposition itself is {result.status}: a verdict here says little."
            )
        elif changed:
            notes.append(f"The decomposition has changed since it was verified: {changed}.")
    except KdrunError:
        notes.append(
            "The decomposition has no result.json: `kdrun verify` says whether it is right."
        )
    speeds = [s for e in evaluations for s in (e.speed, e.compiled, e.measured)]
    speeds += [model.speed, model.parts, model.compiled] if model else []
    waiting = max((speed.waiting or 0.0 for speed in speeds if speed), default=0.0)
    if waiting > _MOST_WAITING:
        notes.append(
            f"Other work ran beside: programs waited for a processor in up to {waiting:.0%} of "
            "their time. Measure again on an idle machine."
        )
    return notes
