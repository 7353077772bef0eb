"""Runs a file of a decomposition as a user would: imported by a process that has only torch.

A judge starts it as `python -P -` with this text on standard input, followed by the texts of
shared_memory.py, wire_format.py, sandbox.py, retained_state.py and nested_values.py: no frame,
module, argument or file name tells who asks. It reads requests from a socket. Each request runs in
a fork that may write to its own folder alone, and that answers over a socket that comes with the
request.
"""

import contextlib
import gc
import importlib.util
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

_SOME, _SOME_S = 4, 0.25
_MANY, _MANY_S = 16, 0.03
_NESTED = (list, tuple, dict)


def serve(end: int, tools: dict[str, Any]) -> None:
    """Answer requests until the other side closes the socket."""
    torch.backends.opt_einsum.enabled = False  # It would choose other operations.
    channel = tools["Channel"](socket.socket(fileno=end))
    _seed(0)  # It imports modules, which no fork has to import again.
    gc.freeze()  # A garbage collection would write to pages that forks share.
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
            os.setpgid(0, 0)  # Killing the group also ends the processes that the file starts.
            os.close(end)
            answers = tools["Channel"](socket.socket(fileno=os.dup(blocks.pop(0).file)))
            _run(request, answers, tools)
        del request, blocks


def _ended(child: int) -> bool:
    """Return whether a child has ended; if so, kill the processes that it started."""
    if os.waitpid(child, os.WNOHANG) == (0, 0):
        return False
    _end(child)
    return True


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _run(request: dict[str, Any], answers: Any, tools: dict[str, Any]) -> None:
    """Run a request, send the error if one is raised, and exit."""
    try:
        torch.set_num_threads(request["threads"])
        os.chdir(request["folder"])
        tools["confine"](Path(request["aside"]), [Path(path) for path in request["readable"]])
        _answer(request, answers, tools)
    except BaseException as error:  # The file may raise anything.
        with contextlib.suppress(Exception):
            answers.send({"error": f"{type(error).__name__}: {error}"})
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(0)


