"""Runs a file of a decomposition as anybody would: imported by a process that has only torch.

A judge starts it as `python -P -` with this text on standard input, and the texts of memory.py,
wire.py, sandbox.py and structure.py after it: no frame, module, argument or file name says who
asks. It reads requests from a socket; each runs in a fork that may write to its own folder alone,
and answers over a socket that comes with the request.
"""

import contextlib
import importlib.util
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

_SOME, _SOME_S = 4, 0.25
_MANY, _MANY_S = 16, 0.01


def serve(end: int, tools: dict[str, Any]) -> None:
    """Answer requests until nobody asks any more."""
    torch.backends.mha.set_fastpath_enabled(False)  # these two choose other operations
    torch.backends.opt_einsum.enabled = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    channel = tools["Channel"](socket.socket(fileno=end))
    children: list[int] = []
    while True:
        try:
            request, blocks = channel.receive()
        except tools["ConnectionLostError"]:
            for child in children:
                _end(child)
            os._exit(0)
        children = [child for child in children if not _ended(child)]
        child = os.fork()
        if child:
            children.append(child)
        else:
            os.setpgid(0, 0)  # what it starts ends with it
            os.close(end)
            answers = tools["Channel"](socket.socket(fileno=os.dup(blocks.pop(0).file)))
            _run(request, blocks, answers, tools)
        del request, blocks


def _ended(child: int) -> bool:
    """Whether a child has ended; then all that it started ends, too."""
    if os.waitpid(child, os.WNOHANG) == (0, 0):
        return False
    _end(child)
    return True


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _run(request: dict[str, Any], blocks: list[Any], answers: Any, tools: dict[str, Any]) -> None:
    """Say what came out, or what was raised."""
    aside, confine = Path(request["aside"]), tools["confine"]
    try:
        torch.set_num_threads(request["threads"])
        if not request["whole"]:  # as torch is when nobody has set anything
            torch.backends.mha.set_fastpath_enabled(True)
            torch.use_deterministic_algorithms(False)
            torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
        os.chdir(request["folder"])
        readable = request["readable"]
        if readable is None:  # packages of a problem keep what they compile
            for name in ("TMPDIR", "MPLCONFIGDIR", "NUMBA_CACHE_DIR"):
                os.environ[name] = str(aside)
        confine(aside, None if readable is None else [Path(path) for path in readable])
        _answer(request, blocks, answers, tools)
    except BaseException as error:  # whatever the file raises
        answers.send({"error": f"{type(error).__name__}: {error}"})
    sys.stdout.flush()
    os._exit(0)


def _answer(
    request: dict[str, Any], blocks: list[Any], answers: Any, tools: dict[str, Any]
) -> None:
    """Tell weights and inputs; take the weights that the judge changes; tell the output."""
    path, memory = Path(request["file"]), tools["Memory"]()
    sys.argv = [path.name]
    given = memory.read(request["tensors"], blocks)
    _seed(request["number"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    sys.path += [place for place in request["paths"] if place not in sys.path]
    spec.loader.exec_module(module)
    arguments = module.get_init_inputs() if request["arguments"] else []
    _seed(request["number"])
    cls = getattr(module, request["class"])
    model = cls(**arguments) if isinstance(arguments, dict) else cls(*arguments)
    model.train(request["training"])
    draws = [_inputs(request, module, given, tools, n) for n in (request["number"] + 1, None)]
    shapes = [_shapes(each) for each in draws]
    if shapes[0] != shapes[1]:
        raise ValueError(f"get_inputs() gives {shapes[0]}, and then {shapes[1]}")
    args, kwargs = draws[1]
    held: list[torch.Tensor] = []

    def index(tensor: Any) -> int | None:
        if not isinstance(tensor, torch.Tensor):
            return None
        for n, other in enumerate(held):
            if other is tensor:
                return n
        held.append(tensor)
        return len(held) - 1

    weights = [index(tools["tensor_at"](model, place)) for place in request["weights"]]
    told = tools["encode"]([list(args), kwargs], index)
    metas, files = memory.write(held)
    answers.send({"weights": weights, "inputs": told, "tensors": metas}, files)
    change, files = answers.receive()
    changed = memory.read(change["tensors"], files)
    for place, tensor in zip(change["places"], changed, strict=True):
        tools["put_tensor"](model, place, tensor)
    outputs = []
    held.clear()
    for output, after in _calls(request, model, draws, tools):
        outputs.append([tools["encode"](value, index) for value in (output, after)])
    metas, files = memory.write([tensor.detach() for tensor in held])
    answers.send({"outputs": outputs, "tensors": metas}, files)


def _calls(
    request: dict[str, Any], model: Any, draws: list[Any], tools: dict[str, Any]
) -> Iterator[tuple[Any, Any]]:
    """What a model gives, and its inputs afterwards: with gradients on, and in inference mode.

    Before, a component is called on other inputs: once; 4 times if a quarter of a second is enough,
    and as often as 10 milliseconds are, up to 16 times.
    The problem's own file and what is in training mode are called once, and what is slow with
    gradients on alone.
    """
    keep = _state(request, model, tools)

    def called(context: Any, inputs: Any = draws[1]) -> tuple[Any, Any]:
        _seed(request["number"])
        given = _copies(inputs[0]), _copies(inputs[1])
        with context:
            output = tools["plain"](model(*given[0], **given[1]))
        for place, tensor in keep:
            tools["put_tensor"](model, place, tensor.clone())
        return output, [list(given[0]), given[1]]

    if request["whole"] or request["training"]:
        yield called(torch.no_grad())
        return
    started, calls, took = time.monotonic(), 0, 0.0
    while request["often"] and (
        not calls or (calls < _SOME and took < _SOME_S) or (calls < _MANY and took < _MANY_S)
    ):
        called(torch.no_grad(), draws[0])
        calls += 1
        took = time.monotonic() - started
    started = time.monotonic()
    try:
        yield called(torch.enable_grad())
        if time.monotonic() - started > _SOME_S:
            return
    except RuntimeError:  # it writes into a weight, which takes no gradients
        pass
    yield called(torch.inference_mode())


def _state(request: dict[str, Any], model: Any, tools: dict[str, Any]) -> list[tuple[Any, Any]]:
    """What a forward may write to, as it is before."""
    places = [place for place in request["weights"] if place[0] != "parameter"]
    held = [(place, tools["tensor_at"](model, place)) for place in places]
    return [(place, tensor.clone()) for place, tensor in held if isinstance(tensor, torch.Tensor)]


def _copies(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone(memory_format=torch.preserve_format)
    if isinstance(value, dict):
        return {key: _copies(item) for key, item in value.items()}
    return type(value)(map(_copies, value)) if type(value) in (list, tuple) else value


def _inputs(
    request: dict[str, Any],
    module: Any,
    given: list[Any],
    tools: dict[str, Any],
    number: int | None,
) -> Any:
    """What a file draws, from the request's seed or another one; or what the request gives."""
    _seed(request["number"] if number is None else number)
    if request["inputs"] is not None:
        return tools["decode"](request["inputs"], given.__getitem__)
    kwargs = module.get_input_kwargs() if hasattr(module, "get_input_kwargs") else {}
    return module.get_inputs(), kwargs


def _shapes(inputs: Any) -> list[Any]:
    args, kwargs = inputs
    values = [*args, *kwargs.values()]
    return [(v.dtype, tuple(v.shape)) for v in values if isinstance(v, torch.Tensor)]


def _seed(number: int) -> None:
    torch.manual_seed(number)
    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number % 2**32)
