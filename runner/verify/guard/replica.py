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

from runner.torch_internals import DisableTorchFunction, find_operator, without_modes
from runner.verify.guard.call_recording import public_functions
from runner.verify.guard.claims import check_program
from runner.verify.guard.wire_format import ConnectionLostError, decode, encode
from runner.verify.guard.worker_client import Apart, reading
from runner.verify.loading_files import CannotJudge
from runner.verify.runtime.operation_watch import Watch

_REFUSED = frozenset(
    {
        *("from_file", "record_stream", "_print", "set_data"),
        *("_sparse_coo_tensor_unsafe", "_sparse_compressed_tensor_unsafe"),
        *("_sparse_csr_tensor_unsafe", "_sparse_csc_tensor_unsafe", "_sparse_bsr_tensor_unsafe"),
        "_sparse_bsc_tensor_unsafe",
    }
)
_NO_COMPUTING = frozenset(
    {"profiler", "c10d", "_c10d_functional", "symm_mem", "debugprims", "debug_mode_ops", "_test"}
)
"""Namespaces of operators that do something else than compute, such as profiling."""


class Link:
    """Data of a replica's module; it has no __dict__, so that the gates do not search it."""

    __slots__ = ("file", "model", "own_forward", "path")

    def __init__(self, model: "Model", path: str, file: str | None, own_forward: bool) -> None:
        self.model, self.path = model, path
        self.file = file
        """File of the directory that defines the module's class, as the worker claims, or None."""
        self.own_forward = own_forward


class Replica(nn.Module):
    """The judge's counterpart of one module of a model that a worker runs."""

    kdrun_link: Link

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the worker's module does."""
        player = self.kdrun_link.model.player
        if player is not None:
            return player.inside(args, kwargs)
        return self.kdrun_link.model.run(self, args, kwargs)


