"""A device for torch, "accel", that keeps its tensors in the machine's memory and asks the CPU to
compute.

torch loads this module as it loads any vendor's backend, where its folder is on PYTHONPATH. Tensors
on the device have storages, views, versions and gradients as a GPU's have; an operation on tensors
of the device and of the CPU raises; random numbers come from a generator of the device's own. torch
lets no backend in Python have streams, timed events or `torch.Generator(device="accel")`.
"""

import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import backend_registration
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

MEMORY_BYTES = 128 << 20
"""All memory of the device."""
_ON_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
"""Where a kernel is looked up that touches no values: it keeps the device of what it is given."""
_KEEPS_VALUES = {"aten::set_", "aten::as_strided_"}
"""Operations besides views that touch no values."""
_TAKES_CPU_TENSORS = {"aten::_copy_from", "aten::index", "aten::_index_put_impl_"}
"""Operations that a GPU, too, allows tensors of the CPU for: a copy, and indices."""


class Backend:
    """The module `torch.accel`: one device, its memory, and its random number generator."""

    def __init__(self) -> None:
        self.generator = torch.Generator()
        self.host: dict[int, torch.UntypedStorage] = {}
        """The host memory behind each storage of the device, by the storage's address."""
        self.allocated_bytes = self.peak_bytes = 0

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def get_device_name(self, device: Any = None) -> str:
        return "simulated accelerator"

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def synchronize(self, device: Any = None) -> None:
        """Return at once: every operation has ended when its call returns."""

    def manual_seed_all(self, seed: int) -> None:
        self.generator.manual_seed(seed)

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return self.generator.get_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        self.generator.set_state(state)

    def memory_allocated(self, device: Any = None) -> int:
        return self.allocated_bytes

    def max_memory_allocated(self, device: Any = None) -> int:
        return self.peak_bytes

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        return MEMORY_BYTES - self.allocated_bytes, MEMORY_BYTES

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        self.peak_bytes = self.allocated_bytes

    def keep(self, storage: torch.UntypedStorage, host: torch.UntypedStorage) -> None:
        """Keep a storage's host memory for as long as the storage lives."""
        if self.allocated_bytes + storage.nbytes() > MEMORY_BYTES:
            raise torch.OutOfMemoryError(f"accel out of memory. It has {MEMORY_BYTES >> 20} MiB.")
        self.host[storage._cdata] = host
        self.allocated_bytes += storage.nbytes()
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())

    def _free(self, key: int, nbytes: int) -> None:
        del self.host[key]
        self.allocated_bytes -= nbytes

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Let the CPU's generator stand where the device's stands, and put it back at the end."""
        before = torch.get_rng_state()
        torch.set_rng_state(self.generator.get_state())
        try:
            yield
        finally:
            self.generator.set_state(torch.get_rng_state())
            torch.set_rng_state(before)


_backend = Backend()
_library: list[torch.library.Library] = []
"""A library's registrations end with it."""


def register() -> None:
    """Make the device known to torch; `import torch` calls it."""
    backend_registration._setup_privateuseone_for_python_backend("accel", _backend)
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(_compute, "PrivateUse1")
    aten = torch.library.Library("aten", "IMPL")
    aten.impl("convolution_overrideable", _convolution, "PrivateUse1")
    aten.impl("convolution_backward_overrideable", _convolution_backward, "PrivateUse1")
    aten.impl("_thnn_fused_lstm_cell", _lstm_cell, "PrivateUse1")
    aten.impl("_thnn_fused_gru_cell", _gru_cell, "PrivateUse1")
    # `torch.tensor(numbers, device="accel")` finds no fallback while a dispatch mode is on.
    for op in (torch.ops.aten.empty_strided.default, torch.ops.aten._copy_from.default):
        aten.impl(op, functools.partial(_compute, op), "PrivateUse1")
    _library.extend((fallback, aten))
    # Else `Module.to` unties weights here; it swaps them by itself only for devices that it lists.
    torch.__future__.set_swap_module_params_on_conversion(True)


