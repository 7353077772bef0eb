"""Judges and measures the whole model with solutions in it, beside the original."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from runner.evaluate.correctness import (
    ModelDraw,
    Reference,
    ReferenceCall,
    compare_call,
    copy_inputs,
    run_forward,
)
from runner.evaluate.judging import (
    OutputError,
    allowed_tolerances,
    have_same_bits,
    shorten,
    to_double,
)
from runner.evaluate.places import Builder, Place
from runner.evaluate.program import (
    ConfinedProgram,
    Inputs,
    ProgramError,
    ProgramFile,
    ProgramServer,
)
from runner.evaluate.solutions import CLASS, Solution
from runner.evaluate.speed import (
    FEWEST_CALLS,
    BaselineError,
    Measurement,
    NoTimeError,
    WrongOutput,
    measure,
)
from runner.evaluate.written_model import write_model
from runner.problems.loading import seed as seed_generators
from runner.store.evaluation import ModelComparison, Speed
from runner.verify.gates.weights import weights_of
from runner.verify.guard.standalone_runs import secret_seed

MODEL_ENOUGH_S = 4.0
"""Seconds that two models are measured in all rounds together."""
_MOST_BESIDE = 2
"""Models with one solution each that are in memory at once, beside the control."""
ALL = "the model with all right solutions"
_ORIGINAL, _CONTROL, _COMPILED = "the original", "its parts", "the original compiled"


@dataclass(slots=True)
class ModelSpeeds:
    """How much faster models with solutions are; None where it was not measured."""

    all: Speed | None = None
    """The original against the model with all right solutions."""
    parts: Speed | None = None
    """The original against the control."""
    alone: dict[str, Speed | None] = field(default_factory=dict)
    """The control, or else the original, against the model with one solution, by its name."""

    @property
    def control_s(self) -> float | None:
        """Seconds of the control's fastest forward: what else runs here makes others slower."""
        if self.parts is not None:
            return min(self.parts.after_s)
        return min(self.all.before_s) if self.all is not None else None


