"""Runs forwards with fixed seeds, in one mode, on one device, for both sides of a comparison.

It turns off gradients and fused fast paths: both sides run the operations that they spell.
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
from runner.verify.gates.weights import (
    parameter_storages,
    vary_weights,
    weights_of,
)
from runner.verify.layout import COMPOSITION_TEST, ORIGINAL
from runner.verify.loading_files import CannotJudge, foreign_code
from runner.verify.options import VerifyOptions
from runner.verify.runtime.disk_cache import free_unused_storage
from runner.verify.runtime.generators import generator_states, set_generators
from runner.verify.runtime.input_moves import move_inputs
from runner.verify.runtime.operation_watch import Event, Trace, Watch, find_reaching_events
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.random_blocks import Draws
from runner.verify.runtime.weight_streaming import WeightStreaming

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ForwardObservation:
    """Result of watching one forward."""

    trace: Trace
    alive: list[bool]
    """For each event, whether it reaches an output."""
    weights_used: frozenset[str]
    """Names of the weights that reach an output."""
    weights_read: frozenset[str]
    """Names of the weights of which Python read a number."""
    inputs_used: tuple[bool, ...]
    """For each tensor among the inputs, whether it reaches an output."""

    @property
    def computes_for_nothing(self) -> bool:
        """Whether an operation on an input or a weight reaches no output."""
        events = zip(self.trace.events, self.alive, strict=True)
        return any(not event.constant and not alive for event, alive in events)


class StandaloneCheck(Protocol):
    """Runs files by themselves, in processes without kdrun, and compares the results."""

    def start_run(
        self, file: str, model: nn.Module, inputs: Inputs
    ) -> Callable[[Any], None] | None:
        """Prepare for a model's run here; return a function that takes its output, or None."""

    def record_original_model(self, model: nn.Module, trial: int) -> None:
        """Take note of the original's weights for the seed of a trial."""

    def record_map(
        self, parent: str | None, mapping: Mapping[str, str], children: Mapping[str, str]
    ) -> None:
        """Record which weights of a parent, None for the original, those of its children are."""

    def record_own_weights(self, file: str, model: nn.Module) -> None:
        """Record the weights that a kernel's file draws, before others take their place."""

    def watch_kernels(self, composed: nn.Module) -> AbstractContextManager[None]:
        """Listen, in the body, to the calls of kernels in the composed model."""

    def judge_operation(self, file: str, model: nn.Module, events: list[Event]) -> None:
        """Judge the operations of a kernel that has run here by itself."""

    def finish(self, author_call_kernels: set[str], single_operation_kernels: set[str]) -> None:
        """Record the verdicts, once everything has run."""


_FOREIGN_ZEROS_LIMIT = 20.0
"""Limit up to which zero biases are moved in others' files: a choice of the largest hides less."""