def _compute(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operation on the CPU, in the memory behind its arguments, and move its result here."""
    name = op._schema.name
    if op.is_view or name in _KEEPS_VALUES:
        return op.redispatch(_ON_CPU, *args, **kwargs)
    given, nesting = tree_flatten((args, kwargs))
    _refuse_other_places(name, given)
    moved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    placed = []
    for value in given:
        if isinstance(value, torch.Tensor) and _is_here(value):
            moved[id(value)] = moved.get(id(value)) or (_host(value), value)
            value = moved[id(value)][0]
        elif isinstance(value, torch.device) and value.type == "accel":
            value = torch.device("cpu")
        placed.append(value)
    on_cpu, keywords = tree_unflatten(placed, nesting)
    if name == "aten::_copy_from":
        on_cpu[1].copy_(on_cpu[0])
        return args[1]
    if torch.Tag.nondeterministic_seeded in op.tags:
        with _backend.drawing():
            result = op(*on_cpu, **keywords)
    else:
        result = op(*on_cpu, **keywords)
    if op._schema.is_mutable:
        for host, tensor in moved.values():
            _follow(tensor, host)
    if "cpu" in {d.type for d in given if isinstance(d, torch.device)}:
        return result
    return tree_map_only(torch.Tensor, lambda t: _placed(t, list(moved.values())), result)


def _refuse_other_places(name: str, given: list[Any]) -> None:
    """Raise where a tensor with dimensions is on the CPU, or a generator is the CPU's."""
    if any(isinstance(value, torch.Generator) for value in given):
        raise RuntimeError("Expected a 'accel' device type for generator but found 'cpu'")
    tensors = [value for value in given if isinstance(value, torch.Tensor)]
    elsewhere = [t for t in tensors if not _is_here(t) and t.dim()]
    if elsewhere and len(elsewhere) < len(tensors) and name not in _TAKES_CPU_TENSORS:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"accel:0 and {elsewhere[0].device}! ({name})"
        )


def _is_here(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "accel"


def _host(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the CPU with the same memory."""
    memory = _backend.host.get(tensor.untyped_storage()._cdata)
    host = torch.empty(0, dtype=tensor.dtype)
    if memory is None:  # `create_empty_tensor` gave it none
        return host.new_empty(tensor.shape)
    host.set_(memory, tensor.storage_offset(), tensor.shape, tensor.stride())
    return host.conj() if tensor.is_conj() else host


def _placed(host: torch.Tensor, moved: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Return the device's tensor for one of the CPU: an argument, a view of one, or another."""
    for argument, tensor in moved:
        if host is argument:
            return tensor
    tensor = torch._C._acc.create_empty_tensor((0,), host.dtype)
    memory = host.untyped_storage()
    shared = (t.untyped_storage() for h, t in moved if h.untyped_storage()._cdata == memory._cdata)
    return _set(tensor, next(shared, None) or _storage(memory), host)


def _follow(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Give a tensor the shape and memory that an operation in place gave its host tensor."""
    memory, storage = host.untyped_storage(), tensor.untyped_storage()
    if memory.data_ptr() != storage.data_ptr() or memory.nbytes() != storage.nbytes():
        _set(tensor, _storage(memory), host)
    elif (tensor.shape, tensor.stride()) != (host.shape, host.stride()):
        _set(tensor, storage, host)


def _set(tensor: torch.Tensor, storage: torch.UntypedStorage, like: torch.Tensor) -> Any:
    operation = torch.ops.aten.set_.source_Storage_storage_offset
    return operation.redispatch(
        _ON_CPU, tensor, storage, like.storage_offset(), like.shape, like.stride()
    )


def _storage(memory: torch.UntypedStorage) -> torch.UntypedStorage:
    """Return a storage of the device over host memory."""
    device = torch.device("accel", 0)
    storage = torch._C._construct_storage_from_data_pointer(
        memory.data_ptr(), device, memory.nbytes()
    )
    _backend.keep(storage, memory)
    return storage


def _convolution(*args: Any) -> Any:
    return _compute(torch.ops.aten.convolution.default, *args)


def _convolution_backward(grad: Any, input: Any, weight: Any, *args: Any) -> Any:
    bias = [weight.shape[1 if args[3] else 0]]
    return _compute(torch.ops.aten.convolution_backward.default, grad, input, weight, bias, *args)


def _lstm_cell(given: Any, hidden: Any, cell: Any, given_bias: Any = None, bias: Any = None) -> Any:
    given, hidden = _plus(given, given_bias), _plus(hidden, bias)
    into, forget, new, out = (given + hidden).chunk(4, 1)
    into, forget, new, out = into.sigmoid(), forget.sigmoid(), new.tanh(), out.sigmoid()
    after = forget * cell + into * new
    return out * after.tanh(), after, torch.cat((into, forget, new, out), 1)


def _gru_cell(given: Any, hidden: Any, state: Any, given_bias: Any = None, bias: Any = None) -> Any:
    given, hidden = _plus(given, given_bias).chunk(3, 1), _plus(hidden, bias).chunk(3, 1)
    reset, update = ((g + h).sigmoid() for g, h in zip(given[:2], hidden[:2], strict=True))
    new = (given[2] + reset * hidden[2]).tanh()
    after = (state - new) * update + new
    return after, torch.cat((reset, update, new, state, hidden[2]), 1)


def _plus(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias
