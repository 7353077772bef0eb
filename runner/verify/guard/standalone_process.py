"""Runs a file of a decomposition as a user would: imported by a process that has only torch.

forking_server.py calls `run_request` in a process of its own, which may write to its folder alone.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

_REHEARSALS, _SLOW_S = 4, 0.25
_QUICK_REHEARSALS, _QUICK_S = 16, 0.03
_FEW_DIFFERENCES = 0.1
"""Share of a buffer's elements that differ for another seed, if it is drawn."""
torch.backends.opt_einsum.enabled = False  # It would choose other operations.


def run_request(request: dict[str, Any], answers: Any, tools: dict[str, Any]) -> None:
    """Run a request, and send the error if one is raised."""
    try:
        torch.set_num_threads(request["threads"])
        os.chdir(request["folder"])
        tools["confine"](Path(request["aside"]), [Path(path) for path in request["readable"]])
        _run_file(request, answers, tools)
    except BaseException as error:  # The file may raise anything.
        with contextlib.suppress(Exception):
            answers.send({"error": f"{type(error).__name__}: {error}"})
    with contextlib.suppress(Exception):
        sys.stdout.flush()


def _run_file(request: dict[str, Any], answers: Any, tools: dict[str, Any]) -> None:
    """Import a file, build its model, receive weights and inputs, call it and send the outputs."""
    path, memory = Path(request["file"]), tools["Memory"]()
    sys.argv = [path.name]
    tools["seed_generators"](request["number"])
    sys.path.insert(0, str(path.parent))
    module = tools["import_file"](path, request["module"])
    watch = tools["StateWatch"](module)
    composed = request["class"] == "ComposedModel"
    arguments: Any = [] if composed else getattr(module, "get_init_inputs", list)()
    models = [_build_model(request, module, arguments, tools)]
    watch.check_file()
    own_inputs = _draw_inputs(request, module, watch, tools)
    if request["small"]:
        models.append(_build_model(request, module, arguments, tools, seed_offset=1))
    watch.check_file()
    message, files = answers.receive()
    slots = [slot for slot, _ in message["weights"]]
    buffers = _copy_buffers(slots, models, tools)
    received = memory.read(message["tensors"], files)
    for built_model in models:
        for slot, n in message["weights"]:
            current = tools["tensor_at"](built_model, slot)
            if not isinstance(current, torch.Tensor) or _dtype_and_shape(
                current
            ) != _dtype_and_shape(received[n]):
                raise ValueError(f"its model has another {slot[-1]}")
            tools["put_tensor"](built_model, slot, received[n])
    inputs = tools["decode"](message["inputs"], received.__getitem__)
    if own_inputs is not None:
        own_shapes, shapes = (
            _list_shapes(own_inputs),
            _list_shapes([*inputs[0], *inputs[1].values()]),
        )
        if inputs[1]:  # The original's keyword arguments have another order.
            own_shapes, shapes = sorted(own_shapes, key=str), sorted(shapes, key=str)
        if own_shapes != shapes:
            raise ValueError(f"get_inputs() gives {own_shapes}, and {shapes} where it is watched")
    answer_tensors: list[torch.Tensor] = []

    def index_tensor(tensor: Any) -> int | None:
        if not isinstance(tensor, torch.Tensor):
            return None
        for n, candidate in enumerate(answer_tensors):
            if candidate is tensor:
                return n
        answer_tensors.append(tensor)
        return len(answer_tensors) - 1

    outputs: list[Any] = []
    for output, after in _call_models(request, models, slots, own_inputs, inputs, watch, tools):
        outputs.append([tools["encode"](value, index_tensor) for value in (output, after)])
    buffers = [[name, index_tensor(tensor), spread] for name, tensor, spread in buffers]
    descriptions, files = memory.write([tensor.detach() for tensor in answer_tensors])
    answer = {"outputs": outputs, "buffers": buffers, "keeps": watch.change}
    answers.send(answer | {"tensors": descriptions}, files)


def _build_model(
    request: dict[str, Any],
    module: Any,
    arguments: Any,
    tools: dict[str, Any],
    seed_offset: int = 0,
) -> Any:
    """Return a model of the requested class, built with the request's seed plus `seed_offset`."""
    tools["seed_generators"](request["number"] + seed_offset)
    cls = getattr(module, request["class"])
    model = cls(**arguments) if isinstance(arguments, dict) else cls(*arguments)
    return model.train(request["training"])


