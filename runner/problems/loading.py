"""This file knows about running a problem's own code: its module, its model, its inputs.

Nothing here limits or isolates: the caller is a child process that did so before.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import random
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from runner.errors import ProblemError
from runner.problems.author_errors import LONGEST_MESSAGE, author_code, shorten_message
from runner.problems.nested_values import plain
from runner.problems.packages import NoFilesBeside
from runner.problems.problem import Problem, parse
from runner.untrusted_files import read_file

if TYPE_CHECKING:
    import torch


@dataclass
class LoadedProblem:
    """A problem whose file ran: its module, its Model class, and what that class is built from."""

    problem: Problem
    module: ModuleType
    Model: type[torch.nn.Module]
    init_args: list[Any] = field(default_factory=list)
    init_kwargs: dict[str, Any] = field(default_factory=dict)

    def build(self) -> torch.nn.Module:
        """A new Model with its own arguments. ProblemError where its __init__ raises."""
        import torch

        with author_code(self.problem):
            model: object = self.Model(*self.init_args, **self.init_kwargs)
        if not isinstance(model, torch.nn.Module):  # its __new__ decides
            raise ProblemError(self.problem.path, f"Model() gives {_a(model)}, not an nn.Module")
        return model

    def get_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """New positional and keyword inputs of forward().

        ProblemError where the author's functions raise, or return what is no list (no dict).
        """
        args = self._returned("get_inputs")
        if not isinstance(args, list | tuple):
            raise ProblemError(
                self.problem.path,
                f"get_inputs() returned {_a(args)}, not a list",
                hint="return a list, in forward()'s order",
            )
        return tuple(args), self._input_kwargs()

    def _input_kwargs(self) -> dict[str, Any]:
        if not hasattr(self.module, "get_input_kwargs"):
            return {}
        kwargs = self._returned("get_input_kwargs")
        if not _is_kwargs(kwargs):
            raise ProblemError(
                self.problem.path,
                f"get_input_kwargs() returned {_a(kwargs)}, not a dict by parameter name",
                hint="return forward()'s keyword inputs by name, {} for none",
            )
        return dict(kwargs)

    def _returned(self, function: str) -> Any:
        with author_code(self.problem):
            return getattr(self.module, function)()


def seed(number: int) -> None:
    """Fix every source of randomness that a problem file may draw from.

    Files draw at three moments: as they run, in Model's __init__, and in get_inputs(). KernelBench
    seeds before each of the last two, so that either's values do not depend on the other's.
    """
    import torch

    random.seed(number)
    torch.manual_seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number % 2**32)


def load_problem(problem: Problem) -> LoadedProblem:
    """Run the problem's file as a module of its own, and ask it for Model's arguments.

    A list or tuple from get_init_inputs() is Model's positional arguments, as in KernelBench, all
    of it; a dict is its keyword arguments. Works under a FakeTensorMode: tensors that the file
    makes are fake then. Writes no bytecode; `inspect.getsource`, tracebacks and pickle find the
    module by its real path and its name in sys.modules.

    Raises ProblemError for whatever the author got wrong, MemoryError where only that was missing.
    """
    import torch

    module = _run(problem)
    model = _attribute(problem, module, "Model")
    if not (isinstance(model, type) and issubclass(model, torch.nn.Module)):
        raise ProblemError(
            problem.path, "Model is not an nn.Module", hint="write `class Model(nn.Module):`"
        )
    for function in ("get_inputs", "get_init_inputs"):
        if not callable(_attribute(problem, module, function)):
            raise ProblemError(problem.path, f"{function} is not a function")
    loaded = LoadedProblem(problem, module, model)
    arguments = loaded._returned("get_init_inputs")
    if _is_kwargs(arguments):
        loaded.init_kwargs = dict(arguments)
    elif isinstance(arguments, list | tuple):
        loaded.init_args = list(arguments)
    else:
        raise ProblemError(
            problem.path,
            f"get_init_inputs() returned {_a(arguments)}, not a list",
            hint="return Model's arguments as a list, or as a dict by name",
        )
    return loaded


def check_inputs(
    problem: Problem, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """ProblemError where forward() does not take the inputs, by number or by name."""
    import torch

    if model._forward_pre_hooks or type(model).__call__ is not torch.nn.Module.__call__:
        return  # what forward() gets is not what is given
    try:  # what decorates a forward() may give it more than it was given
        signature = inspect.signature(model.forward, follow_wrapped=False)
    except (TypeError, ValueError):  # a scripted module has none
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        taken = ", ".join(map(str, signature.parameters.values())) or "nothing"
        if len(taken) > LONGEST_MESSAGE:
            taken = ", ".join(signature.parameters)
        what = f"{type(model).__name__}.forward() {error}"
        raise ProblemError(problem.path, what, hint=shorten_message(f"it takes {taken}")) from error


def check_outputs(problem: Problem, outputs: object) -> list[torch.Tensor]:
    """The tensors that forward() returned, in nested tuples, lists and dicts, in order.

    ProblemError where there is none.
    """
    tensors = list(_tensors(plain(outputs)))
    if not tensors:
        raise ProblemError(
            problem.path,
            f"forward() returned {_a(outputs)} with no tensor in it"
            if isinstance(outputs, list | tuple | Mapping)
            else f"forward() returned {_a(outputs)}, not a tensor",
            hint="return a tensor, or a tuple of tensors",
        )
    return tensors


def _run(problem: Problem) -> ModuleType:
    source = _unchanged_source(problem)
    parse(problem.path, source)
    name = _module_name(problem)
    module = ModuleType(name)
    module.__file__ = str(problem.path)
    linecache.checkcache(str(problem.path))
    NoFilesBeside(problem.path.parent).install()
    sys.modules[name] = module  # dataclasses, pickle and inspect look their module up by name
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
    """The same in every new process; a second load in one process gets the next free name."""
    base = f"problem_{re.sub(r'[^0-9A-Za-z_]', '_', problem.name)}_{problem.sha256[:8]}"
    name, n = base, 1
    while name in sys.modules:
        n += 1
        name = f"{base}_{n}"
    return name


def _attribute(problem: Problem, module: ModuleType, name: str) -> object:
    try:
        return getattr(module, name)
    except AttributeError:
        raise ProblemError(problem.path, f"no {name} after the file ran") from None


def _tensors(value: object) -> Iterator[torch.Tensor]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _is_kwargs(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def _a(value: object) -> str:
    """What an author calls it: `None`, `a dict`, `an int`, `a Tensor`."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