class ModelJudge:
    """Compares the model with solutions in it with the original."""

    def __init__(
        self,
        builder: Builder,
        problem: Any,
        server: ProgramServer,
        folder: Path,
        draws: Sequence[ModelDraw],
        places: Sequence[Place],
        deadline: float,
    ) -> None:
        """`draws`: models, which run and are not needed any more. `places`: all places.

        `deadline`: time on the monotonic clock after which nothing is measured.
        """
        self._deadline = deadline
        self.unmeasured: list[str] = []
        """Why comparisons of models were not measured; empty where there was no time."""
        self.comparisons: dict[str, ModelComparison] = {}
        """The verdict on each model with solutions in it."""
        self._builder, self._problem, self._server = builder, problem, server
        self._folder, self._places = folder, places
        self._training = builder.tree.metadata.mode == "train"
        self._count = 0
        self.forward_s = 0.0
        self._measuring_s = 0.0
        """Seconds that one comparison of two models takes, as far as is known."""
        self.changes_in_training = False
        """Whether the original computes something else in training mode than in eval mode."""
        self._weight_names = [*weights_of(draws[-1].model)]
        """Names of the original's parameters and buffers; a draw also has its plain tensors."""
        self._calls = [self._run_original(draw) for draw in draws]
        original = ProgramFile(
            builder.directory / "original.py",
            "Model",
            problem.init_kwargs or problem.init_args,
            training=self._training,
        )
        self._files = {_ORIGINAL: original}
        """The original, and the models that were judged right."""
        self._allowed: dict[str, float] = {}
        """Error in tolerances that the output of each of them may have beside the original's."""

    def _run_original(self, draw: ModelDraw) -> ReferenceCall:
        reference = Reference(draw.model, to_double(draw.model))
        inputs_after = copy_inputs(draw.inputs)
        started = time.perf_counter()
        eager = reference.run(inputs_after, draw.seed)
        self._measuring_s = reference.seconds * FEWEST_CALLS
        exact = reference.run_exactly(draw.inputs, {}, draw.seed)  # It has its weights already.
        if not self._training and not self.changes_in_training:
            try:
                trained = run_forward(draw.model.train(), copy_inputs(draw.inputs), draw.seed)
                self.changes_in_training = not have_same_bits(eager, trained)
            except (RuntimeError, TypeError, ValueError):  # A batch norm refuses a batch of one.
                self.changes_in_training = True
        self.forward_s += time.perf_counter() - started
        return ReferenceCall(draw.inputs, inputs_after, draw.weights, draw.seed, eager, exact)

    def _start(self, file: ProgramFile) -> AbstractContextManager[ConfinedProgram]:
        """Start a model with the weights of the last call of the original."""
        call = self._calls[-1]
        weights = call.weights
        if file.class_name != CLASS:
            weights = {name: weights[name] for name in self._weight_names}
        # The seed gives tensors outside of the weights the values that they have in the call.
        return self._server.start_with_weights(file, weights, call.seed)

    def judge_control(self, solutions: Sequence[Solution]) -> None:
        """Judge the control: the model that is cut for these solutions, with the components' code.

        It may be faster or slower than the author's by itself, so a single solution is measured
        against it. If it is not right, the original is the measure.
        """
        with suppress(ProgramError):
            self._judge_file(_CONTROL, self._write_file(self._write(solutions, inserted=())))

    def judge(self, name: str, solutions: Sequence[Solution]) -> str | None:
        """Judge the model with these solutions; return its text."""
        verdict: dict[str, Any]
        text = None
        try:
            text = self._write(solutions, solutions)
            error = self._judge_file(name, self._write_file(text))
            verdict = {
                "judgement": "wrong" if error.reason else "right",
                "reason": error.reason,
                "tolerances": shorten(error.tolerances),
                "eager_tolerances": shorten(error.eager_tolerances),
                "drift": shorten(error.drift),
            }
        except ProgramError as failure:
            verdict = {"judgement": "broken", "reason": f"the model with it: {failure}"}
        names = [solution.name for solution in solutions]
        self.comparisons[name] = ModelComparison(solutions=names, **verdict)
        return text

    def _judge_file(self, name: str, file: ProgramFile) -> OutputError:
        with self._server.start(file) as program:
            error = self._compare(program)
        if error.reason is None:
            own = error.eager_tolerances or 0.0
            self._files[name] = file
            self._allowed[name] = allowed_tolerances(own) + own
        return error

    def measure(
        self, solutions: Sequence[Solution], announce: Callable[[str], None]
    ) -> ModelSpeeds:
        """Measure the original, the control and the model with all of the solutions in turn.

        Then each solution by itself beside the control, or beside the original if the control is
        not right.
        """
        announce("the original beside its parts and the model with all right solutions")
        measurement = self._measure([_ORIGINAL, _CONTROL, ALL])
        parts = self._compare_speeds(measurement, _ORIGINAL, _CONTROL)
        speeds = ModelSpeeds(self._compare_speeds(measurement, _ORIGINAL, ALL), parts)
        before = _ORIGINAL if parts is None else _CONTROL
        if len(solutions) == 1:
            speeds.alone[solutions[0].name] = self._compare_speeds(measurement, before, ALL)
            return speeds
        names = [solution.name for solution in solutions if solution.name in self._files]
        for first in range(0, len(names), _MOST_BESIDE):
            chosen = names[first : first + _MOST_BESIDE]
            announce(f"the model with {' and with '.join(chosen)}")
            measurement = self._measure([before, *chosen])
            for name in chosen:
                speeds.alone[name] = self._compare_speeds(measurement, before, name)
        return speeds

    def measure_compiled(self) -> Speed:
        """Return the speed of the compiled original, whose outputs nobody has judged.

        Raises:
            BaselineError: the original failed.
            NoTimeError: it would take too long.
            ProgramError: the compiled original failed.
            WrongOutput: its outputs differ far from the original's.
        """
        self._files[_COMPILED] = replace(self._files[_ORIGINAL], compiled=True)
        self._allowed[_COMPILED] = 1e4
        return self._run_in_turn([_ORIGINAL, _COMPILED]).compare(_ORIGINAL, _COMPILED)

    def _measure(self, names: Sequence[str]) -> Measurement | None:
        """Measure those of the models that are right; None if that failed, or took too long."""
        names = [name for name in names if name in self._files]
        try:
            return self._run_in_turn(names)
        except (BaselineError, NoTimeError) as error:
            self.unmeasured += [str(error)] * (len(names) - 1)
            return None

    def _run_in_turn(self, names: Sequence[str]) -> Measurement:
        started, share = time.monotonic(), len(names) / 2
        if started + 2 * share * self._measuring_s > self._deadline:
            raise NoTimeError
        measurement = measure(
            {name: partial(self._start, self._files[name]) for name in names},
            self._draw_inputs,
            allowed=self._allowed,
            deadline=self._deadline,
            enough_s=MODEL_ENOUGH_S,
        )
        self._measuring_s = (time.monotonic() - started) / share
        return measurement

    def _compare_speeds(
        self, measurement: Measurement | None, before: str, after: str
    ) -> Speed | None:
        """Return how much faster a model is; None if it was not measured.

        A model that failed while it was measured is not right.
        """
        if measurement is None or after not in self._files:
            return None
        try:
            return measurement.compare(before, after)
        except BaselineError as error:
            self.unmeasured.append(str(error))
        except (ProgramError, WrongOutput) as error:
            if after in self.comparisons:
                is_wrong = isinstance(error, WrongOutput)
                self.comparisons[after] = ModelComparison(
                    solutions=self.comparisons[after].solutions,
                    judgement="wrong" if is_wrong else "broken",
                    reason=str(error) if is_wrong else f"the model with it: {error}",
                )
        return None

    def _write(self, solutions: Sequence[Solution], inserted: Sequence[Solution]) -> str:
        """Return the text of the model that is cut for these solutions, with some of them in it."""
        chosen = [solution.component for solution in solutions]
        refactored = self._builder.find_refactored(chosen, kept=chosen)
        places = self._builder.select_places(self._places, refactored)
        return write_model(self._builder, inserted, places, refactored)

    def _write_file(self, text: str) -> ProgramFile:
        self._count += 1
        path = self._folder / f"model_{self._count}.py"
        path.write_text(text, encoding="utf-8")
        arguments = self._problem.init_kwargs or self._problem.init_args
        return ProgramFile(path, CLASS, arguments, training=self._training, is_solution=True)

    def _compare(self, program: ConfinedProgram) -> OutputError:
        """Return the largest error over the draws."""
        worst = OutputError(0.0, 0.0, 0.0, 0.0)
        for number, call in enumerate(self._calls):
            if not number:
                program.build(call.seed)
            error = compare_call(program, call, "original")
            if error.reason and number:  # A solution may keep what it made of its first weights.
                program.build(call.seed)
                error = compare_call(program, call, "original")
            if error.reason:
                return error
            worst = max((worst, error), key=lambda item: item.tolerances or 0.0)
        return worst

    def _draw_inputs(self) -> Inputs:
        seed_generators(secret_seed())
        inputs: Inputs = self._problem.get_inputs()
        return inputs