def _call_models(
    request: dict[str, Any],
    models: list[Any],
    slots: list[Any],
    own_inputs: Any,
    inputs: Any,
    watch: Any,
    tools: dict[str, Any],
) -> Iterator[tuple[Any, Any]]:
    """Yield the output and the changed inputs of calls with gradients, then in inference mode.

    An input that a call left unchanged is None. In inference mode the last of `models` runs: it was
    built after inputs were drawn.

    Before, a component is rehearsed: called on inputs of its own. It is called once, then up to 4
    times in the first 0.25 s, and up to 16 times in the first 0.03 s of processor time. A slow
    component is called with gradients only, and rehearsed only if it is a kernel. In training mode
    one call follows the rehearsal. `slots`: where its weights and buffers are; a forward may write
    to these, and in training replace them. `watch`: a StateWatch.
    """
    states = [_copy_state(slots, model, tools) for model in models]
    called_models: set[int] = set()

    def call(
        context: Any, args: Any = inputs[0], kwargs: Any = inputs[1], index: int = 0
    ) -> tuple[Any, Any]:
        model = models[index]
        tools["seed_generators"](request["number"])
        copies = tools["copy_nested"](args), tools["copy_nested"](kwargs)
        is_first = index not in called_models
        called_models.add(index)
        held = [(slot, tools["tensor_at"](model, slot)) for slot, _ in states[index]]
        with watch.watch_call(model, is_first=is_first), context:
            output = tools["to_plain_containers"](model(*copies[0], **copies[1]))
            for slot, tensor in held if request["training"] else ():
                tools["put_tensor"](model, slot, tensor)  # Training may replace its buffers.
        for slot, tensor in states[index]:
            tools["put_tensor"](model, slot, tensor.clone())
        list_tensors = tools["list_tensors"]
        changed = zip(list_tensors([args, kwargs]), list_tensors(copies), strict=True)
        return output, [None if _is_equal(before, after) else after for before, after in changed]

    def rehearse() -> None:
        started, calls, elapsed_s = time.process_time(), 0, 0.0
        while own_inputs is not None and (
            not calls
            or (calls < _REHEARSALS and elapsed_s < _SLOW_S)
            or (calls < _QUICK_REHEARSALS and elapsed_s < _QUICK_S)
        ):
            call(torch.no_grad(), own_inputs, {})
            calls += 1
            elapsed_s = time.process_time() - started

    if request["kernel"] or request["training"]:
        rehearse()
    if request["training"]:
        yield call(torch.no_grad())
        return
    started = time.monotonic()
    try:
        yield call(torch.enable_grad())
        if time.monotonic() - started > _SLOW_S:
            return
    except RuntimeError:  # It writes into a weight that requires gradients.
        pass
    if not request["kernel"]:
        rehearse()
    torch.set_deterministic_debug_mode("warn")  # torch.empty then holds NaN
    yield call(torch.inference_mode(), index=-1)


def _copy_state(slots: list[Any], model: Any, tools: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return slots and copies of all tensors of a model except its parameters."""
    tensors = [(p, tools["tensor_at"](model, p)) for p in slots if p[0] != "parameter"]
    return [(slot, tensor.clone()) for slot, tensor in tensors if isinstance(tensor, torch.Tensor)]


def _copy_buffers(slots: list[Any], models: list[Any], tools: dict[str, Any]) -> list[Any]:
    """Return name and copy of each buffer, with how far it lies from that of another seed."""
    buffers = []
    for slot in slots if len(models) > 1 else ():
        first, second = (tools["tensor_at"](model, slot) for model in models)
        if slot[0] == "buffer" and _dtype_and_shape(first) == _dtype_and_shape(second):
            buffers.append((slot[1], first.clone(), _find_spread(first, second)))
    return buffers


def _is_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors are equal; torch.equal does not take float8."""
    if first.is_floating_point() and first.itemsize == 1:
        first, second = first.float(), second.float()
    return torch.equal(first, second)


def _find_spread(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return the mean difference of two tensors' elements; 0 if fewer than a tenth differ."""
    if _is_equal(first, second):
        return 0.0
    kind = torch.complex128 if first.is_complex() else torch.float64
    difference = (first.to(kind) - second.to(kind)).abs().nan_to_num(0, 0, 0)
    is_drawn = float((difference > 0).double().mean()) > _FEW_DIFFERENCES
    return float(difference.mean()) if is_drawn else 0.0


def _draw_inputs(
    request: dict[str, Any], module: Any, watch: Any, tools: dict[str, Any]
) -> list[Any] | None:
    """Return inputs that a component draws from another seed; None for other models.

    They are drawn a second time, unless that is slow, to check that their shapes stay the same.
    """
    if not request["component"]:
        return None
    tools["seed_generators"](request["number"] + 1)
    started = time.monotonic()
    drawn = list(module.get_inputs())
    watch.check_file()
    if time.monotonic() - started < _SLOW_S and _list_shapes(
        second_draw := module.get_inputs()
    ) != _list_shapes(drawn):
        raise ValueError(
            f"get_inputs() gives {_list_shapes(drawn)}, and then {_list_shapes(second_draw)}"
        )
    return drawn


def _list_shapes(inputs: Any) -> list[Any]:
    return [_dtype_and_shape(value) for value in inputs if isinstance(value, torch.Tensor)]


def _dtype_and_shape(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    return tensor.dtype, tuple(tensor.shape)
