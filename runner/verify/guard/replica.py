"""Replays, in the judge's process, the forwards of a model that a worker runs.

A replica has the model's weights. Its forward asks the worker which torch calls the model makes
with these inputs and weights, and makes the same calls. No code of the file that defines the model
runs in this process.
"""

import base64
import weakref
from typing import Any

import torch
from torch import nn

from runner.problems import find_operator_module
from runner.torch_internals import (
    DisableTorchFunction,
    find_operator,
    schema,
    storage_of,
    without_modes,
)
from runner.verify.guard.call_recording import public_functions
from runner.verify.guard.claims import check_program
from runner.verify.guard.wire_format import ConnectionLostError, decode, encode
from runner.verify.guard.worker_client import WorkerClient, refuse_unreadable
from runner.verify.loading_files import CannotJudge
from runner.verify.runtime.operation_watch import Watch

_REFUSED_OPERATORS = frozenset(
    {
        *("from_file", "record_stream", "_print", "set_data"),
        *("_sparse_coo_tensor_unsafe", "_sparse_compressed_tensor_unsafe"),
        *("_sparse_csr_tensor_unsafe", "_sparse_csc_tensor_unsafe", "_sparse_bsr_tensor_unsafe"),
        "_sparse_bsc_tensor_unsafe",
    }
)
_LINK = "kdrun_link"
_REFUSED_NAMESPACES = frozenset(
    {"profiler", "c10d", "_c10d_functional", "symm_mem", "debugprims", "debug_mode_ops", "_test"}
)
"""Namespaces of operators that do something else than compute, such as profiling."""


class Link:
    """Data of a replica's module; it has no __dict__, so that the gates do not search it."""

    __slots__ = ("file", "model", "own_forward", "path", "settings")

    def __init__(
        self,
        model: "WorkerModel",
        path: str,
        file: str | None,
        own_forward: bool,
        settings: list[list[str]],
    ) -> None:
        self.model, self.path = model, path
        self.file = file
        """File of the directory that defines the module's class, as the worker claims, or None."""
        self.own_forward = own_forward
        self.settings = settings
        """Path and text of each value that sets what the module computes, as the worker claims."""


class Replica(nn.Module):
    """The judge's counterpart of one module of a model that a worker runs."""

    kdrun_link: Link

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the worker's module does."""
        player = self.kdrun_link.model.player
        if player is not None:
            return player.replay_component(args, kwargs)
        return self.kdrun_link.model.run(self, args, kwargs)


