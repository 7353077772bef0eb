"""Runs a forward: seeds, mode, device, and one side after the other.

No gradients, no fused fast paths: both sides of a comparison run the operations that they spell.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from runner.problems import to_plain_containers
from runner.verify.gates.weights import vary, weights_of
from runner.verify.layout import COMPOSITION_TEST, ORIGINAL
from runner.verify.loading_files import CannotJudge, foreign_code
from runner.verify.options import VerifyOptions
from runner.verify.runtime.disk_cache import compact
from runner.verify.runtime.generators import generator_states, set_generators
from runner.verify.runtime.input_moves import moved
from runner.verify.runtime.operation_watch import Event, Trace, Watch, reaching
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.random_blocks import Draws
from runner.verify.runtime.weight_streaming import Streaming

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What watching one forward showed."""

    trace: Trace
    alive: list[bool]
    """For each event, whether it reaches an output."""
    weights_used: frozenset[str]
    """Names of the weights that reach an output."""
    inputs_used: tuple[bool, ...]
    """For each tensor among the inputs, whether it reaches an output."""

    @property
    def computes_for_nothing(self) -> bool:
        """Whether something that depends on an input or a weight reaches no output."""
        events = zip(self.trace.events, self.alive, strict=True)
        return any(not event.constant and not alive for event, alive in events)


class Beside(Protocol):
    """Runs files by themselves."""

    def beside(self, file: str, model: nn.Module, inputs: Inputs) -> Callable[[Any], None] | None:
        """A model of a file is about to run here: what takes its output, if anything does."""

    def original_built(self, model: nn.Module, trial: int) -> None:
        """The original has the weights that it makes from the seed of a trial."""

    def listening(self, composed: nn.Module) -> AbstractContextManager[None]:
        """Hear what kernels give in the composed model, which is about to run."""

    def judge_operation(self, file: str, model: nn.Module, events: list[Event]) -> None:
        """A kernel has run here by itself: what it was seen to do."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that both sides of a comparison have in common."""

    directory: Path
    options: VerifyOptions
    draws: Draws = field(default_factory=Draws)
    streaming: Streaming | None = None
    """Where weights do not fit."""
    dtypes: dict[str, torch.dtype] = field(
        default_factory=lambda: {ORIGINAL: torch.get_default_dtype()}
    )
    """The default dtype that a problem's file set, maybe when it was captured."""
    beside: "Beside | None" = None
    """Runs each file of somebody else's directory in a plain process in the last trial."""

    @contextmanager
    def default_dtype(self, what: str) -> Iterator[None]:
        """Give the original the default dtype that it set last; elsewhere it is torch's own."""
        file = what.partition(":")[0]
        if file != ORIGINAL:
            yield
            return
        before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtypes[file])
        try:
            yield
        finally:
            self.dtypes[file] = torch.get_default_dtype()
            torch.set_default_dtype(before)

    def build(self, what: str, make: Callable[[], Any], trial: int) -> nn.Module:
        """A model in the right mode, on the device. CannotJudge where it is none."""
        self.seed(trial)
        with foreign_code(what, self.directory), self.default_dtype(what):
            number = self._number(trial)
            model = self.streaming.build(make, number) if self.streaming else make()
            if not isinstance(model, nn.Module):
                raise CannotJudge(f"{what} is {type(model).__name__}, not an nn.Module")
            model.train(self.options.mode == "train")
            return model.to(self.options.device)

    def build_bare(self, what: str, make: Callable[[], Any], trial: int) -> nn.Module:
        """A model whose every weight `transfer` will give it, so that making them is left out.

        Where it makes other tensors too (a table in a plain attribute), it is built in full.
        """
        try:
            with torch.device("meta"):
                model = make()
        except Exception:  # whatever the reason: the full build says it, if it stands
            return self.build(what, make, trial)
        if not isinstance(model, nn.Module) or any(map(holds_meta, model.modules())):
            return self.build(what, make, trial)
        for module in model.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None and not buffer.numel():  # no weight: it says where they are
                    module._buffers[name] = torch.empty_like(buffer, device=self.options.device)
        return model.train(self.options.mode == "train")

    def vary(self, model: nn.Module, trial: int, names: frozenset[str] | None = None) -> None:
        """The first trial has the weights that a user has, later ones move every one of them.

        A single trial moves those that are all one value: default values hide a wrong map.
        """
        if trial == 0 and (self.options.trials > 1 or self.options.specialised):
            return
        generator = torch.Generator().manual_seed(self._number(trial))
        if self.streaming and (deferred := self.streaming.vary(model)):
            names = (frozenset(weights_of(model)) if names is None else names) - deferred
        with foreign_code("weights", self.directory):
            vary(model, generator, only_defaults=trial == 0, names=names)

    def draw(
        self,
        what: str,
        get_inputs: Callable[[], Any],
        trial: int,
        *,
        repeated: bool = False,
        again: bool = False,
    ) -> Inputs:
        """New inputs, on the device; see Draws for `repeated` and `again`."""
        self.seed(trial)
        drawing = self.draws.drawing(repeated=repeated, again=again)
        with foreign_code(what, self.directory), drawing, self.default_dtype(what):
            args, kwargs = get_inputs()
        return moved((tuple(args), dict(kwargs)), self.options.device)

    def forward(
        self,
        what: str,
        model: nn.Module,
        inputs: Inputs,
        trial: int,
        watch: Watch | None = None,
        *,
        gradients: bool = False,
    ) -> tuple[Any, Seen | None]:
        """Run a model; what is random in it draws the same numbers on both sides."""
        args, kwargs = inputs
        done = None
        hearing: AbstractContextManager[None] = nullcontext()
        file = what.partition(":")[0]
        if self.beside and trial == self.last_trial:
            done = self.beside.beside(file, model, inputs)
        if self.beside and trial == 0 and file == COMPOSITION_TEST:
            hearing = self.beside.listening(model)
        self.seed(trial)
        if watch:
            watch.may_read(list(inputs))
        with (
            foreign_code(what, self.directory),
            torch.set_grad_enabled(gradients),
            self.default_dtype(what),
            watch or nullcontext(),
            hearing,
        ):
            output = to_plain_containers(model(*args, **kwargs))
        if watch:
            watch.returned(output)
        seen = _seen(watch, inputs, output) if watch else None
        if done:
            done(output)
        return compact(output), seen

    @property
    def last_trial(self) -> int:
        """In which all weights are others than the author's, where there is more than one."""
        return self.options.seeds - 1

    def seed(self, trial: int) -> None:
        """Every generator that a model may draw from."""
        number = self._number(trial)
        if self.options.device == "cpu":
            torch.default_generator.manual_seed(number)  # asking for other devices takes longer
        else:
            torch.manual_seed(number)
        random.seed(number)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(number % 2**32)

    def generators(self) -> Callable[[], None]:
        """Return what puts every generator that a model may draw from back to where it is now."""
        of_torch, python = generator_states(self.options.device), random.getstate()
        numpy = sys.modules.get("numpy")
        of_numpy = numpy.random.get_state() if numpy else None

        def put_back() -> None:
            set_generators(self.options.device, of_torch)
            random.setstate(python)
            if numpy:
                numpy.random.set_state(of_numpy)

        return put_back

    def _number(self, trial: int) -> int:
        return self.options.seed + trial

    def watch(self, model: nn.Module) -> Watch:
        """A watch for one forward of a model."""
        held = (value for module in model.modules() for value in vars(module).values())
        dense = [tensor for tensor in tensors(list(held)) if tensor.layout is torch.strided]
        return Watch(self.directory, weights_of(model), dense)