class Model:
    """A model that a worker runs, and its replica here."""

    __slots__ = (
        *("_again", "_apart", "_kept", "_known", "_number"),
        *("_root", "_shared", "children", "cls", "functions", "last", "player", "slots", "what"),
    )

    def __init__(
        self,
        apart: Apart,
        number: int,
        what: str,
        cls: str,
        *,
        children: str | None,
        functions: bool,
        known: dict[str, Any],
    ) -> None:
        """`cls`: the name of the model's class in its file; empty if it was loaded from a text.

        `children`: the folder whose files are components in the model. `functions`: see
        CallRecorder. `programs`: recorded programs of models of the same class that do not depend
        on values.
        """
        self._apart, self.what, self.children = apart, what, children
        self.cls, self.functions = cls, functions
        self.last: tuple[Any, list[torch.Tensor], dict[int, torch.Tensor]] | None = None
        """The program that ran last, its inputs, and its weights by their numbers in it."""
        self.player: Player | None = None
        self._number = number
        self._again = known
        self._shared: dict[int, tuple[int, torch.Tensor | None]] = {}
        """Maps a plain attribute's slot to the slot of the weight in it, and to the tensor there.

        nn.LSTM, for example, has its weights in a list as well.
        """
        self._kept: list[torch.Tensor] = []
        self._known: dict[int, tuple[int, int, int]] = {}
        """Maps a slot to the tensor that the worker has: its id(), address and version."""

    def built(self, described: Any, held: list[torch.Tensor]) -> Replica:
        """Return the replica that a worker describes; CannotJudge if it describes no model.

        The replica refers to this object. This object refers to it only weakly.
        """
        with reading(self.what):
            return self._built(described, held)

    def _built(self, described: Any, held: list[torch.Tensor]) -> Replica:
        modules: dict[str, Replica] = {}
        for path, first, file, own_forward in described["modules"]:
            if path != first:
                modules[path] = modules[first]
            else:
                modules[path] = replica = Replica()
                replica.kdrun_link = Link(self, path, file, own_forward)
            if path:
                above, _, name = path.rpartition(".")
                setattr(modules[above], name, modules[path])
        self.slots = [[kind, *keys] for kind, keys, _, _ in described["weights"]]
        for (kind, *keys), (_, _, stays, n) in zip(self.slots, described["weights"], strict=True):
            _place(modules, kind, keys, held[n], stays)
        root = modules[""]
        self._root = weakref.ref(root)
        numbers = [n for _, _, _, n in described["weights"]]
        self._shared = {
            slot: (numbers.index(n), _at(root, self.slots[slot]))
            for slot, n in enumerate(numbers)
            if self.slots[slot][0] == "plain" and self.slots[numbers.index(n)][0] != "plain"
        }
        return root

    def __del__(self) -> None:
        self._apart.forget(self._number)

    @property
    def root(self) -> Replica:
        """The root module of the replica."""
        root = self._root()
        assert root is not None
        return root

    @property
    def reads_values(self) -> bool:
        """Whether the program that ran last may be another one for other values."""
        return self.last is not None and not self.last[0]["again"]

    def asks_for(self, operation: str) -> bool:
        """Return whether the program that ran last has a call whose name contains `operation`."""
        items = self.last[0]["items"] if self.last is not None else []
        return any(operation in item[1] for item in items if item[0] in {"operation", "function"})

    def tensors(self) -> list[torch.Tensor | None]:
        """Return the model's weights and other tensors, in the order of `slots`."""
        found = [_at(self.root, slot) for slot in self.slots]
        for slot, (registered, tensor) in self._shared.items():
            if found[slot] is tensor:
                found[slot] = found[registered]
        return found

    def run(self, module: Replica, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what the worker's module does."""
        with without_modes(), DisableTorchFunction():
            inputs: list[torch.Tensor] = []
            told = [encode(given, lambda t: _index(t, inputs)) for given in (args, kwargs)]
            weights = self.tensors()
            program = self._program(module.kdrun_link.path, told, inputs, weights)
            env = dict(enumerate(inputs))
            for n, tensor in enumerate(weights):
                if tensor is not None:
                    env[len(inputs) + n] = tensor
            own = {id(t): n for n, t in env.items() if n < len(inputs)}
            for n in range(len(weights)):
                tensor = env.get(len(inputs) + n)
                if tensor is not None and id(tensor) in own:
                    env[own[id(tensor)]] = tensor
        self.last = program, inputs, {n: t for n, t in env.items() if n >= len(inputs)}
        self.player = Player(module, program, env)
        before = torch.get_default_dtype()
        try:
            torch.set_default_dtype(vars(torch)[program["dtype"]])
            output = self.player.whole()
        except (ConnectionLostError, LookupError, TypeError) as error:
            raise CannotJudge(f"what it does cannot be done again: {error}") from error
        finally:
            torch.set_default_dtype(before)
            env, self.player = self.player.env, None
        for n, number in program["rebound"]:
            _rebind(self.root, self.slots[n], env[number])
        self._kept = [env[number] for number in program["kept"] if number in env]
        return output

    def _program(
        self,
        path: str,
        told: list[Any],
        inputs: list[torch.Tensor],
        weights: list[torch.Tensor | None],
    ) -> Any:
        looks = [(tuple(t.shape), tuple(t.stride()), t.dtype, t.requires_grad) for t in inputs]
        mode = self.root.training, torch.is_grad_enabled()
        first: dict[int, int] = {}
        tied = [first.setdefault(id(tensor), n) for n, tensor in enumerate(weights)]
        key = repr((path, told, looks, mode, tied))
        if key in self._again:
            return self._again[key]
        changed = [
            n
            for n, t in enumerate(weights)
            if t is not None and self._known.get(n) != (id(t), t.data_ptr(), t._version)
        ]
        sent = list(inputs)
        values = [_index(weights[n], sent) for n in changed]  # type: ignore[arg-type]
        program, given = self._apart.ask(
            {
                "do": "forward",
                "what": self.what,
                "model": self._number,
                "path": path,
                "inputs": len(inputs),
                "args": told[0],
                "kwargs": told[1],
                "slots": changed,
                "values": values,
                "children": self.children,
                "functions": self.functions,
                "training": self.root.training,
                "gradients": torch.is_grad_enabled(),
                "number": torch.initial_seed(),
                "state": base64.b64encode(torch.get_rng_state().numpy().tobytes()).decode(),
            },
            sent,
        )
        with reading(self.what):
            check_program(program)
        for n in changed:
            tensor = weights[n]
            assert tensor is not None
            self._known[n] = id(tensor), tensor.data_ptr(), tensor._version
        program["given"] = given
        if program["again"] and not given and not program["rebound"]:
            self._again[key] = program
        return program


class Player:
    """Replays the recorded items of a worker's forward on the judge's tensors."""

    def __init__(self, root: Replica, program: Any, env: dict[int, torch.Tensor]) -> None:
        self._root, self._items, self._program = root, program["items"], program
        self.env = env
        self._at = 0

    def whole(self) -> Any:
        """Replay all items and return the forward's result."""
        try:
            self._play()
            if self._at < len(self._items):
                raise ConnectionLostError("it ends before it has ended")
            return decode(self._program["output"], self._tensor)
        finally:
            Watch.place, Watch.calls = None, ()

    def inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Replay a component's items on other arguments than the worker's; return its result."""
        item = self._items[self._at - 1]
        before = self.env
        others: dict[int, torch.Tensor] = {}
        for told, given in ((item[2], args), (item[3], kwargs)):
            _bind(told, given, others)
        if any(before.get(number) is not tensor for number, tensor in others.items()):
            self.env = {**before, **others}
        try:
            self._play()
            return decode(self._items[self._at - 1][1], self._tensor)
        finally:
            self.env = before

    def _play(self) -> None:
        """Replay items until the current component is left, or to the end."""
        while self._at < len(self._items):
            item = self._items[self._at]
            self._at += 1
            match item[0]:
                case "leave":
                    return
                case "enter":
                    self._call(item)
                case "gone":
                    for number in item[1]:
                        self.env.pop(number, None)
                case "alias" | "given":
                    with without_modes(), DisableTorchFunction():
                        self.env[item[1]] = self._shown(item)
                case "operation" | "function":
                    self._do(called(item), item)
                case other:
                    raise ConnectionLostError(f"no item {other!r}")

    def _do(self, function: Any, item: list[Any]) -> None:
        _, _, args, kwargs, shown, where, *calls = item
        given = decode(args, self._tensor), decode(kwargs, self._tensor)
        # The operator does not check its arguments; as_strided does.
        if item[1].startswith("aten::_reshape_alias"):
            torch.as_strided(given[0][0], *given[0][1:3])
        Watch.place, Watch.calls = where, tuple(calls[0]) if calls else ()
        result = function(*given[0], **given[1])
        if shown is not None:
            _bind(shown, result, self.env)

    def _call(self, item: list[Any]) -> None:
        _, path, args, kwargs = item
        module = self._root.get_submodule(path)
        given = decode(args, self._tensor), decode(kwargs, self._tensor)
        after = _matching(self._items, self._at)
        output = module(*given[0], **given[1])
        self._at = after + 1
        _bind(self._items[after][1], output, self.env)

    def _shown(self, item: list[Any]) -> torch.Tensor:
        if item[0] == "given":
            given: torch.Tensor = self._program["given"][item[2]]
            return given
        _, _, base, shape, stride, offset, dtype, conj, neg = item
        storage = self._tensor(base).untyped_storage()
        bare = torch.empty(0, dtype=vars(torch)[dtype], device=storage.device)
        shown = bare.set_(storage, offset, shape, stride)
        shown = shown.conj() if conj else shown
        return torch.ops.aten._neg_view(shown) if neg else shown

    def _tensor(self, number: int) -> torch.Tensor:
        try:
            return self.env[number]
        except KeyError:
            raise ConnectionLostError("it names a tensor that is not there") from None


def _matching(items: list[list[Any]], at: int) -> int:
    """Return the index of the item that leaves the component that was just entered."""
    depth = 1
    for n in range(at, len(items)):
        depth += {"enter": 1, "leave": -1}.get(items[n][0], 0)
        if not depth:
            return n
    raise ConnectionLostError("a call has no end")


def called(item: list[Any]) -> Any:
    """Return the torch function or operator that an item names.

    An operator may also belong to a package that is imported here. ConnectionLostError if the name
    is unknown or the operator is refused.
    """
    name: str = item[1]
    if item[0] == "function":
        found: Any = public_functions().get(name)
    else:
        namespace, _, rest = name.partition("::")
        refused = namespace in _NO_COMPUTING or rest.partition(".")[0] in _REFUSED
        found = None if refused else find_operator(name)
    if found is None:
        raise ConnectionLostError(f"{name} is no function of torch")
    return found


def _bind(told: Any, value: Any, env: dict[int, torch.Tensor]) -> None:
    """Store the tensors of a value in `env` under the numbers that they have in the recording."""
    if isinstance(told, list):
        for one, item in zip(told, _items(value), strict=True):
            _bind(one, item, env)
    elif isinstance(told, dict):
        ((kind, inner),) = told.items()
        if kind == "t":
            if not isinstance(value, torch.Tensor):
                raise ConnectionLostError("it gives something else here")
            env[inner] = value
        elif kind == "u":
            _bind(inner, value, env)
        elif kind == "d":
            for (_, one), item in zip(inner, _items(value), strict=True):
                _bind(one, item, env)


def _items(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, tuple | list):
        return value
    raise ConnectionLostError("it gives something else here")


def _index(tensor: torch.Tensor, found: list[torch.Tensor]) -> int:
    for n, other in enumerate(found):
        if other is tensor:
            return n
    found.append(tensor)
    return len(found) - 1


def _place(
    modules: dict[str, Replica], kind: str, keys: list[str], tensor: torch.Tensor, stays: bool
) -> None:
    if kind == "plain":
        path, first, *more = keys
        holder = vars(modules[path])
        for key in (first, *more)[:-1]:
            holder = holder.setdefault(key, {})
        holder[(first, *more)[-1]] = tensor
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
        if not stays:
            module._non_persistent_buffers_set.add(leaf)


def _at(root: Replica, slot: list[str]) -> torch.Tensor | None:
    kind, name, *keys = slot
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        module = root.get_submodule(path)
        found = module._parameters.get(leaf)
        return found if found is not None else module._buffers.get(leaf)
    holder: Any = vars(root.get_submodule(name))
    for key in keys:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder if isinstance(holder, torch.Tensor) else None


def _rebind(root: Replica, slot: list[str], tensor: torch.Tensor) -> None:
    kind, name, *keys = slot
    if kind != "plain":
        path, _, leaf = name.rpartition(".")
        module = root.get_submodule(path)
        held: dict[str, Any] = module._buffers
        if leaf in module._parameters:
            held = module._parameters
        held[leaf] = tensor
        return
    holder: Any = vars(root.get_submodule(name))
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = tensor
