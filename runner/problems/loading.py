"""Runs a problem's own code: its module, its model and its input functions.

Nothing here limits or isolates that code: the caller is a child process that already did.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import random
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from runner.errors import ProblemError
from runner.problems.author_errors import LONGEST_MESSAGE, author_code, shorten_message
from runner.problems.nested_values import to_plain_containers
from runner.problems.packages import SiblingSkippingFinder
from runner.problems.problem import Problem, check_format
from runner.untrusted_files import read_file

if TYPE_CHECKING:
    import torch


@dataclass
class LoadedProblem:
    """A problem whose file has run: its module, its Model class, and that class's arguments."""

    problem: Problem
    module: ModuleType
    Model: type[torch.nn.Module]
    init_args: list[Any] = field(default_factory=list)
    init_kwargs: dict[str, Any] = field(default_factory=dict)

    def build(self) -> torch.nn.Module:
        """Return a new Model; ProblemError if its __init__ raises."""
        import torch

        with author_code(self.problem):
            model: object = self.Model(*self.init_args, **self.init_kwargs)
        if not isinstance(model, torch.nn.Module):  # __new__ may return anything
            raise ProblemError(
                self.problem.path, f"Model() gives {_type_name(model)}, not an nn.Module"
            )
        return model

    def get_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return new positional and keyword inputs of forward().

        Raises ProblemError if the author's functions raise, if get_inputs() returns no list, or if
        get_input_kwargs() returns no dict.
        """
        args = self._call("get_inputs")
        if not isinstance(args, list | tuple):
            raise ProblemError(
                self.problem.path,
                f"get_inputs() returned {_type_name(args)}, not a list",
                hint="return a list, in forward()'s order",
            )
        return tuple(args), self._input_kwargs()

    def _input_kwargs(self) -> dict[str, Any]:
        if not hasattr(self.module, "get_input_kwargs"):
            return {}
        kwargs = self._call("get_input_kwargs")
        if not _is_kwargs(kwargs):
            raise ProblemError(
                self.problem.path,
                f"get_input_kwargs() returned {_type_name(kwargs)}, not a dict by parameter name",
                hint="return forward()'s keyword inputs by name, {} for none",
            )
        return dict(kwargs)

    def _call(self, function: str) -> Any:
        with author_code(self.problem):
            return getattr(self.module, function)()


def seed(number: int) -> None:
    """Fix every source of randomness that a problem file may draw from.

    A file draws at three moments: when it runs, in Model's __init__, and in get_inputs().
    KernelBench seeds before each of the last two, so that neither's values depend on the other.
    """
    import torch

    torch.manual_seed(number)
    seed_beside_torch(number)


def seed_beside_torch(number: int) -> None:
    """Seed Python's generator and numpy's."""
    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number % 2**32)


def load_problem(problem: Problem) -> LoadedProblem:
    """Run the problem's file as a module of its own, and get Model's arguments from it.

    A list or tuple from get_init_inputs() holds Model's positional arguments, as in KernelBench; a
    dict holds its keyword arguments. Under a FakeTensorMode, the tensors that the file makes are
    fake. No bytecode is written; `inspect.getsource`, tracebacks and pickle find the module by its
    real path and its name in sys.modules.

    Raises ProblemError for any mistake of the author, MemoryError if memory ran out.
    """
    import torch

    module = _run_file(problem)
    model = _module_attribute(problem, module, "Model")
    if not (isinstance(model, type) and issubclass(model, torch.nn.Module)):
        raise ProblemError(
            problem.path, "Model is not an nn.Module", hint="write `class Model(nn.Module):`"
        )
    for function in ("get_inputs", "get_init_inputs"):
        if not callable(_module_attribute(problem, module, function)):
            raise ProblemError(problem.path, f"{function} is not a function")
    loaded = LoadedProblem(problem, module, model)
    arguments = loaded._call("get_init_inputs")
    if _is_kwargs(arguments):
        loaded.init_kwargs = dict(arguments)
    elif isinstance(arguments, list | tuple):
        loaded.init_args = list(arguments)
    else:
        raise ProblemError(
            problem.path,
            f"get_init_inputs() returned {_type_name(arguments)}, not a list",
            hint="return Model's arguments as a list, or as a dict by name",
        )
    return loaded


def check_inputs(
    problem: Problem, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise ProblemError if forward()'s signature does not accept these inputs."""
    import torch

    if getattr(model.forward, "__name__", "") == "_forward_unimplemented":
        raise ProblemError(
            problem.path, f"{type(model).__name__} has no forward()", hint="define it"
        )
    if model._forward_pre_hooks or type(model).__call__ is not torch.nn.Module.__call__:
        return  # the hook or __call__ may change the inputs before forward() gets them
    try:  # a decorator of forward() may pass it further arguments
        signature = inspect.signature(model.forward, follow_wrapped=False)
    except (TypeError, ValueError):  # a scripted module has no signature
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        parameters = ", ".join(map(str, signature.parameters.values())) or "nothing"
        if len(parameters) > LONGEST_MESSAGE:
            parameters = ", ".join(signature.parameters)
        reason = f"{type(model).__name__}.forward() {error}"
        raise ProblemError(
            problem.path, reason, hint=shorten_message(f"it takes {parameters}")
        ) from error


def check_outputs(problem: Problem, outputs: object) -> list[torch.Tensor]:
    """Return the tensors in what forward() returned, however nested, in order.

    Raises ProblemError if there is none.
    """
    tensors = find_tensors(outputs)
    if not tensors:
        raise ProblemError(
            problem.path,
            f"forward() returned {_type_name(outputs)} with no tensor in it"
            if isinstance(outputs, list | tuple | Mapping)
            else f"forward() returned {_type_name(outputs)}, not a tensor",
            hint="return a tensor, or a tuple of tensors",
        )
    return tensors


def _run_file(problem: Problem) -> ModuleType:
    source = _unchanged_source(problem)
    check_format(problem.path, source)
    name = _module_name(problem)
    module = ModuleType(name)
    module.__file__ = str(problem.path)
    linecache.checkcache(str(problem.path))
    SiblingSkippingFinder(problem.path.parent).install()
    sys.modules[name] = module  # dataclasses, pickle and inspect look modules up by name
    try:
        with author_code(problem):
            code = compile(source, str(problem.path), "exec", dont_inherit=True)
            exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _unchanged_source(problem: Problem) -> bytes:
    try:
        source = read_file(problem.path)
    except OSError as error:
        raise ProblemError(problem.path, f"cannot be read: {error.strerror}") from error
    if hashlib.sha256(source).hexdigest() != problem.sha256:
        raise ProblemError(problem.path, "the file changed after it was selected", hint="run again")
    return source


def _module_name(problem: Problem) -> str:
    """Return a name, the same in every new process; a second load gets the next free one."""
    base = f"problem_{re.sub(r'[^0-9A-Za-z_]', '_', problem.name)}_{problem.sha256[:8]}"
    name, number = base, 1
    while name in sys.modules:
        number += 1
        name = f"{base}_{number}"
    return name


def _module_attribute(problem: Problem, module: ModuleType, name: str) -> object:
    try:
        return getattr(module, name)
    except AttributeError:
        raise ProblemError(problem.path, f"no {name} after the file ran") from None


def find_tensors(value: object) -> list[torch.Tensor]:
    """Return the tensors in a value's containers and objects, in order."""
    import torch

    from runner.torch_internals import tree_flatten

    leaves, _ = tree_flatten(to_plain_containers(value))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _is_kwargs(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def _type_name(value: object) -> str:
    """Return a value's type with its article: `None`, `a dict`, `an int`, `a Tensor`."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