class SharedInputs:
    """Inputs that both sides get; drawn anew only where one side wrote into them."""

    def __init__(self, draw: Callable[[], Inputs]) -> None:
        self._draw = draw
        self._inputs: Inputs | None = None
        self._versions: list[int] = []

    def get(self) -> Inputs:
        """The inputs, as they were drawn."""
        if self._inputs is None or self._versions != _versions(self._inputs):
            self._inputs = None
            self._inputs = self._draw()
            self._versions = _versions(self._inputs)
        return self._inputs

    def release(self) -> None:
        """Hold none until they are asked for again."""
        self._inputs = None


@contextmanager
def spelled_operations() -> Iterator[None]:
    """Fused paths of nn.MultiheadAttention and nn.TransformerEncoder hide what they compute.

    So does torch.cond, which is the branch that it takes. torch.einsum goes from left to right, as
    it does where opt_einsum is not installed.
    """
    dtype = torch.get_default_dtype()  # a problem's file may set another
    before = torch.backends.mha.get_fastpath_enabled()
    reorders = torch.backends.opt_einsum.enabled
    torch.backends.mha.set_fastpath_enabled(False)
    torch.backends.opt_einsum.enabled = False
    torch.set_default_dtype(torch.float32)
    cond, torch.cond = torch.cond, _branch
    with Watch(Path("/")):
        torch.zeros(())  # the first watched operation imports for a second; nobody's forward pays
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
        torch.backends.opt_einsum.enabled = reorders
        torch.cond = cond
        torch.set_default_dtype(dtype)


def placed(value: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return a model's inputs with every tensor among them moved."""
    if isinstance(value, torch.Tensor):
        return move(value)
    if isinstance(value, Mapping):
        return {key: placed(item, move) for key, item in value.items()}
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(placed(item, move) for item in value)
    return value


def _branch(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    return (true_fn if bool(pred) else false_fn)(*operands)


def holds_meta(module: nn.Module) -> bool:
    """Whether a module holds a tensor without numbers that is neither parameter nor buffer."""
    registered = {"_parameters", "_buffers", "_modules"}
    own = [value for name, value in vars(module).items() if name not in registered]
    return any(tensor.is_meta for tensor in tensors(own))


def _versions(inputs: Inputs) -> list[int]:
    return [tensor._version for tensor in tensors(list(inputs))]


def _seen(watch: Watch, inputs: Inputs, output: Any) -> Seen:
    alive, needed = reaching(watch.trace.events, watch.numbers_of(output))
    used = tuple(bool(watch.numbers_of(tensor) & needed) for tensor in tensors(list(inputs)))
    return Seen(watch.trace, alive, frozenset(watch.weights_in(needed)), used)
