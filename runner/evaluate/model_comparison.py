"""Judges and measures the whole model with solutions in it, beside the original."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
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
    NoTimeError,
    WrongOutput,
    measure_pairs,
)
from runner.evaluate.written_model import write_model
from runner.problems.loading import seed as seed_generators
from runner.store.evaluation import ModelComparison, Speed
from runner.verify.gates.weights import weights_of
from runner.verify.guard.standalone_runs import secret_seed

MODEL_ENOUGH_S = 4.0
"""Seconds of measured pairs of two models, in all rounds together."""


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
        self._builder, self._problem, self._server = builder, problem, server
        self._folder, self._places = folder, places
        self._training = builder.tree.metadata.mode == "train"
        self._has_control = False
        """Whether the model of parts, with the components' own code, is right. It may be faster or
        slower than the author's by itself, so a single solution is measured against it."""
        self.parts: Speed | None = None
        """The original against the control."""
        self._count = 0
        self.forward_s = 0.0
        self.measuring_s = 0.0
        """Seconds that one comparison of two models takes, as far as is known."""
        self.control_s: float | None = None
        """Seconds of the control's fastest forward: what else runs here makes others slower."""
        self.changes_in_training = False
        """Whether the original computes something else in training mode than in eval mode."""
        self._weight_names = [*weights_of(draws[-1].model)]
        """Names of the original's parameters and buffers; a draw also has its plain tensors."""
        self._calls = [self._run_original(draw) for draw in draws]
        self._allowed = 1.0

    def _run_original(self, draw: ModelDraw) -> ReferenceCall:
        reference = Reference(draw.model, to_double(draw.model))
        inputs_after = copy_inputs(draw.inputs)
        started = time.perf_counter()
        eager = reference.run(inputs_after, draw.seed)
        self.measuring_s = reference.seconds * FEWEST_CALLS
        exact = reference.run_exactly(draw.inputs, {}, draw.seed)  # It has its weights already.
        if not self._training and not self.changes_in_training:
            try:
                trained = run_forward(draw.model.train(), copy_inputs(draw.inputs), draw.seed)
                self.changes_in_training = not have_same_bits(eager, trained)
            except (RuntimeError, TypeError, ValueError):  # A batch norm refuses a batch of one.
                self.changes_in_training = True
        self.forward_s += time.perf_counter() - started
        return ReferenceCall(draw.inputs, inputs_after, draw.weights, draw.seed, eager, exact)

    def measure_control(self, solutions: Sequence[Solution]) -> None:
        """Measure the control for these solutions beside the original."""
        control = self._write_file(self._write(solutions, inserted=()))
        try:
            with self._server.start(control) as program:
                error = self._compare(program)
            if error.reason is None:
                self.parts = self._measure(self._original, control)
                self._has_control = True
                self.control_s = min(self.parts.after_s)
        except (BaselineError, NoTimeError) as error:
            self.unmeasured.append(str(error))
        except (ProgramError, WrongOutput):
            pass  # The original is the measure then.

    @property
    def _original(self) -> ProgramFile:
        problem = self._problem
        return ProgramFile(
            self._builder.directory / "original.py",
            "Model",
            problem.init_kwargs or problem.init_args,
            training=self._training,
        )

    def _start(self, file: ProgramFile) -> AbstractContextManager[ConfinedProgram]:
        """Start a model with the weights of the last call of the original."""
        call = self._calls[-1]
        weights = call.weights
        if file.class_name != CLASS:
            weights = {name: weights[name] for name in self._weight_names}
        # The seed gives tensors outside of the weights the values that they have in the call.
        return self._server.start_with_weights(file, weights, call.seed)

    def evaluate(
        self, solutions: Sequence[Solution], *, beside_control: bool, measured: bool
    ) -> tuple[ModelComparison, Speed | None, str | None]:
        """Return the verdict on the model with these solutions, its speed, and its text.

        `beside_control`: whether the speed is that beside a model that is cut in the same places,
        with the components' own code in them, and not beside the original.
        """
        names = [solution.name for solution in solutions]
        speed, text = None, None
        try:
            text = self._write(solutions, solutions)
            file = self._write_file(text)
            with self._server.start(file) as program:
                error = self._compare(program)
            if error.reason is None and measured:
                before = self._original
                if beside_control and self._has_control:
                    before = self._write_file(self._write(solutions, inserted=()))
                try:
                    speed = self._measure(before, file)
                except (BaselineError, NoTimeError) as failure:
                    self.unmeasured.append(str(failure))
        except ProgramError as failure:
            reason = f"the model with it: {failure}"
            return ModelComparison(solutions=names, judgement="broken", reason=reason), None, text
        except WrongOutput as failure:
            error = OutputError(reason=str(failure))
        comparison = ModelComparison(
            solutions=names,
            judgement="wrong" if error.reason else "right",
            reason=error.reason,
            tolerances=shorten(error.tolerances),
            eager_tolerances=shorten(error.eager_tolerances),
            drift=shorten(error.drift),
        )
        return comparison, speed, text

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
        own = worst.eager_tolerances or 0.0
        self._allowed = allowed_tolerances(own) + own
        return worst

    def _measure(
        self, before: ProgramFile, after: ProgramFile, allowed: float | None = None
    ) -> Speed:
        started = time.monotonic()
        speed = measure_pairs(
            lambda: self._start(before),
            lambda: self._start(after),
            self._draw_inputs,
            allowed=allowed or self._allowed,
            deadline=self._deadline,
            enough_s=MODEL_ENOUGH_S,
        )
        self.measuring_s = time.monotonic() - started
        if not self._has_control:
            self.control_s = min([*speed.before_s, *filter(None, [self.control_s])])
        return speed

    def measure_compiled(self) -> Speed:
        """Return the speed of the compiled original, whose outputs nobody has judged."""
        return self._measure(self._original, replace(self._original, compiled=True), allowed=1e4)

    def _draw_inputs(self) -> Inputs:
        seed_generators(secret_seed())
        inputs: Inputs = self._problem.get_inputs()
        return inputs