@dataclass(frozen=True, slots=True)
class ForwardRunner:
    """Settings and resources that both sides of a comparison share."""

    directory: Path
    options: VerifyOptions
    draws: Draws = field(default_factory=Draws)
    streaming: WeightStreaming | None = None
    """Streams weights if they do not fit; else None."""
    dtypes: dict[str, torch.dtype] = field(
        default_factory=lambda: {ORIGINAL: torch.get_default_dtype()}
    )
    """Default dtype that a problem's file set, perhaps when it was captured."""
    standalone: "StandaloneCheck | None" = None
    """Runs each file of a foreign directory in a plain process in the last trial."""

    @contextmanager
    def default_dtype(self, label: str) -> Iterator[None]:
        """Use, in the body, the default dtype that original.py set, if it is what runs there."""
        file = label.partition(":")[0]
        if file != ORIGINAL:
            yield
            return
        saved_dtype = torch.get_default_dtype()
        torch.set_default_dtype(self.dtypes[file])
        try:
            yield
        finally:
            self.dtypes[file] = torch.get_default_dtype()
            torch.set_default_dtype(saved_dtype)

    def build(self, label: str, make: Callable[[], Any], trial: int) -> nn.Module:
        """Return a model in the right mode, on the device; CannotJudge if it is no module."""
        self.seed(trial)
        with foreign_code(label, self.directory), self.default_dtype(label):
            seed = self._trial_seed(trial)
            model = self.streaming.build(make, seed) if self.streaming else make()
            if not isinstance(model, nn.Module):
                raise CannotJudge(f"{label} is {type(model).__name__}, not an nn.Module")
            model.train(self.options.mode == "train")
            return model.to(self.options.device)

    def build_bare(self, label: str, make: Callable[[], Any], trial: int) -> nn.Module:
        """Return a model without values in its weights, which `transfer_weights` will replace.

        If it makes other tensors too, such as a table in a plain attribute, it is built in full.
        """
        try:
            with torch.device("meta"):
                model = make()
        except Exception:  # whatever the reason: the full build reports it, if it remains
            return self.build(label, make, trial)
        if not isinstance(model, nn.Module) or any(map(holds_meta_tensor, model.modules())):
            return self.build(label, make, trial)
        for module in model.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None and not buffer.numel():  # no weight: it only tells the device
                    module._buffers[name] = torch.empty_like(buffer, device=self.options.device)
        return model.train(self.options.mode == "train")

    def vary(self, model: nn.Module, trial: int, names: frozenset[str] | None = None) -> None:
        """Move the weights a little in later trials; the first trial has the author's weights.

        A single trial moves weights that are one value throughout: default values hide a wrong map.
        """
        if trial == 0 and self.has_authors_weights:
            return
        generator = torch.Generator().manual_seed(self._trial_seed(trial))
        if self.streaming and (deferred_names := self.streaming.vary(model)):
            names = (frozenset(weights_of(model)) if names is None else names) - deferred_names
        with foreign_code("weights", self.directory):
            vary_weights(
                model,
                generator,
                only_defaults=trial == 0,
                names=names,
                zeros_limit=_FOREIGN_ZEROS_LIMIT if self.standalone else 0.1,
            )

    def draw(
        self,
        label: str,
        get_inputs: Callable[[], Any],
        trial: int,
        *,
        repeated: bool = False,
        reuse: bool = False,
    ) -> Inputs:
        """Return new inputs, on the device; Draws explains `repeated` and `reuse`."""
        self.seed(trial)
        draw_context = self.draws.control_draws(repeated=repeated, reuse=reuse)
        with foreign_code(label, self.directory), draw_context, self.default_dtype(label):
            args, kwargs = get_inputs()
        return move_inputs((tuple(args), dict(kwargs)), self.options.device)

    def forward(
        self,
        label: str,
        model: nn.Module,
        inputs: Inputs,
        trial: int,
        watch: Watch | None = None,
        *,
        gradients: bool = False,
        restore_generators: Callable[[], None] | None = None,
    ) -> tuple[Any, ForwardObservation | None]:
        """Run a model; random operations in it draw the same numbers on both sides.

        Returns the output, and the observation if `watch` is given. `restore_generators` is called
        in place of seeding if the other side ran in the middle of a forward.
        """
        args, kwargs = inputs
        take_output = None
        listening: AbstractContextManager[None] = nullcontext()
        file = label.partition(":")[0]
        if self.standalone and trial == self.last_trial and not restore_generators:
            take_output = self.standalone.start_run(file, model, inputs)
        if self.standalone and trial == 0 and file == COMPOSITION_TEST:
            listening = self.standalone.watch_kernels(model)
        if restore_generators:
            restore_generators()
        else:
            self.seed(trial)
        with (
            foreign_code(label, self.directory),
            torch.set_grad_enabled(gradients),
            self.default_dtype(label),
            listening,
        ):
            output, observation = self.observe(
                watch, lambda: to_plain_containers(model(*args, **kwargs)), inputs
            )
        if take_output:
            take_output(output)
        return free_unused_storage(output), observation

    def observe(
        self, watch: Watch | None, run: Callable[[], Any], inputs: Inputs
    ) -> tuple[Any, ForwardObservation | None]:
        """Return the output of a forward, and the observation if `watch` is given."""
        if watch is None:
            return run(), None
        watch.register_inputs(list(inputs))
        with watch:
            output = run()
        watch.check_output(output)
        reaches_output, needed_storages = find_reaching_events(
            watch.trace.events, watch.storage_numbers(output)
        )
        inputs_used = tuple(
            bool(watch.storage_numbers(tensor) & needed_storages)
            for tensor in tensors(list(inputs))
        )
        weights_used = frozenset(watch.weights_in(needed_storages))
        weights_read = frozenset(watch.weights_in(watch.read_into_python))
        return output, ForwardObservation(
            watch.trace, reaches_output, weights_used, weights_read, inputs_used
        )

    @property
    def has_authors_weights(self) -> bool:
        """Whether the first trial runs on weights as the author draws them."""
        return self.options.trials > 1 or self.options.specialised

    @property
    def last_trial(self) -> int:
        """Number of the last trial; if there are several, its weights differ from the author's."""
        return self.options.seeds - 1

    def seed(self, trial: int) -> None:
        """Seed every generator that a model may draw from."""
        number = self._trial_seed(trial)
        if self.options.device == "cpu":
            torch.default_generator.manual_seed(number)  # torch.manual_seed asks other devices too
        else:
            torch.manual_seed(number)
        random.seed(number)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(number % 2**32)

    def save_generators(self) -> Callable[[], None]:
        """Return a function that restores every generator that a model may draw from."""
        of_torch, python = generator_states(self.options.device), random.getstate()
        numpy = sys.modules.get("numpy")
        of_numpy = numpy.random.get_state() if numpy else None

        def restore() -> None:
            set_generators(self.options.device, of_torch)
            random.setstate(python)
            if numpy:
                numpy.random.set_state(of_numpy)

        return restore

    def _trial_seed(self, trial: int) -> int:
        return self.options.seed + trial

    def make_watch(
        self,
        model: nn.Module,
        parameters: frozenset[int] | None = None,
        *,
        compares_operands: bool = False,
    ) -> Watch:
        """Return a watch for one forward of a model.

        `parameters`: storages of the original's parameters, if it is compared with another model.
        `compares_operands`: whether the values of operands are compared, too.
        """
        values = (value for module in model.modules() for value in vars(module).values())
        dense = [tensor for tensor in tensors(list(values)) if tensor.layout is torch.strided]
        weights = weights_of(model)
        # A parameter of the original that this model does not have may be freed, and what the
        # forward computes may come to lie at its address.
        own = parameter_storages(weights, weights)
        parameters = own if parameters is None else own & parameters
        return Watch(
            self.directory,
            weights,
            dense,
            parameters,
            specialised=self.options.specialised,
            compares_operands=compares_operands,
        )


