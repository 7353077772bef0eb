"""Checks that the parts of this decomposition compute what the original computes.

Every `steps/*/refactored.py` calls compare_with_parent, and `composition_test.py` calls
compare_with_original. Both sides run with the same weights, inputs and random numbers.
Their outputs must agree within TOLERANCES, and on a CPU normally agree to the last bit.
An AssertionError says where they do not.
"""

import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn
from torch.testing import assert_close

TOLERANCES = {
    torch.float64: (1e-7, 1e-9),
    torch.complex128: (1e-7, 1e-9),
    torch.float32: (1e-5, 1e-6),
    torch.complex64: (1e-5, 1e-6),
    torch.float16: (1e-3, 1e-3),
    torch.bfloat16: (1e-3, 1e-3),
}
"""dtype -> (rtol, atol): |actual - expected| <= rtol * |expected| + atol * scale, where
scale is the output's largest finite magnitude, at most 1. Other dtypes are exact."""

MAX_DIFF = 1e-4
"""Upper bound on every float32 difference between original and composed model."""

PIECE = 1 << 22
"""Elements compared at a time, so that a large output needs no more memory."""

LARGE_BYTES = 1 << 30
"""A larger output waits in a file while the other side runs, which needs the memory."""


def compare_with_parent(
    folder: Path,
    refactored: Callable[[], nn.Module],
    get_inputs: Callable[[], list[Any]],
    training: bool = False,
) -> None:
    """Check that a step's model equals its parent, for two draws of weights and inputs.

    `folder` holds the parent, original.py, and weight_map.json: each of the parent's
    weights with its name in the refactored model, or names where several use it.
    """
    parent = load(folder / "original.py")
    weight_map = json.loads((folder / "weight_map.json").read_text())
    weights = {
        name: source
        for source, names in weight_map.items()
        for name in ([names] if isinstance(names, str) else names)
    }
    for seed in (1, 2):
        original, model = models(parent, refactored, weights, training, seed)
        torch.manual_seed(seed)
        inputs = get_inputs()
        expected = aside(outputs(original, inputs, {}, seed))
        assert_agree(outputs(model, inputs, {}, seed), expected)
        del original, model, inputs, expected  # before the next ones are made


def compare_with_original(
    path: Path,
    composed: Callable[[], nn.Module],
    weights: dict[str, str],
    training: bool = False,
    seeds: tuple[int, ...] = (1, 2),
) -> None:
    """Check that the model made of kernels equals that of the problem file at `path`.

    `weights`: name in the composed model -> name in the original. A negative control
    follows: with the last kernel's output a hundredth larger, the check ought to fail,
    and where it does not, that is printed.
    """
    problem = load(path)
    noticed = [compare_once(problem, composed, weights, training, s) for s in seeds]
    if not any(noticed):
        print("vacuous: a last kernel that is a hundredth off goes unnoticed")


def compare_once(
    problem: ModuleType,
    composed: Callable[[], nn.Module],
    weights: dict[str, str],
    training: bool,
    seed: int,
) -> bool:
    """Compare once; return whether the control is noticed.

    It is noticed by any bit if the right outputs had equal bits, else by the tolerance.
    """
    original, model = models(problem, composed, weights, training, seed)
    torch.manual_seed(seed)
    inputs = problem.get_inputs()
    keywords: dict[str, Any] = getattr(problem, "get_input_kwargs", dict)()
    expected = aside(outputs(original, inputs, keywords, seed))
    ended = names_as_they_end(model)
    equal = assert_agree(outputs(model, inputs, keywords, seed), expected, MAX_DIFF)
    if ended:
        last = model.get_submodule(ended[-1])
        last.register_forward_hook(lambda kernel, inputs, output: wrong(output))
        del last
    actual = outputs(model, inputs, keywords, seed)
    del original, model, inputs, keywords  # an AssertionError would keep them
    try:
        same = assert_agree(actual, expected, MAX_DIFF)
    except AssertionError:
        return True
    return equal and not same


def names_as_they_end(model: nn.Module) -> list[str]:
    """A list to which each of a model's kernels adds its name when its forward ends."""
    ended: list[str] = []
    for name, module in model.named_modules():
        if type(module).__name__ == "Model":
            module.register_forward_hook(lambda *_, name=name: ended.append(name))
    return ended


def assert_agree(
    actual: list[torch.Tensor],
    expected: list[torch.Tensor],
    max_diff: float | None = None,
) -> bool:
    """Assert that outputs agree within tolerance; return whether they are equal."""
    assert len(actual) == len(expected), f"{len(actual)} outputs, not {len(expected)}"
    equal = True
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape, f"{ours.shape}, not {theirs.shape}"
        assert ours.dtype == theirs.dtype, f"{ours.dtype}, not {theirs.dtype}"
        if torch.equal(ours, theirs):
            continue
        equal = False
        rtol, atol = tolerance(theirs)
        for one, other in zip(pieces(ours), pieces(theirs), strict=True):
            assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)
            if max_diff is not None and theirs.dtype == torch.float32:
                assert_close(one, other, rtol=0.0, atol=max_diff, equal_nan=True)
    return equal


def tolerance(expected: torch.Tensor) -> tuple[float, float]:
    """rtol and atol for an output; atol is relative to its scale if that is below 1."""
    rtol, atol = TOLERANCES.get(expected.dtype, (0.0, 0.0))
    if atol:
        sizes = (piece[piece.isfinite()].abs() for piece in pieces(expected))
        atol *= min(1.0, max((float(s.max()) for s in sizes if s.numel()), default=0.0))
    return rtol, atol


def pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The elements of a tensor, PIECE at a time."""
    return iter(torch.split(tensor.reshape(-1), PIECE))


def models(
    problem: ModuleType,
    other: Callable[[], nn.Module],
    weights: dict[str, str],
    training: bool,
    seed: int,
) -> tuple[nn.Module, nn.Module]:
    """The problem's model, and the other one with its weights."""
    torch.backends.mha.set_fastpath_enabled(False)  # both run the operations they spell
    torch.backends.opt_einsum.enabled = False
    torch.set_deterministic_debug_mode("warn")  # no threads race
    torch.manual_seed(seed)
    pair = build(problem).train(training), other().train(training)
    theirs, ours = (weights_of(model) for model in pair)
    if seed:  # with 0 the model was taken apart, and values may have decided what runs
        vary([theirs[source] for source in weights.values()])
    for name, source in weights.items():
        shared = theirs[source].data
        if not isinstance(ours[name], nn.Parameter):
            shared = shared.clone()  # a forward may write to a buffer
        ours[name].data = shared
    return pair


def vary(weights: list[torch.Tensor]) -> None:
    """Add random numbers to weights that are the same all over.

    Norms begin as ones and zeros, and with these a mix-up of two would change nothing.
    """
    for weight in {id(each): each.data for each in weights}.values():
        if weight.is_floating_point() and weight.numel() > 1:
            low, high = weight.aminmax()
            if low == high and low.isfinite():
                weight += torch.rand_like(weight)


def build(problem: ModuleType) -> nn.Module:
    """The Model of a problem file, with the arguments that the file gives for it."""
    model: Callable[..., nn.Module] = problem.Model
    arguments = problem.get_init_inputs() if hasattr(problem, "get_init_inputs") else []
    if isinstance(arguments, dict):
        return model(**arguments)
    if len(arguments) == 2:
        positional, named = arguments
        if isinstance(positional, (list, tuple)) and isinstance(named, dict):
            return model(*positional, **named)
    return model(*arguments)


def outputs(
    model: nn.Module, inputs: list[Any], keywords: dict[str, Any], seed: int
) -> list[torch.Tensor]:
    """All tensors that a forward returns, in order."""
    torch.manual_seed(seed)
    with torch.no_grad():
        return tensors(model(*inputs, **keywords))


def aside(expected: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same tensors, large ones in files that are gone when the tensors are."""
    return [in_a_file(t) if t.nbytes > LARGE_BYTES else t for t in expected]


def tensors(value: Any) -> list[torch.Tensor]:
    """All tensors in nested tuples, lists, dicts and objects, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (int, float, complex, str, type)) or callable(value):
        return []
    if not isinstance(value, (list, tuple)):
        value = value if hasattr(value, "values") else getattr(value, "__dict__", {})
        value = value.values()
    return [tensor for item in value for tensor in tensors(item)]


def in_a_file(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that lies in a temporary file instead of in memory."""
    with tempfile.NamedTemporaryFile() as file:
        size, dtype = tensor.numel(), tensor.dtype
        copy = torch.from_file(file.name, shared=True, size=size, dtype=dtype)
    return copy.view(tensor.shape).copy_(tensor)


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, buffers and tensors in plain attributes; shared ones by each name."""
    known = frozenset(map(id, model.modules()))
    plain = (
        (f"{path}.{key}" if path else key, value)
        for path, module in model.named_modules()
        for key, value in vars(module).items()
        if key not in ("_parameters", "_buffers", "_modules")
    )
    attributes = {
        name: tensor
        for place, value in plain
        for name, tensor in named_tensors(value, place, known)
    }
    parameters = dict(model.named_parameters(remove_duplicate=False))
    registered = parameters | dict(model.named_buffers(remove_duplicate=False))
    plain_ones = (item for pair in registered.items() for item in plain_tensors(*pair))
    return attributes | dict(plain_ones)


def plain_tensors(name: str, tensor: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """A weight; of a quantised one, the plain tensors that it consists of."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield name, tensor
        return
    for attribute in tensor.__tensor_flatten__()[0]:
        yield from plain_tensors(f"{name}.{attribute}", getattr(tensor, attribute))


def named_tensors(
    value: Any, name: str, known: frozenset[int], depth: int = 0
) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, tensor) for a tensor, and for each that a list, a dict or an object holds.

    What is in `known`, by its id(), is not entered again.
    """
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth < 5 and id(value) not in known:
        deeper = depth + (not isinstance(value, nn.Module))
        known = known | {id(value)}
        for key, item in held(value).items():
            if isinstance(key, (str, int)):
                yield from named_tensors(item, f"{name}.{key}", known, deeper)


def held(value: Any) -> dict[Any, Any]:
    """The members, by name, of a list, a dict, a module or a plain object."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, nn.Module):
        weights = dict(value.named_parameters(recurse=False))
        tables = dict(value.named_buffers(recurse=False))
        return {**weights, **tables, **dict(value.named_children())}
    if isinstance(value, (type, ModuleType, FunctionType, MethodType)):
        return {}
    return getattr(value, "__dict__", {})


def wrong(output: Any) -> Any:
    """A hundredth more; integers one more, booleans the other way round."""
    if isinstance(output, tuple):
        return tuple(wrong(part) for part in output)
    # A large output is overwritten, since memory may not hold another; what it is
    # compared with is in a file.
    place = output if output.nbytes > LARGE_BYTES and output.is_contiguous() else None
    if output.dtype == torch.bool:
        return torch.logical_not(output, out=place)
    if output.is_floating_point() or output.is_complex():
        return torch.mul(output, 1.01, out=place)
    return torch.add(output, 1, out=place)


def load(path: Path) -> ModuleType:
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec, f"{path} is no Python file"
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
