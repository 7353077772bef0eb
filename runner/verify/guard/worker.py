"""Runs the files of a foreign directory in a process of its own and reports what they did.

The process is a fork of the judge, which imports none of those files. Its reports are claims, and
the judge repeats each operation itself. `Worker` lists the requests.
"""

import base64
import contextlib
import gc
import os
import random
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from runner.errors import MissingError
from runner.problems import (
    LoadedProblem,
    fill_objects,
    load_problem,
    read_problem,
    to_plain_containers,
)
from runner.problems.simulated_device import simulated_device
from runner.torch_internals import FakeTensorMode, plain_tensors_in
from runner.verify.findings import Findings
from runner.verify.gates.device import DeviceGate
from runner.verify.gates.self_test import (
    computed_operations,
    defining_file,
    find_components,
    make_model,
)
from runner.verify.gates.weights import plain_tensors
from runner.verify.guard.call_recording import CallRecorder, record_components
from runner.verify.guard.drawn_numbers import DrawnNumbers
from runner.verify.guard.retained_state import describe_settings
from runner.verify.guard.sandbox import confine, system_paths
from runner.verify.guard.shared_memory import Memory, MemoryFile, NotToldError
from runner.verify.guard.wire_format import (
    Channel,
    ConnectionLostError,
    decode,
    encode,
    put_tensor,
    replace_tensor,
    tensor_at,
)
from runner.verify.guard.worker_client import PUBLIC_NAMES, WorkerClient
from runner.verify.layout import ORIGINAL, read_layout
from runner.verify.loading_files import CannotJudge, Files, foreign_code
from runner.verify.options import VerifyOptions
from runner.verify.runtime.operation_watch import Watch
from runner.verify.runtime.random_blocks import RepeatedDraws
from runner.verify.runtime.runner import ForwardRunner

_ALREADY_ANSWERED = object()
"""Marks a request that a forked process has answered already."""
_SHAPES_ONLY_BYTES = 8 << 20
"""Bytes of inputs and weights from which on a forward may take longer than a fork."""
_SHARED_WEIGHT_BYTES = 16 << 20
"""Bytes from which on a weight is replaced by the copy in shared memory that the judge gets."""


def start_worker(
    directory: Path, options: VerifyOptions, scratch: Path, name: str, *, is_original: bool
) -> tuple[int, Channel]:
    """Fork a worker; return its process id and the channel to it.

    It may write to the folder `name` in `scratch`. `is_original`: it runs the problem's own file,
    which may read whatever this process may.
    """
    folder = scratch / name
    folder.mkdir()
    judge_end, worker_end = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        worker_end.close()
        return process, Channel(judge_end)
    try:
        # The judge's objects must not close files here: their numbers may belong to other files.
        gc.freeze()
        judge_end.close()
        descriptor = worker_end.fileno()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  (lives as long as this process)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        os.closerange(3, descriptor)
        os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
        os.setpgid(0, 0)  # Killing the group also ends the processes that the files start.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if len([*Path("/proc/self/task").iterdir()]) != 1 or torch.get_num_threads() != 1:
            torch.set_num_threads(1)  # The threads of a pool do not survive a fork.
        sys.pycache_prefix = str(folder)  # Bytecode next to a source may not be compiled from it.
        for name in ("TMPDIR", "MPLCONFIGDIR", "NUMBA_CACHE_DIR"):
            os.environ[name] = str(folder)
        readable = None if is_original else [*system_paths(), Path(__file__).parents[2], directory]
        confine(folder, readable)
        if not is_original:
            _refuse_keys(str(directory))
        Worker(directory, options, Channel(worker_end)).serve()
    except BaseException:  # Nothing may return into the judge's own code.
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def _refuse_keys(directory: str) -> None:
    """Refuse tensors as keys in a directory's files: they tell whether two are one object."""
    own_hash: Callable[[torch.Tensor], int] = torch.Tensor.__hash__

    def hash_tensor(tensor: torch.Tensor) -> int:
        if sys._getframe(1).f_code.co_filename.startswith(directory):
            raise TypeError("a tensor is a key or in a set: compute with its values")
        return own_hash(tensor)

    torch.Tensor.__hash__ = hash_tensor  # type: ignore[method-assign]


@contextlib.contextmanager
def run_workers(
    directory: Path, options: VerifyOptions
) -> Iterator[tuple[WorkerClient, WorkerClient]]:
    """Yield clients of two workers: for components and the device gate, and for original.py."""
    memory = Memory()
    with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
        clients: list[WorkerClient] = []
        try:
            for name, is_original in (("parts", False), ("original", True)):
                process = start_worker(
                    directory, options, Path(folder), name, is_original=is_original
                )
                clients.append(WorkerClient(*process, memory))
            parts, original = clients
            yield parts, original
        finally:
            for client in clients:
                client.close()


class Worker:
    """Answers requests until the judge closes the channel; each kind of request has a method."""

    def __init__(self, directory: Path, options: VerifyOptions, channel: Channel) -> None:
        self._directory, self._channel = directory, channel
        self._runner = ForwardRunner(directory, options)
        self._files = Files(directory)
        self._modules: list[ModuleType | LoadedProblem] = []
        self._models: dict[int, nn.Module] = {}
        self._originals: set[int] = set()
        """Numbers of those models that are the original's."""
        self._drawn: Any = None
        """The original's latest inputs, which may be objects that hold tensors."""
        self._slots: dict[int, list[list[str]]] = {}
        """Maps a model to the slots of its weights and other tensors."""
        self._model_count = 0
        self._drawn = DrawnNumbers(directory)
        self._memory = Memory()
        self._memory_files: list[MemoryFile] = []

    def serve(self) -> None:
        """Answer requests until the judge closes the channel."""
        with self._files:
            while True:
                try:
                    request, self._memory_files = self._channel.receive()
                except ConnectionLostError:
                    return
                answer = self._answer_request(request)
                if answer is not None:
                    self._channel.send(answer, self._memory_files)

    def _answer_request(self, request: Any) -> Any:
        try:
            request["given"] = self._memory.read(request.pop("tensors", []), self._memory_files)
            self._memory_files = []
            answer = getattr(self, f"do_{request['do']}")(request)
            return None if answer is _ALREADY_ANSWERED else {"ok": answer}
        except MemoryError as error:
            return {"memory": str(error)}
        except CannotJudge as error:
            missing = error.__cause__
            package = ""
            if isinstance(missing, MissingError):
                package = str(getattr(missing.__cause__, "name", "")).partition(".")[0]
                return {
                    "error": str(error),
                    "missing": package,
                    "what": missing.missing,
                    "where": missing.reason.removeprefix(missing.missing),
                    "hint": missing.hint,
                }
            return {"error": str(error)}
        except Exception as error:
            traceback.print_exc()
            return {"error": f"{request.get('what', 'it')}: {type(error).__name__}: {error}"}

    def _attach_tensors(
        self, answer: dict[str, Any], tensors: list[torch.Tensor]
    ) -> dict[str, Any]:
        try:
            answer["tensors"], self._memory_files = self._memory.write(tensors)
        except NotToldError as error:
            raise CannotJudge(f"holds {error}") from error
        except OSError as error:
            raise MemoryError(f"no room for tensors: {error}") from error
        return answer

    @contextlib.contextmanager
    def _record_operations(self, answer: dict[str, Any], subject: str) -> Iterator[None]:
        """Add the operations that files compute in the body to the answer.

        Raises:
            CannotJudge: a number that was drawn is read; `subject` begins the message.
        """
        watch = Watch(self._directory)
        with watch, self._drawn.watch():
            yield
        if self._drawn.reading:
            raise CannotJudge(
                f"{subject}: reads a random number at {self._drawn.reading}, so another seed may "
                "make another model: drawn numbers may only fill weights and buffers"
            )
        operations = dict.fromkeys(computed_operations(watch))
        answer["computed"] = [[name, line] for name, line in operations if line != "elsewhere"]

    # Requests of the judge

    def do_load(self, request: Any) -> Any:
        """Load a file and return which of the public names it has."""
        answer: dict[str, Any] = {}
        with self._record_operations(answer, request["file"]):
            if request["step"]:
                module = self._files.load_step(self._directory / request["step"])
            elif request["text"] is not None:
                module = self._files.load_text(self._directory / request["file"], request["text"])
            else:
                module = self._files.load(self._directory / request["file"])
        return self._add_module(module, answer)

    def _add_module(self, module: ModuleType, answer: dict[str, Any]) -> Any:
        self._modules.append(module)
        names = vars(module)
        answer["module"] = len(self._modules) - 1
        answer["names"] = [name for name in PUBLIC_NAMES if name in names]
        if "WEIGHTS" in names:
            try:
                answer["weights"] = encode(names["WEIGHTS"], _refuse_tensor)
            except NotToldError as error:
                answer["weights"] = f"{error}"
        return answer

    def do_problem(self, request: Any) -> Any:
        """Load the problem's own file."""
        with foreign_code(ORIGINAL, self._directory), self._runner.default_dtype(ORIGINAL):
            problem = load_problem(read_problem(self._directory / ORIGINAL))
        self._modules.append(problem)
        return {"module": len(self._modules) - 1, "packages": sorted(sys.modules)}

    def do_value(self, request: Any) -> Any:
        """Return the value of a function without arguments."""
        module = self._modules[request["module"]]
        with foreign_code(request["what"], self._directory):
            return encode(vars(module)[request["name"]](), _refuse_tensor)

    def do_inputs(self, request: Any) -> Any:
        """Return inputs that are drawn from a seed."""
        runner = self._runner_with_seed(request["number"])
        module = self._modules[request["module"]]

        def get_inputs() -> Any:
            if isinstance(module, LoadedProblem):
                return module.get_inputs()
            inputs = vars(module)["get_inputs"]()
            if not isinstance(inputs, list | tuple):
                kind = type(inputs).__name__
                raise CannotJudge(f"{request['file']}: get_inputs() returned {kind}, not a list")
            return tuple(inputs), {}

        drawn = runner.draw(request["what"], get_inputs, 0, repeated=request["repeated"])
        if isinstance(module, LoadedProblem):
            self._drawn = drawn
        tensors: list[torch.Tensor] = []
        encoded = encode(to_plain_containers(drawn), lambda tensor: _index_tensor(tensor, tensors))
        return self._attach_tensors({"inputs": encoded}, tensors)

    def do_build(self, request: Any) -> Any:
        """Build a model; return its modules and tensors."""
        runner, subject = self._runner_with_seed(request["number"]), request["what"]
        module, answer = self._modules[request["module"]], dict[str, Any]()
        build = runner.build_bare if request["bare"] else runner.build
        if isinstance(module, LoadedProblem):
            model, answer["computed"] = build(subject, module.build, 0), []
        else:
            with self._record_operations(answer, subject):
                model = build(subject, lambda: _make_component_model(module, request["class"]), 0)
        self._model_count += 1
        number = self._model_count
        self._models[number] = model
        if isinstance(module, LoadedProblem):
            self._originals.add(number)
        return self._describe_model(model, number, answer)

    def _describe_model(self, model: nn.Module, number: int, answer: dict[str, Any]) -> Any:
        tensors: list[torch.Tensor] = []
        first_paths: dict[int, str] = {}
        modules: list[list[Any]] = []
        weights: list[tuple[str, list[str], bool, int]] = []
        for path, module in model.named_modules(remove_duplicate=False):
            first = first_paths.setdefault(id(module), path)
            file = None
            if first == path:
                file = defining_file(module, self._directory, self._directory)
            has_own_forward = "forward" in vars(module)
            settings = describe_settings(module) if file else []
            modules.append([path, first, file, has_own_forward, settings])
        kinds = (("parameter", model.named_parameters), ("buffer", model.named_buffers))
        for kind, named in kinds:
            for name, tensor in named(remove_duplicate=False):
                path, _, leaf = name.rpartition(".")
                is_persistent = leaf not in model.get_submodule(path)._non_persistent_buffers_set
                for plain_name, plain in plain_tensors_in(name, tensor):
                    if plain.layout is not torch.strided:
                        continue
                    if plain is tensor:
                        weights.append((kind, [name], is_persistent, _index_tensor(plain, tensors)))
                    else:  # it is in a weight of a tensor subclass
                        keys = list(self._tensor_keys(model, plain_name))
                        weights.append(("plain", keys, True, _index_tensor(plain, tensors)))
        for name, tensor in plain_tensors(model).items():
            if tensor.layout is torch.strided:
                keys = list(self._tensor_keys(model, name))
                weights.append(("plain", keys, True, _index_tensor(tensor, tensors)))
        self._slots[number] = [[kind, *keys] for kind, keys, _, _ in weights]
        answer |= {"model": number, "modules": modules, "weights": weights}
        answer = self._attach_tensors(answer, tensors)
        mapped = self._memory.read(answer["tensors"], self._memory_files)
        for tensor, shared in zip(tensors, mapped, strict=True):
            if tensor.untyped_storage().nbytes() > _SHARED_WEIGHT_BYTES and not tensor.is_meta:
                tensor.data = shared.data
        return answer

    def _tensor_keys(self, model: nn.Module, name: str) -> Iterator[str]:
        """Yield the path of the module that holds a tensor, then the keys that lead to it."""
        paths = {path for path, _ in model.named_modules()}
        parts = name.split(".")
        path = next(p for n in range(len(parts), -1, -1) if (p := ".".join(parts[:n])) in paths)
        yield path
        yield from name[len(path) + 1 if path else 0 :].split(".")

    def do_device(self, request: Any) -> Any:
        """Run the device gate on all files; return its checks and warnings."""
        simulated_device()
        findings = Findings(lambda gate: None)
        layout = read_layout(self._directory)
        DeviceGate(self._files, layout, self._runner, findings, compares_calls=True).judge()
        checks = findings.checks("device")
        return {
            "checks": [[check.component, check.verdict.value, check.reason] for check in checks],
            "warnings": findings.warnings,
        }

    def do_forget(self, request: Any) -> Any:
        """Release a model."""
        del self._models[request["model"]], self._slots[request["model"]]

    def do_forward(self, request: Any) -> Any:
        """Run a model, or one of its modules, and return a recording of what it did."""
        model = self._models[request["model"]]
        tensors = request.pop("given")
        self._update_weights(model, request, tensors)
        inputs = tensors[: request["inputs"]]
        del tensors
        slots = self._slots[request["model"]]
        all_tensors = [*inputs, *filter(_is_tensor, (tensor_at(model, slot) for slot in slots))]
        is_large = sum(tensor.nbytes for tensor in all_tensors) >= _SHAPES_ONLY_BYTES
        del all_tensors
        if is_large and self._answer_from_shapes(request, model, inputs):
            return _ALREADY_ANSWERED
        return self._run_forward(request, model, inputs)

    def _answer_from_shapes(
        self, request: Any, model: nn.Module, inputs: list[torch.Tensor]
    ) -> bool:
        """Answer a forward from shapes alone, in a fork; return whether that was possible.

        The judge asks which calls are made and needs no numbers. The fork keeps fake tensors out of
        modules that store what they compute.
        """
        process = os.fork()
        if process:
            return os.waitpid(process, 0)[1] == 0
        try:
            torch.set_num_threads(1)  # The other threads do not survive a fork.
            with FakeTensorMode(allow_non_fake_inputs=True) as fake:
                for slot in self._slots[request["model"]]:
                    if _is_tensor(tensor := tensor_at(model, slot)):
                        replace_tensor(model, slot, fake.from_tensor(tensor))
                answer = self._run_forward(request, model, [fake.from_tensor(t) for t in inputs])
            self._channel.send({"ok": answer}, self._memory_files)
        except BaseException:  # Whatever failed, the forward has to run with numbers.
            os._exit(1)
        os._exit(0)

    def _run_forward(self, request: Any, root: nn.Module, inputs: list[torch.Tensor]) -> Any:
        model = root.get_submodule(request["path"])
        args, kwargs = (decode(request[name], inputs.__getitem__) for name in ("args", "kwargs"))
        if model is root and request["model"] in self._originals:
            args = fill_objects(args, self._drawn[0])
            kwargs = fill_objects(kwargs, self._drawn[1])
        slots = [tensor_at(root, slot) for slot in self._slots[request["model"]]]
        known_tensors = dict(enumerate(inputs))
        for n, tensor in enumerate(slots):
            if isinstance(tensor, torch.Tensor) and not any(
                tensor is t for t in known_tensors.values()
            ):
                known_tensors[len(inputs) + n] = tensor
        before = set(known_tensors)
        folder = self._directory / request["children"] if request["children"] else None
        components = find_components(model, folder, self._directory) if folder else {}
        first = len(inputs) + len(slots)
        recorder = CallRecorder(
            self._directory, known_tensors, first, functions=request["functions"]
        )
        root.train(request["training"])
        self._seed_generators(request)
        with (
            foreign_code(request["what"], self._directory),
            torch.set_grad_enabled(request["gradients"]),
            self._runner.default_dtype(request["what"]),
            record_components(recorder, components),
        ):
            dtype = str(torch.get_default_dtype()).removeprefix("torch.")
            with recorder.record_forward():
                output = to_plain_containers(model(*args, **kwargs))
            encoded = recorder.encode_output(output)
        rebound = []
        for n, slot in enumerate(self._slots[request["model"]]):
            current = tensor_at(root, slot)
            if current is not slots[n] and isinstance(current, torch.Tensor):
                rebound.append([n, recorder.number_tensor(current)])
        del output, args, kwargs, inputs, known_tensors, slots
        answer = {
            "items": recorder.items,
            "output": encoded,
            "dtype": dtype,
            "rebound": rebound,
            "again": recorder.value_independent,
            "kept": recorder.list_retained(before),
        }
        return self._attach_tensors(answer, recorder.new_tensors)

    def _update_weights(self, model: nn.Module, request: Any, tensors: list[torch.Tensor]) -> None:
        """Give a model the weights that changed."""
        for index, n in zip(request["slots"], request["values"], strict=True):
            slot = self._slots[request["model"]][index]
            put_tensor(model, slot, tensors[n])

    def _seed_generators(self, request: Any) -> None:
        torch.manual_seed(request["number"])
        random.seed(request["number"])
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(request["number"] % 2**32)
        state = bytearray(base64.b64decode(request["state"]))
        torch.set_rng_state(torch.frombuffer(state, dtype=torch.uint8))

    def _runner_with_seed(self, number: int) -> ForwardRunner:
        options = replace(self._runner.options, seed=number)
        return ForwardRunner(self._directory, options, dtypes=self._runner.dtypes)


def _make_component_model(module: ModuleType, name: str) -> Any:
    """Return a model of a component, or of a parent that is composed of components."""
    names = vars(module)
    arguments = None if name == "ComposedModel" else names.get("get_init_inputs")
    with RepeatedDraws():
        return make_model(names[name], arguments)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _index_tensor(tensor: torch.Tensor, known_tensors: list[torch.Tensor]) -> int:
    for n, candidate in enumerate(known_tensors):
        if candidate is tensor:
            return n
    known_tensors.append(tensor)
    return len(known_tensors) - 1


def _refuse_tensor(tensor: torch.Tensor) -> Any:
    raise NotToldError("Tensor")