class SharedInputs:
    """Inputs that both sides share; they are drawn again only if one side wrote into them."""

    def __init__(self, draw: Callable[[], Inputs]) -> None:
        self._draw = draw
        self._inputs: Inputs | None = None
        self._versions: list[int] = []

    def get(self) -> Inputs:
        """Return the inputs with the values that were drawn."""
        if self._inputs is None or self._versions != _versions(self._inputs):
            self._inputs = None
            self._inputs = self._draw()
            self._versions = _versions(self._inputs)
        return self._inputs

    def release(self) -> None:
        """Free the inputs until they are needed again."""
        self._inputs = None


@contextmanager
def disable_fused_paths() -> Iterator[None]:
    """Make torch run the operations that a program spells, in the body, and float32 by default.

    The fused paths of nn.MultiheadAttention and nn.TransformerEncoder hide their operations, and so
    does torch.cond, which is replaced by the branch that it takes. torch.einsum goes from left to
    right, as it does where opt_einsum is not installed.
    """
    dtype = torch.get_default_dtype()  # a problem's file may set another
    fast_path = torch.backends.mha.get_fastpath_enabled()
    reorder_enabled = torch.backends.opt_einsum.enabled
    torch.backends.mha.set_fastpath_enabled(False)
    torch.backends.opt_einsum.enabled = False
    torch.set_default_dtype(torch.float32)
    cond, torch.cond = torch.cond, _run_taken_branch
    with Watch(Path("/")):
        torch.zeros(())  # the first watched operation spends a second on imports: before any gate
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        torch.backends.opt_einsum.enabled = reorder_enabled
        torch.cond = cond
        torch.set_default_dtype(dtype)


def move_tensors(value: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return a model's inputs with every tensor moved."""
    if isinstance(value, torch.Tensor):
        return move(value)
    if isinstance(value, Mapping):
        return {key: move_tensors(item, move) for key, item in value.items()}
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(move_tensors(item, move) for item in value)
    return value


def _run_taken_branch(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    return (true_fn if bool(pred) else false_fn)(*operands)


def holds_meta_tensor(module: nn.Module) -> bool:
    """Return whether a module holds a meta tensor that is neither parameter nor buffer."""
    registered = {"_parameters", "_buffers", "_modules"}
    values = [value for name, value in vars(module).items() if name not in registered]
    return any(tensor.is_meta for tensor in tensors(values))


def _versions(inputs: Inputs) -> list[int]:
    return [tensor._version for tensor in tensors(list(inputs))]
