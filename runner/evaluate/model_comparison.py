"""Judges and measures the whole model with solutions in it, beside the original."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.evaluate.correctness import copy_inputs, draw_model, run_forward
from runner.evaluate.judging import (
    OutputError,
    allowed_tolerances,
    have_same_bits,
    judge_output,
    to_double,
    widen,
)
from runner.evaluate.places import Builder, Weights
from runner.evaluate.program import (
    ConfinedProgram,
    Inputs,
    ProgramError,
    ProgramFile,
    ProgramServer,
)
from runner.evaluate.solutions import CLASS, Solution
from runner.evaluate.speed import WrongOutput, measure_pairs
from runner.evaluate.written_model import write_model
from runner.problems.loading import seed as seed_generators
from runner.store.evaluation import ModelComparison, Speed
from runner.verify.gates.weights import weights_of
from runner.verify.guard.standalone_runs import secret_seed

TRIALS = 2
"""Draws of weights and inputs; from the second on, weights are also varied."""
MODEL_ENOUGH_S = 4.0
"""Measuring a model ends after this time."""


@dataclass(frozen=True, slots=True)
class _Draw:
    """The original's weights and inputs of one seed, and its outputs."""

    inputs: Inputs
    weights: Weights
    """By the original's names, tensors in plain attributes too."""
    own_weights: Weights
    """The parameters and buffers alone."""
    seed: int
    eager: Any
    exact: Any
    inputs_after: Inputs


class ModelJudge:
    """Compares the model with solutions in it with the original."""

    def __init__(
        self, builder: Builder, problem: Any, server: ProgramServer, folder: Path, measured: bool
    ) -> None:
        self._builder, self._problem, self._server = builder, problem, server
        self._folder, self._measured = folder, measured
        self._training = builder.tree.metadata.mode == "train"
        self._original: ConfinedProgram | None = None
        self._count = 0
        self.forward_s = 0.0
        self.original_s: float | None = None
        """Seconds of the original's fastest forward: what else runs here makes others slower."""
        self._draws = [self._draw(trial) for trial in range(TRIALS)]
        self._allowed = 1.0

    def _draw(self, trial: int) -> _Draw:
        model, inputs, weights, seed = draw_model(self._problem, self._training, vary=trial > 0)
        own_weights = {name: t.detach().clone() for name, t in weights_of(model).items()}
        wide = to_double(model)
        inputs_after = copy_inputs(inputs)
        started = time.perf_counter()
        eager = run_forward(model, inputs_after, seed)
        try:
            exact = run_forward(wide, (widen(inputs[0]), widen(inputs[1])), seed)
        except (RuntimeError, TypeError, ValueError):
            exact = None  # The model has float32 constants, or operators without float64.
        self.forward_s += time.perf_counter() - started
        return _Draw(inputs, weights, own_weights, seed, eager, exact, inputs_after)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep the original running in the body, if anything is measured."""
        with ExitStack() as stack:
            if self._measured:
                self._original = stack.enter_context(self._start_original(compiled=False))
            yield

    def start_compiled(self) -> AbstractContextManager[ConfinedProgram]:
        """Start the original under torch.compile."""
        return self._start_original(compiled=True)

    @contextmanager
    def _start_original(self, *, compiled: bool) -> Iterator[ConfinedProgram]:
        problem, draw = self._problem, self._draws[-1]
        file = ProgramFile(
            self._builder.directory / "original.py",
            "Model",
            problem.init_kwargs or problem.init_args,
            training=self._training,
            compiled=compiled,
        )
        with self._server.start(file) as program:
            program.build(draw.seed)  # Tensors that are no weights are drawn as here.
            program.load_weights(draw.own_weights)
            yield program

    def evaluate(
        self, solutions: Sequence[Solution]
    ) -> tuple[ModelComparison, Speed | None, str | None]:
        """Return the verdict on the model with these solutions, its speed, and its text."""
        names = [solution.name for solution in solutions]
        speed, text = None, None
        try:
            text = self._write(solutions)
            file = ProgramFile(
                self._write_file(text),
                CLASS,
                self._problem.init_kwargs or self._problem.init_args,
                training=self._training,
                is_solution=True,
            )
            with self._server.start(file) as program:
                error = self._compare(program)
                if error.reason is None and self._measured:
                    speed = self._measure(program)
        except ProgramError as failure:
            reason = f"the model with it: {failure}"
            return ModelComparison(solutions=names, judgement="broken", reason=reason), None, text
        except WrongOutput as failure:
            error = OutputError(reason=str(failure))
        comparison = ModelComparison(
            solutions=names,
            judgement="wrong" if error.reason else "right",
            reason=error.reason,
            tolerances=_shorten(error.tolerances),
            eager_tolerances=_shorten(error.eager_tolerances),
            drift=_shorten(error.drift),
        )
        return comparison, speed, text

    def _write(self, solutions: Sequence[Solution]) -> str:
        chosen = [solution.component for solution in solutions]
        refactored = self._builder.find_refactored(chosen, kept=chosen)
        model = self._builder.build(refactored)
        places = self._builder.find_places(model, copy_inputs(self._draws[0].inputs), refactored)
        return write_model(self._builder, solutions, places, refactored)

    def _write_file(self, text: str) -> Path:
        self._count += 1
        path = self._folder / f"model_{self._count}.py"
        path.write_text(text, encoding="utf-8")
        return path

    def _compare(self, program: ConfinedProgram) -> OutputError:
        """Return the largest error over the draws."""
        worst = OutputError(0.0, 0.0, 0.0, 0.0)
        for draw in self._draws:
            program.build(draw.seed)
            program.load_weights(draw.weights)
            outputs, inputs_after = program.call(draw.inputs, draw.seed)
            error = judge_output(draw.exact, draw.eager, outputs[0])
            if error.reason:
                return error
            if not have_same_bits(outputs[0], outputs[1]):
                return OutputError(reason="gives something else at the second call")
            if not have_same_bits(draw.inputs_after, inputs_after):
                return OutputError(reason="changes its inputs otherwise than the original")
            worst = max((worst, error), key=lambda item: item.tolerances or 0.0)
        own = worst.eager_tolerances or 0.0
        self._allowed = allowed_tolerances(own) + own
        return worst

    def _measure(self, program: ConfinedProgram) -> Speed:
        assert self._original is not None
        speed = measure_pairs(
            self._original,
            program,
            self._draw_inputs,
            allowed=self._allowed,
            enough_s=MODEL_ENOUGH_S,
        )
        self.original_s = min(filter(None, (self.original_s, *speed.before_s)))
        return speed

    def measure_compiled(self, program: ConfinedProgram) -> Speed:
        """Return the speed of the compiled original, whose outputs nobody has judged."""
        assert self._original is not None
        return measure_pairs(
            self._original, program, self._draw_inputs, allowed=1e4, enough_s=MODEL_ENOUGH_S
        )

    def _draw_inputs(self) -> Inputs:
        seed_generators(secret_seed())
        inputs: Inputs = self._problem.get_inputs()
        return inputs


def _shorten(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
