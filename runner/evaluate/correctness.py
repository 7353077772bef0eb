"""Compares solutions with their components, on own inputs and on the values in the model."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from runner.evaluate.judging import (
    OutputError,
    allowed_tolerances,
    have_same_bits,
    judge_output,
    shorten,
    widen,
)
from runner.evaluate.places import (
    Builder,
    Place,
    Weights,
    build_component,
    load_weights,
    select_weights,
    watch_calls,
    weights_by_name,
)
from runner.evaluate.program import ConfinedProgram, Inputs, ProgramError
from runner.evaluate.solutions import Solution
from runner.problems import to_plain_containers
from runner.problems.loading import seed as seed_generators
from runner.store.evaluation import PlaceComparison
from runner.verify.gates.weights import has_one_value, vary_weights, weights_of
from runner.verify.guard.program_values import copy_nested
from runner.verify.guard.standalone_runs import secret_seed

OWN_INPUTS = "own inputs"
OWN_TRIALS = 3
"""Draws of a component's own inputs and weights; from the second on, weights are also varied."""


@dataclass(slots=True)
class Reference:
    """A component of the decomposition, and its copy in float64."""

    model: nn.Module
    exact_model: nn.Module | None
    """None once the component has failed in float64."""
    seconds: float = 0.0
    """Time of its forwards."""

    def run(self, inputs: Inputs, seed: int) -> Any:
        """Return the component's output; it may write to the inputs."""
        return self._measure(lambda: run_forward(self.model, inputs, seed))

    def run_exactly(self, inputs: Inputs, weights: Weights, seed: int) -> Any:
        """Return its output in float64; None if it does not run in float64."""
        model = self.exact_model
        if model is None:
            return None
        try:
            load_weights(model, weights)
            wide = widen(inputs[0]), widen(inputs[1])
            return self._measure(lambda: run_forward(model, wide, seed))
        except (RuntimeError, TypeError, ValueError):
            # Its own constants are float32, or an operator has no float64: its output decides.
            self.exact_model = None
            return None

    def _measure(self, run: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        output = run()
        self.seconds += time.perf_counter() - started
        return output


def run_forward(model: nn.Module, inputs: Inputs, seed: int) -> Any:
    """Return a model's output in plain containers, without gradients."""
    seed_generators(seed)
    with torch.no_grad():
        return to_plain_containers(model(*inputs[0], **inputs[1]))


def copy_inputs(inputs: Inputs) -> Inputs:
    """Return a copy of inputs with the same strides."""
    return tuple(copy_nested(list(inputs[0]))), copy_nested(inputs[1])


@dataclass(frozen=True, slots=True)
class ReferenceCall:
    """A forward of a component, or of the original, that a program has to reproduce."""

    inputs: Inputs
    inputs_after: Inputs
    """The inputs as the forward left them."""
    weights: Weights
    seed: int
    eager: Any
    """The output."""
    exact: Any = None
    """The output in float64; None if the forward does not run in float64."""


def compare_call(program: ConfinedProgram, call: ReferenceCall, subject: str) -> OutputError:
    """Compare a program's forward with that of the `subject`, on the same inputs and weights."""
    program.load_weights(call.weights)
    outputs, inputs_after = program.call(call.inputs, call.seed)
    error = judge_output(call.exact, call.eager, outputs[0])
    if error.reason:
        return error
    if not have_same_bits(outputs[0], outputs[1]):
        return OutputError(reason="gives something else at the second call with these inputs")
    if not have_same_bits(call.inputs_after, inputs_after):
        verb = "changes" if have_same_bits(call.inputs, call.inputs_after) else "does not change"
        return OutputError(reason=f"{verb} its inputs, unlike the {subject}")
    return error


@dataclass(slots=True)
class SolutionJudge:
    """Compares one solution's program with its component, and collects the comparisons."""

    solution: Solution
    program: ConfinedProgram
    reference: Reference
    comparisons: list[PlaceComparison] = field(default_factory=list)
    _has_ended: bool = False

    @property
    def fault(self) -> PlaceComparison | None:
        """The first comparison that is not right; None if all are."""
        return next((item for item in self.comparisons if item.reason), None)

    @property
    def allowed(self) -> float:
        """Error in tolerances that the solution may have beside the component's output."""
        own = max((item.eager_tolerances or 0.0 for item in self.comparisons), default=0.0)
        return allowed_tolerances(own) + own

    def judge(self, place: str, call: ReferenceCall) -> None:
        """Compare the solution with a forward of the component, which is run in float64 first."""
        if self._has_ended:
            return
        exact = self.reference.run_exactly(call.inputs, call.weights, call.seed)
        call = replace(call, exact=exact)
        try:
            error = compare_call(self.program, call, "component")
            if error.reason and self.comparisons:
                # A solution may pack its weights in the first forward, and keep them: compare with
                # a model that never had other weights.
                self.program.build()
                error = compare_call(self.program, call, "component")
        except ProgramError as failure:
            self.comparisons.append(
                PlaceComparison(place=place, judgement="broken", reason=f"{failure} (on {place})")
            )
            self._has_ended = True
            return
        self.comparisons.append(
            PlaceComparison(
                place=place,
                judgement="wrong" if error.reason else "right",
                reason=f"{error.reason} (on {place})" if error.reason else None,
                tolerances=shorten(error.tolerances),
                eager_tolerances=shorten(error.eager_tolerances),
                max_diff=shorten(error.max_diff),
            )
        )


@dataclass(slots=True)
class ModelDraw:
    """The original with the weights and inputs of one seed."""

    model: nn.Module
    inputs: Inputs
    weights: Weights
    """By the original's names, tensors in plain attributes too; a forward does not change them."""
    seed: int


def judge_on_own_inputs(judge: SolutionJudge, module: Any, training: bool) -> None:
    """Compare on inputs and weights that the component's file draws from secret seeds."""
    for trial in range(OWN_TRIALS):
        seed = secret_seed()
        seed_generators(seed)
        model = judge.reference.model = build_component(module).train(training)
        if trial:
            vary_learned_weights(model, seed)
        weights = {name: tensor.detach() for name, tensor in weights_of(model).items()}
        seed_generators(seed + 1)
        inputs: Inputs = tuple(module.get_inputs()), {}
        inputs_after = copy_inputs(inputs)
        eager = judge.reference.run(inputs_after, seed)
        # The forward may have written to buffers, such as running statistics.
        judge.judge(OWN_INPUTS, ReferenceCall(inputs, inputs_after, weights, seed, eager))


def judge_in_model(
    builder: Builder,
    model: nn.Module,
    places: Sequence[Place],
    refactored: set[str],
    judges: dict[str, SolutionJudge],
    draw: ModelDraw,
) -> float:
    """Run the decomposed model, and compare each solution at each of its places.

    `judges`: by the component's path. Returns the seconds of the model's forward alone.
    """
    weights, seed = draw.weights, draw.seed
    builder.load_original_weights(model, places, refactored, weights)
    watched = [place for place in places if place.component in judges]
    pending: list[tuple[Inputs, Inputs, Weights]] = []
    """Inputs as they were, the inputs themselves, and weights of the calls that have begun."""
    judging_s = 0.0

    def before(place: Place, args: Any, kwargs: Any) -> None:
        nonlocal judging_s
        started = time.perf_counter()
        own_weights = select_weights(builder.tree, place.node, weights)
        # Buffers are copied, since the forward may write to them.
        pending.append((copy_inputs((args, kwargs)), (args, kwargs), dict(own_weights)))
        judging_s += time.perf_counter() - started

    def after(place: Place, output: Any) -> None:
        nonlocal judging_s
        started = time.perf_counter()
        call = ReferenceCall(*pending.pop(), seed, to_plain_containers(output))
        judges[place.component].judge(place.node, call)
        judging_s += time.perf_counter() - started

    started = time.perf_counter()
    with watch_calls(model, watched, before, after):
        run_forward(model, copy_inputs(draw.inputs), seed)
    return time.perf_counter() - started - judging_s


def vary_learned_weights(model: nn.Module, seed: int) -> None:
    """Move parameters, and buffers with one value throughout, such as fresh running statistics.

    Other buffers are the author's constants, such as causal masks and tables of positions, and a
    solution may be written for them.
    """
    names = frozenset(
        name
        for name, tensor in weights_of(model).items()
        if isinstance(tensor, nn.Parameter) or (tensor.numel() and has_one_value(tensor))
    )
    vary_weights(model, torch.Generator().manual_seed(seed), names=names)


def draw_model(problem: Any, training: bool, *, vary: bool) -> ModelDraw:
    """Return the original with weights and inputs of a secret seed.

    `vary`: whether weights are moved, since fresh ones hide much.
    """
    seed = secret_seed()
    seed_generators(seed)
    model = problem.build().train(training)
    if vary:
        vary_learned_weights(model, seed)
    seed_generators(seed + 1)
    inputs = problem.get_inputs()
    weights = {name: tensor.clone() for name, tensor in weights_by_name(model).items()}
    return ModelDraw(model, inputs, weights, seed)