class WorkerModel:
    """A model that a worker runs, and its replica here."""

    __slots__ = (
        *("_aliases", "_client", "_number", "_programs", "_retained"),
        *(
            "_root",
            "_sent_versions",
            "children",
            "cls",
            "functions",
            "last_run",
            "player",
            "slots",
            "subject",
        ),
    )

    def __init__(
        self,
        client: WorkerClient,
        number: int,
        subject: str,
        cls: str,
        *,
        children: str | None,
        functions: bool,
        programs: dict[str, Any],
    ) -> None:
        """`cls`: the name of the model's class in its file; empty if it was loaded from a text.

        `children`: the folder whose files are components in the model. `functions`: see
        CallRecorder. `programs`: recorded programs of models of the same class that do not depend
        on values.
        """
        self._client, self.subject, self.children = client, subject, children
        self.cls, self.functions = cls, functions
        self.last_run: tuple[Any, list[torch.Tensor], dict[int, torch.Tensor]] | None = None
        """The program that ran last, its inputs, and its weights by their numbers in it."""
        self.player: Player | None = None
        self._number = number
        self._programs = programs
        self._aliases: dict[int, tuple[int, torch.Tensor | None]] = {}
        """Maps a plain attribute's slot to the slot of the weight in it, and to the tensor there.

        nn.LSTM, for example, has its weights in a list as well.
        """
        self._retained: list[torch.Tensor] = []
        self._sent_versions: dict[int, tuple[int, int, int]] = {}
        """Maps a slot to the tensor that the worker has: its id(), address and version."""

    def build_replica(self, description: Any, tensors: list[torch.Tensor]) -> Replica:
        """Return the replica that a worker describes; CannotJudge if it describes no model.

        The replica refers to this object. This object refers to it only weakly.
        """
        with refuse_unreadable(self.subject):
            return self._build_replica(description, tensors)

    def _build_replica(self, description: Any, tensors: list[torch.Tensor]) -> Replica:
        modules: dict[str, Replica] = {}
        for path, first, file, own_forward, settings in description["modules"]:
            if path != first:
                modules[path] = modules[first]
            else:
                modules[path] = replica = Replica()
                replica.kdrun_link = Link(self, path, file, own_forward, settings)
            if path:
                parent, _, name = path.rpartition(".")
                if name == _LINK:
                    raise CannotJudge(f"{self.subject}: a module is called {_LINK}: rename it")
                setattr(modules[parent], name, modules[path])
        self.slots = [[kind, *keys] for kind, keys, _, _ in description["weights"]]
        for (kind, *keys), (_, _, is_persistent, n) in zip(
            self.slots, description["weights"], strict=True
        ):
            _place_tensor(modules, kind, keys, tensors[n], is_persistent)
        root = modules[""]
        self._root = weakref.ref(root)
        numbers = [n for _, _, _, n in description["weights"]]
        self._aliases = {
            slot: (numbers.index(n), _tensor_at(root, self.slots[slot]))
            for slot, n in enumerate(numbers)
            if self.slots[slot][0] == "plain" and self.slots[numbers.index(n)][0] != "plain"
        }
        return root

    def __del__(self) -> None:
        self._client.release_model(self._number)

    @property
    def root(self) -> Replica:
        """The root module of the replica."""
        root = self._root()
        assert root is not None
        return root

    @property
    def reads_values(self) -> bool:
        """Whether the program that ran last may be another one for other values."""
        return self.last_run is not None and not self.last_run[0]["again"]

    def called_names(self) -> list[str]:
        """Return the names of the functions and operations in the program that ran last."""
        items = self.last_run[0]["items"] if self.last_run is not None else []
        return [item[1] for item in items if item[0] in {"operation", "function"}]

    def tensors(self) -> list[torch.Tensor | None]:
        """Return the model's weights and other tensors, in the order of `slots`."""
        slot_tensors = [_tensor_at(self.root, slot) for slot in self.slots]
        for slot, (registered, tensor) in self._aliases.items():
            if slot_tensors[slot] is tensor:
                slot_tensors[slot] = slot_tensors[registered]
        return slot_tensors

    def run(self, module: Replica, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what the worker's module does."""
        with without_modes(), DisableTorchFunction():
            inputs: list[torch.Tensor] = []
            encoded = [
                encode(arguments, lambda t: _index_tensor(t, inputs))
                for arguments in (args, kwargs)
            ]
            weights = self.tensors()
            program = self._get_program(module.kdrun_link.path, encoded, inputs, weights)
            env = dict(enumerate(inputs))
            for n, tensor in enumerate(weights):
                if tensor is not None:
                    env[len(inputs) + n] = tensor
            input_numbers = {id(t): n for n, t in env.items() if n < len(inputs)}
            for n in range(len(weights)):
                tensor = env.get(len(inputs) + n)
                if tensor is not None and id(tensor) in input_numbers:
                    env[input_numbers[id(tensor)]] = tensor
        self.last_run = program, inputs, {n: t for n, t in env.items() if n >= len(inputs)}
        self.player = Player(module, program, env)
        default_dtype = torch.get_default_dtype()
        try:
            torch.set_default_dtype(vars(torch)[program["dtype"]])
            Watch.given = frozenset(map(storage_of, program["given"]))
            Watch.depends_on_values = not program["again"]
            output = self.player.replay_forward()
        except (ConnectionLostError, LookupError, TypeError) as error:
            raise CannotJudge(f"what it does cannot be done again: {error}") from error
        finally:
            Watch.given, Watch.depends_on_values = frozenset(), False
            torch.set_default_dtype(default_dtype)
            env, self.player = self.player.env, None
        for n, number in program["rebound"]:
            _rebind_tensor(self.root, self.slots[n], env[number])
        self._retained = [env[number] for number in program["kept"] if number in env]
        return output

    def _get_program(
        self,
        path: str,
        encoded: list[Any],
        inputs: list[torch.Tensor],
        weights: list[torch.Tensor | None],
    ) -> Any:
        input_forms = [
            (tuple(t.shape), tuple(t.stride()), t.dtype, t.requires_grad) for t in inputs
        ]
        mode = self.root.training, torch.is_grad_enabled()
        first: dict[int, int] = {}
        tie_indices = [first.setdefault(id(tensor), n) for n, tensor in enumerate(weights)]
        key = repr((path, encoded, input_forms, mode, tie_indices))
        if key in self._programs:
            return self._programs[key]
        changed = [
            n
            for n, t in enumerate(weights)
            if t is not None and self._sent_versions.get(n) != (id(t), t.data_ptr(), t._version)
        ]
        request_tensors = list(inputs)
        values = [_index_tensor(weights[n], request_tensors) for n in changed]  # type: ignore[arg-type]
        program, answer_tensors = self._client.ask(
            {
                "do": "forward",
                "what": self.subject,
                "model": self._number,
                "path": path,
                "inputs": len(inputs),
                "args": encoded[0],
                "kwargs": encoded[1],
                "slots": changed,
                "values": values,
                "children": self.children,
                "functions": self.functions,
                "training": self.root.training,
                "gradients": torch.is_grad_enabled(),
                "number": torch.initial_seed(),
                "state": base64.b64encode(torch.get_rng_state().numpy().tobytes()).decode(),
            },
            request_tensors,
        )
        with refuse_unreadable(self.subject):
            check_program(program)
        for n in changed:
            tensor = weights[n]
            assert tensor is not None
            self._sent_versions[n] = id(tensor), tensor.data_ptr(), tensor._version
        program["given"] = answer_tensors
        if program["again"] and not answer_tensors and not program["rebound"]:
            self._programs[key] = program
        return program


class Player:
    """Replays the recorded items of a worker's forward on the judge's tensors."""

    def __init__(self, root: Replica, program: Any, env: dict[int, torch.Tensor]) -> None:
        self._root, self._items, self._program = root, program["items"], program
        self.env = env
        self._position = 0

    def replay_forward(self) -> Any:
        """Replay all items and return the forward's result."""
        try:
            self._replay_items()
            if self._position < len(self._items):
                raise ConnectionLostError("it ends before it has ended")
            return decode(self._program["output"], self._find_tensor)
        finally:
            Watch.place, Watch.calls = None, ()

    def replay_component(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Replay a component's items on other arguments than the worker's; return its result."""
        item = self._items[self._position - 1]
        outer_env = self.env
        arguments: dict[int, torch.Tensor] = {}
        for encoded, values in ((item[2], args), (item[3], kwargs)):
            _bind_tensors(encoded, values, arguments)
        if any(outer_env.get(number) is not tensor for number, tensor in arguments.items()):
            self.env = {**outer_env, **arguments}
        try:
            self._replay_items()
            return decode(self._items[self._position - 1][1], self._find_tensor)
        finally:
            self.env = outer_env

    def _replay_items(self) -> None:
        """Replay items until the current component is left, or to the end."""
        while self._position < len(self._items):
            item = self._items[self._position]
            self._position += 1
            match item[0]:
                case "leave":
                    return
                case "enter":
                    self._call_component(item)
                case "gone":
                    for number in item[1]:
                        self.env.pop(number, None)
                case "alias" | "given":
                    with without_modes(), DisableTorchFunction():
                        self.env[item[1]] = self._make_tensor(item)
                case "operation" | "function":
                    self._run_operation(resolve_function(item), item)
                case kind:
                    raise ConnectionLostError(f"no item {kind!r}")

    def _run_operation(self, function: Any, item: list[Any]) -> None:
        _, _, args, kwargs, result_numbers, line, *calls = item
        arguments = decode(args, self._find_tensor), decode(kwargs, self._find_tensor)
        # The operator does not check its arguments; as_strided does.
        if item[1].startswith("aten::_reshape_alias"):
            torch.as_strided(arguments[0][0], *arguments[0][1:3])
        Watch.place, Watch.calls = line, tuple(calls[0]) if calls else ()
        result = function(*arguments[0], **arguments[1])
        if result_numbers is not None:
            _bind_tensors(result_numbers, result, self.env)

    def _call_component(self, item: list[Any]) -> None:
        _, path, args, kwargs = item
        module = self._root.get_submodule(path)
        arguments = decode(args, self._find_tensor), decode(kwargs, self._find_tensor)
        end = _find_end(self._items, self._position)
        output = module(*arguments[0], **arguments[1])
        self._position = end + 1
        _bind_tensors(self._items[end][1], output, self.env)

    def _make_tensor(self, item: list[Any]) -> torch.Tensor:
        if item[0] == "given":
            tensor: torch.Tensor = self._program["given"][item[2]]
            return tensor
        _, _, base, shape, stride, offset, dtype, conj, neg = item
        storage = self._find_tensor(base).untyped_storage()
        bare = torch.empty(0, dtype=vars(torch)[dtype], device=storage.device)
        view = bare.set_(storage, offset, shape, stride)
        view = view.conj() if conj else view
        return torch.ops.aten._neg_view(view) if neg else view

    def _find_tensor(self, number: int) -> torch.Tensor:
        try:
            return self.env[number]
        except KeyError:
            raise ConnectionLostError("it names a tensor that is not there") from None


def _find_end(items: list[list[Any]], start: int) -> int:
    """Return the index of the item that leaves the component that was just entered."""
    depth = 1
    for n in range(start, len(items)):
        depth += {"enter": 1, "leave": -1}.get(items[n][0], 0)
        if not depth:
            return n
    raise ConnectionLostError("a call has no end")


def resolve_function(item: list[Any]) -> Any:
    """Return the torch function or operator that an item names.

    An operator may also belong to a package that is imported here. ConnectionLostError if the name
    is unknown or the operator is refused.
    """
    name: str = item[1]
    if item[0] == "function":
        function: Any = public_functions().get(name)
    else:
        namespace, _, operator = name.partition("::")
        is_refused = (
            namespace in _REFUSED_NAMESPACES or operator.partition(".")[0] in _REFUSED_OPERATORS
        )
        function = None if is_refused else find_operator(name)
        if function and find_operator_module(namespace) != "torch" and _takes_text(function):
            function = None  # Such as torchvision's operator that writes a file.
    if function is None:
        raise ConnectionLostError(f"{name} is no function of torch")
    return function


def _takes_text(operator: Any) -> bool:
    return any("str" in str(argument.type) for argument in schema(operator).arguments)


def _bind_tensors(encoded: Any, value: Any, env: dict[int, torch.Tensor]) -> None:
    """Store the tensors of a value in `env` under the numbers that they have in the recording."""
    if isinstance(encoded, list):
        for part, item in zip(encoded, _list_items(value), strict=True):
            _bind_tensors(part, item, env)
    elif isinstance(encoded, dict):
        ((kind, inner),) = encoded.items()
        if kind == "t":
            if not isinstance(value, torch.Tensor):
                raise ConnectionLostError("it gives something else here")
            env[inner] = value
        elif kind == "u":
            _bind_tensors(inner, value, env)
        elif kind == "d":
            for (_, part), item in zip(inner, _list_items(value), strict=True):
                _bind_tensors(part, item, env)


def _list_items(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, tuple | list):
        return value
    raise ConnectionLostError("it gives something else here")


def _index_tensor(tensor: torch.Tensor, known_tensors: list[torch.Tensor]) -> int:
    for n, candidate in enumerate(known_tensors):
        if candidate is tensor:
            return n
    known_tensors.append(tensor)
    return len(known_tensors) - 1


def _place_tensor(
    modules: dict[str, Replica],
    kind: str,
    keys: list[str],
    tensor: torch.Tensor,
    is_persistent: bool,
) -> None:
    if kind == "plain":
        path, first, *inner_keys = keys
        holder = vars(modules[path])
        for key in (first, *inner_keys)[:-1]:
            holder = holder.setdefault(key, {})
        holder[(first, *inner_keys)[-1]] = tensor
        return
    path, _, leaf = keys[0].rpartition(".")
    module = modules[path]
    if kind == "parameter":
        module._parameters[leaf] = (
            nn.Parameter(tensor, tensor.requires_grad)
            if not isinstance(tensor, nn.Parameter)
            else tensor
        )
    else:
        module._buffers[leaf] = tensor
        if not is_persistent:
            module._non_persistent_buffers_set.add(leaf)


def _tensor_at(root: Replica, slot: list[str]) -> torch.Tensor | None:
    kind, name, *keys = slot
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        module = root.get_submodule(path)
        parameter = module._parameters.get(leaf)
        return parameter if parameter is not None else module._buffers.get(leaf)
    holder: Any = vars(root.get_submodule(name))
    for key in keys:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder if isinstance(holder, torch.Tensor) else None


def _rebind_tensor(root: Replica, slot: list[str], tensor: torch.Tensor) -> None:
    kind, name, *keys = slot
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        module = root.get_submodule(path)
        registry: dict[str, Any] = module._buffers
        if leaf in module._parameters:
            registry = module._parameters
        registry[leaf] = tensor
        return
    holder: Any = vars(root.get_submodule(name))
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = tensor