def _answer(request: dict[str, Any], answers: Any, tools: dict[str, Any]) -> None:
    """Import a file, build its model, receive weights and inputs, call it and send the outputs."""
    path, memory = Path(request["file"]), tools["Memory"]()
    sys.argv = [path.name]
    _seed(request["number"])
    spec = importlib.util.spec_from_file_location(request["module"], path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[request["module"]] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    composed = request["class"] == "ComposedModel"
    arguments: Any = [] if composed else getattr(module, "get_init_inputs", list)()
    model = _built(request, module, arguments)
    others = _others(request, module)
    models = [model]
    if request["small"]:
        models.append(_built(request, module, arguments, other=1))
    message, files = answers.receive()
    places = [place for place, _ in message["weights"]]
    constants: list[Any] = _constants(places, models, tools)
    given = memory.read(message["tensors"], files)
    for each in models:
        for place, n in message["weights"]:
            own = tools["tensor_at"](each, place)
            if not isinstance(own, torch.Tensor) or _meta(own) != _meta(given[n]):
                raise ValueError(f"its model has another {place[-1]}")
            tools["put_tensor"](each, place, given[n])
    inputs = tools["decode"](message["inputs"], given.__getitem__)
    if others is not None and _shapes(others) != _shapes(inputs[0]):
        shapes = f"{_shapes(others)}, and {_shapes(inputs[0])} where it is watched"
        raise ValueError(f"get_inputs() gives {shapes}")
    held: list[torch.Tensor] = []

    def index(tensor: Any) -> int | None:
        if not isinstance(tensor, torch.Tensor):
            return None
        for n, other in enumerate(held):
            if other is tensor:
                return n
        held.append(tensor)
        return len(held) - 1

    outputs: list[Any] = []
    first: list[Any] = []

    def remember() -> None:
        if not first:
            first.append(tools["remembered"](model, module))

    for output, after in _calls(request, models, places, others, inputs, remember, tools):
        outputs.append([tools["encode"](value, index) for value in (output, after)])
    constants = [[name, index(tensor)] for name, tensor in constants]
    metas, files = memory.write([tensor.detach() for tensor in held])
    keeps = tools["changed"](first[0], tools["remembered"](model, module))
    told = {"outputs": outputs, "constants": constants, "keeps": keeps, "tensors": metas}
    answers.send(told, files)


def _built(request: dict[str, Any], module: Any, arguments: Any, other: int = 0) -> Any:
    """Return a model of the requested class, built with the request's seed plus `seed_offset`."""
    _seed(request["number"] + other)
    cls = getattr(module, request["class"])
    model = cls(**arguments) if isinstance(arguments, dict) else cls(*arguments)
    return model.train(request["training"])


def _calls(
    request: dict[str, Any],
    models: list[Any],
    places: list[Any],
    others: Any,
    inputs: Any,
    remember: Callable[[], None],
    tools: dict[str, Any],
) -> Iterator[tuple[Any, Any]]:
    """Yield the output and the changed inputs of calls with gradients, then in inference mode.

    An input that a call left unchanged is None. In inference mode the last of `models` runs: it was
    built after inputs were drawn.

    Before, a component is rehearsed: called on inputs of its own. It is called once, then up to 4
    times in the first 0.25 s, and up to 16 times in the first 0.03 s of processor time. A slow
    component is called with gradients only, and rehearsed only if it is a kernel. In training mode
    there is one call and no rehearsal. `slots`: where its weights and buffers are; a forward may
    write to these. `take_snapshot` is called after each call.
    """
    keeps = [_state(places, model, tools) for model in models]

    def called(
        context: Any, args: Any = inputs[0], kwargs: Any = inputs[1], which: int = 0
    ) -> tuple[Any, Any]:
        model = models[which]
        _seed(request["number"])
        given = _copies(args), _copies(kwargs)
        with context:
            output = tools["to_plain_containers"](model(*given[0], **given[1]))
        for place, tensor in keeps[which]:
            tools["put_tensor"](model, place, tensor.clone())
        remember()
        changed = zip(_flat([*args, kwargs]), _flat([*given[0], given[1]]), strict=True)
        return output, [None if torch.equal(one, now) else now for one, now in changed]

    def rehearse() -> None:
        started, calls, took = time.process_time(), 0, 0.0
        while others is not None and (
            not calls or (calls < _SOME and took < _SOME_S) or (calls < _MANY and took < _MANY_S)
        ):
            called(torch.no_grad(), others, {})
            calls += 1
            took = time.process_time() - started

    if request["training"]:
        yield called(torch.no_grad())
        return
    if request["kernel"]:
        rehearse()
    started = time.monotonic()
    try:
        yield called(torch.enable_grad())
        if time.monotonic() - started > _SOME_S:
            return
    except RuntimeError:  # It writes into a weight that requires gradients.
        pass
    if not request["kernel"]:
        rehearse()
    yield called(torch.inference_mode(), which=-1)


def _state(places: list[Any], model: Any, tools: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return slots and copies of all tensors of a model except its parameters."""
    held = [(p, tools["tensor_at"](model, p)) for p in places if p[0] != "parameter"]
    return [(place, tensor.clone()) for place, tensor in held if isinstance(tensor, torch.Tensor)]


def _constants(places: list[Any], models: list[Any], tools: dict[str, Any]) -> list[Any]:
    """Return names and copies of the buffers that are equal in models of two seeds."""
    found = []
    for place in places if len(models) > 1 else ():
        one, other = (tools["tensor_at"](model, place) for model in models)
        if place[0] == "buffer" and _meta(one) == _meta(other) and torch.equal(one, other):
            found.append((place[1], one.clone()))
    return found


def _copies(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone(memory_format=torch.preserve_format)
    if isinstance(value, dict):
        return {key: _copies(item) for key, item in value.items()}
    return type(value)(map(_copies, value)) if type(value) in (list, tuple) else value


def _flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [t for item in items for t in _flat(item)] if isinstance(value, _NESTED) else []


def _others(request: dict[str, Any], module: Any) -> list[Any] | None:
    """Return inputs that a component draws from another seed; None for other models.

    They are drawn a second time, unless that is slow, to check that their shapes stay the same.
    """
    if not request["component"]:
        return None
    _seed(request["number"] + 1)
    started = time.monotonic()
    drawn = list(module.get_inputs())
    if time.monotonic() - started < _SOME_S and _shapes(again := module.get_inputs()) != _shapes(
        drawn
    ):
        raise ValueError(f"get_inputs() gives {_shapes(drawn)}, and then {_shapes(again)}")
    return drawn


def _shapes(inputs: Any) -> list[Any]:
    return [_meta(value) for value in inputs if isinstance(value, torch.Tensor)]


def _meta(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    return tensor.dtype, tuple(tensor.shape)


def _seed(number: int) -> None:
    torch.manual_seed(number)
    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number % 2**32)
