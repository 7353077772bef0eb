"""Runs a solution, or what it is compared with, in a process that has torch and nothing of kdrun.

forking_server.py calls `run_request` in a process of its own, which may write to one folder alone.
The judge holds the expected values and the clock.
"""

import contextlib
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_CACHE_VARIABLES = {
    "TMPDIR": "tmp",
    "HOME": "home",
    "XDG_CACHE_HOME": "home/cache",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "TRITON_CACHE_DIR": "triton",
}
"""Maps variables to folders in the writable one, in which compilers keep files."""
_Tools = dict[str, Any]
_collect, _freeze, _sum = gc.collect, gc.freeze, torch.sum
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
"""Functions and classes as they were before a solution could put others there."""


def run_request(request: dict[str, Any], answers: Any, tools: _Tools) -> None:
    """Send the process's id, and answer one program's requests until the judge has no more."""
    answers.send({"process": os.getpid()})
    writable = Path(request["writable"])
    with contextlib.suppress(BaseException):
        for variable, name in _CACHE_VARIABLES.items():
            (writable / name).mkdir(parents=True, exist_ok=True)
            os.environ[variable] = str(writable / name)
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # Otherwise a pool of processes starts.
        os.chdir(Path(request["file"]).parent)
        torch.set_num_threads(request["threads"])
        readable = [Path(path) for path in request["readable"]]
        tools["confine"](writable, readable, has_compilers=True)
        program = _Program(request, tools)
        while True:
            message, files = answers.receive()
            try:
                answer, answer_files = program.handle(message, files)
            except Exception as error:  # The program may raise anything.
                answer, answer_files = {"error": _describe_error(error, request["file"])}, []
            answers.send(answer, answer_files)


def _describe_error(error: BaseException, file: str) -> str:
    """Return an error's type, first line, and line in the program's file."""
    lines, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    text = str(error).strip()
    compiler_errors = [line for line in text.splitlines() if "error:" in line]
    first = (compiler_errors or text.splitlines() or [""])[0]
    suffix = f" ({Path(file).name}:{lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {first}{suffix}" if first else type(error).__name__ + suffix


class _Program:
    """A file with a model class, and the inputs that wait for it."""

    def __init__(self, request: dict[str, Any], tools: _Tools) -> None:
        self._request, self._tools = request, tools
        self._module: Any = None
        self._model: Any = None
        self._forward: Any = None
        self._batch: list[Any] = []
        self._outputs: list[Any] = []
        self._flush_buffer: Any = None

    def handle(self, message: dict[str, Any], files: list[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Return the answer to one message, with its files."""
        # A memory that outlives the message would keep every file that it has read.
        received = self._tools["Memory"]().read(message.get("tensors", []), files)
        content = self._tools["decode"](message.get("content"), received.__getitem__)
        handlers: dict[str, Callable[[Any], Any]] = {
            "import": self._import,
            "build": self._build,
            "weights": self._load_weights,
            "call": self._call,
            "place": self._place,
            "run": self._run_batch,
            "deliver": self._deliver,
        }
        return self._encode(handlers[message["kind"]](content))

    def _encode(self, value: Any) -> tuple[dict[str, Any], list[Any]]:
        tensors: list[torch.Tensor] = []

        def index_tensor(tensor: torch.Tensor) -> int:
            tensors.append(tensor)
            return len(tensors) - 1

        content = self._tools["encode"](self._tools["to_plain_containers"](value), index_tensor)
        # The copy keeps what a program still holds from being written to later.
        descriptions, files = self._tools["Memory"]().write([t.detach() for t in tensors])
        return {"content": content, "tensors": descriptions}, files

    def _import(self, flush_buffer: torch.Tensor) -> None:
        self._flush_buffer = flush_buffer
        path = Path(self._request["file"])
        self._tools["seed_generators"](0)
        self._module = self._tools["import_file"](path, path.stem)

    def _build(self, content: Any) -> None:
        """Build the model anew; a compiled program keeps what it has compiled."""
        arguments, seed = content
        model_class = getattr(self._module, self._request["class"], None)
        if model_class is None:
            raise AttributeError(f"no class {self._request['class']}")
        self._tools["seed_generators"](seed)
        model = model_class(**arguments) if isinstance(arguments, dict) else model_class(*arguments)
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"{self._request['class']} is not an nn.Module")
        self._model = model.train(self._request["training"])
        self._forward = torch.compile(model) if self._request["compiled"] else model

    def _load_weights(self, state: dict[str, torch.Tensor]) -> None:
        """Give the model weights by name, or those that its `convert_weights` makes of them."""
        convert = getattr(self._module, "convert_weights", None)
        if convert is not None:
            state = convert({name: tensor.clone() for name, tensor in state.items()})
        own: dict[str, torch.Tensor] = dict(self._model.named_parameters(remove_duplicate=False))
        parameters = set(own)
        own.update(self._model.named_buffers(remove_duplicate=False))
        hint = "name them as in the component, or define convert_weights(state_dict)"
        if missing := [name for name in state if name not in own]:
            raise ValueError(f"ModelNew has no weight {missing[0]}; {hint}")
        if missing := sorted(parameters - set(state)):
            raise ValueError(f"the component has no weight {missing[0]}; {hint}")
        with torch.no_grad():
            for name, tensor in state.items():
                if own[name].shape != tensor.shape:
                    shapes = f"{list(own[name].shape)} instead of {list(tensor.shape)}"
                    raise ValueError(f"its weight {name} has shape {shapes}")
                own[name].copy_(tensor)

    def _call(self, content: Any) -> list[Any]:
        """Return the outputs of calls on copies of the same inputs, and the inputs afterwards.

        The last element of the answer is the seconds of the calls.
        """
        args, kwargs, seed, count = content
        outputs, inputs_after, seconds = [], None, 0.0
        for _ in range(count):
            inputs_after = self._tools["copy_nested"]([args, kwargs])
            self._tools["seed_generators"](seed)
            started = time.perf_counter()
            with torch.no_grad():
                outputs.append(self._forward(*inputs_after[0], **inputs_after[1]))
            seconds += time.perf_counter() - started
        return [outputs, inputs_after, seconds]

    def _place(self, content: Any) -> None:
        """Put inputs where those of the last batch were, and flush the cache if asked to."""
        batch, seed, flush = content
        self._outputs.clear()
        copy_nested, list_tensors = self._tools["copy_nested"], self._tools["list_tensors"]
        if self._tools["are_alike"](self._batch, batch):
            for target, source in zip(list_tensors(self._batch), list_tensors(batch), strict=True):
                target.copy_(source)
        else:
            self._batch = copy_nested(batch)
        gc.callbacks.clear()
        _collect()
        _freeze()  # What a compiler left behind would take a tenth of a second each time.
        self._tools["seed_generators"](seed)
        if flush:
            _sum(self._flush_buffer)

    def _run_batch(self, _: None) -> None:
        """Call the model on the inputs of the batch; the judge measures the time."""
        forward, outputs = self._forward, self._outputs
        with torch.no_grad():
            for args, kwargs in self._batch:
                outputs.append(forward(*args, **kwargs))
        for tensor in self._tools["list_tensors"](outputs):
            if type(tensor) not in _PLAIN_TENSORS:
                raise TypeError(f"returns a {type(tensor).__name__}: return a plain torch.Tensor")

    def _deliver(self, _: None) -> list[Any]:
        return self._outputs
