"""Write a problem file for a model in a package, `package.module:Class`.

The file imports the package, and says what its model is built from and what forward() takes. It is
a problem as any other, and all that tells one such problem from another is in its text: what the
class is given, and which version of the package it was.
"""

import importlib
import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runner.errors import StoreError, UsageError
from runner.problems.input_language import InputExpression, parse_inputs
from runner.problems.package_targets import (
    Arguments,
    Made,
    Target,
    is_target,
    parse_arguments,
    parse_target,
)
from runner.problems.packages import packages_of
from runner.problems.problem import find_path
from runner.problems.selection import data_root, select_one

FOLDER = "problems"
"""In an output directory: files that were written for models in packages."""
WIDTH = 88

_TAKEN = {
    *("torch", "nn", "Mapping", "Model", "get_inputs", "get_input_kwargs", "get_init_inputs"),
    *("given", "made", "_given", "_made", "isinstance", "len", "list", "dict", "tuple", "type"),
}


def problem_files(patterns: Iterable[str], output: Path) -> list[str]:
    """What selects problems, with a file written for each `package.module:function` among them."""
    targets: dict[Path, str] = {}
    found = []
    for pattern in patterns:
        if not is_target(pattern):
            found.append(pattern)
            continue
        path = problem_file(pattern, None, None, output)
        if targets.setdefault(path, pattern) != pattern:
            raise UsageError(
                f"--problem {pattern} and {targets[path]} would both be {path.stem}",
                hint="give one of them another name, or submit them to different --output",
            )
        found.append(str(path))
    return found


def find_problem(
    text: str, init: str | None, inputs: str | None, data: Path | None, output: Path
) -> tuple[Path, str | None]:
    """Return the file of the one problem that a path, a name, a glob or `package.module:Class`
    means; for the last, it is written into `output`, and returned with that text.

    Raises:
        UsageError: it means none, or several; or as `problem_file`.
        StoreError: the file cannot be written.
    """
    if ":" in text and find_path(text) is None:
        return problem_file(text, init, inputs, output), text
    return problem_file(select_one(text, data_root(data)).path, init, inputs, output), None


def problem_file(what: Path | str, init: str | None, inputs: str | None, output: Path) -> Path:
    """A problem file as it is; that of `package.module:Class` is written into `output`.

    Raises:
        UsageError: a package that is not here, or arguments or inputs that cannot be meant.
        StoreError: the file cannot be written.
    """
    if isinstance(what, Path):
        for flag, said, function in (
            ("--init", init, "get_init_inputs()"),
            ("--inputs", inputs, "get_inputs()"),
        ):
            if said is not None:
                hint = f"{what.name} says that itself, in {function}"
                raise UsageError(f"{flag} is for package.module:Class", hint=hint)
        return what
    text = problem_text(what, init, inputs)
    path = output / FOLDER / f"{what.partition(':')[2].replace('.', '_')}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def problem_text(what: str, init: str | None, inputs: str | None) -> str:
    """A problem file for `package.module:Class`: built from JSON, with inputs of our language.

    Without inputs, what is named is a function that returns a model and its inputs.
    """
    target = parse_target(what)
    arguments = parse_arguments(init) if init is not None else Arguments()
    drawn: list[InputExpression] | Target | None = None
    if inputs is not None:
        drawn = parse_target(inputs, "--inputs ") if is_target(inputs) else parse_inputs(inputs)
    file, called = _File(), Made(target, arguments)
    body = _itself(file, called) if drawn is not None else _pair(file, called)
    if isinstance(drawn, list):
        body += _drawn(file, drawn)
    elif drawn is not None:
        body += _returned(str(drawn), f"{file.local(drawn)}()")
    else:
        body += _returned(str(target), "_made()[1]")
    packages = packages_of(file.modules)
    known = ", ".join(f"{package} {known}" for package, known in packages.items())
    head = f'"""{target}{f" of {known}" if known else ""}, as kdrun takes it apart."""'
    code = "\n".join([*body, "", "", "def get_init_inputs():", "    return []", ""])
    return "\n".join([head, "", *file.imports(code), "", "", code])


def example_of_init(named: str, error: BaseException | None) -> str | None:
    """Return what --init could say, where `error` is of calling a target without arguments.

    `{"in_features": ..., "out_features": ...}`: those that have no default.
    """
    if not isinstance(error, TypeError) or " missing " not in str(error):
        return None
    try:
        target = parse_target(named)
        found: Any = importlib.import_module(target.module)
        for name in target.name.split("."):
            found = getattr(found, name)
        if str(error).partition("(")[0].removesuffix(".__init__") != found.__qualname__:
            return None  # something that it calls lacks an argument
        parameters = inspect.signature(found).parameters.values()
    except (ImportError, AttributeError, TypeError, ValueError):  # as of a functools.partial
        return None
    named_ones = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    wanted = [
        f'"{parameter.name}": ...'
        for parameter in parameters
        if parameter.kind in named_ones and parameter.default is inspect.Parameter.empty
    ]
    return f"{{{', '.join(wanted)}}}" if wanted else None


class _File:
    """What a file imports, and by which name it knows each."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self._names}

    def local(self, target: Target) -> str:
        """How the file spells a target, which it imports."""
        first, dot, rest = target.name.partition(".")
        key = (target.module, first)
        if key not in self._names:
            name, n = first, 1
            while name in _TAKEN or name in self._names.values():
                n += 1
                name = f"{first}_{n}"
            self._names[key] = name
        return self._names[key] + dot + rest

    def imports(self, code: str) -> list[str]:
        """The import statements of a file with this code."""
        lines = ["from collections.abc import Mapping", ""] if "Mapping" in code else []
        lines += ["import torch"] if "torch." in code else []
        modules: dict[str, list[str]] = {"torch": ["nn"]}
        for (module, name), local in self._names.items():
            spelled = name if name == local else f"{name} as {local}"
            modules.setdefault(module, []).append(spelled)
        for module in sorted(modules):
            names = sorted(modules[module])
            line = f"from {module} import {', '.join(names)}"
            if len(line) > WIDTH:
                lines += [f"from {module} import (", *(f"    {name}," for name in names), ")"]
            else:
                lines.append(line)
        return lines

    def lines(self, value: Any, before: str, after: str = "") -> list[str]:
        """A value as Python, between what stands before and after it; opened where it is long."""
        opening, items, closing = self._parts(value)
        line = f"{before}{self._flat(value)}{after}"
        if len(line) <= WIDTH or not items:
            return [line]
        outside = " " * (len(before) - len(before.lstrip()))
        inside = [self.lines(item, f"{outside}    {head}", ",") for head, item in items]
        return [
            before + opening,
            *(line for lines in inside for line in lines),
            outside + closing + after,
        ]

    def _flat(self, value: Any) -> str:
        opening, items, closing = self._parts(value)
        return opening + ", ".join(head + self._flat(item) for head, item in items) + closing

    def _parts(self, value: Any) -> tuple[str, list[tuple[str, Any]], str]:
        """What opens a value, what it holds, each after a head of its own, and what closes it."""
        match value:
            case Made(target, None):
                return self.local(target), [], ""
            case Made(target, Arguments(positional, named)):
                items = [("", item) for item in positional]
                items += [(f"{name}=", item) for name, item in named.items()]
                return f"{self.local(target)}(", items, ")"
            case list():
                return "[", [("", item) for item in value], "]"
            case dict():
                return "{", [(f"{_constant(key)}: ", item) for key, item in value.items()], "}"
        return _constant(value), [], ""


def _constant(value: object) -> str:
    if isinstance(value, InputExpression):
        return value.expression
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _itself(file: _File, called: Made) -> list[str]:
    return [
        "class Model(nn.Module):",
        f'    """What {called.target} gives, itself."""',
        "",
        "    def __new__(cls):",
        *file.lines(called, "        return "),
    ]


def _pair(file: _File, called: Made) -> list[str]:
    """For a function that gives a model and its inputs."""
    return [
        "def _made():",
        *file.lines(called, "    made = "),
        "    if isinstance(made, tuple) and len(made) == 2:",
        "        return made",
        "    raise TypeError(",
        f'        f"{called.target} gives {{type(made).__name__}}, not (model, inputs): "',
        '        "say what it takes with --inputs"',
        "    )",
        "",
        "",
        "class Model(nn.Module):",
        f'    """The model that {called.target} gives, itself."""',
        "",
        "    def __new__(cls):",
        "        return _made()[0]",
    ]


def _drawn(file: _File, drawn: list[InputExpression]) -> list[str]:
    positional = [given for given in drawn if given.name is None]
    named = {given.name: given for given in drawn if given.name is not None}
    lines = ["", "", "def get_inputs():", *file.lines(positional, "    return ")]
    if named:
        lines += ["", "", "def get_input_kwargs():", *file.lines(named, "    return ")]
    return lines


def _returned(name: str, expression: str) -> list[str]:
    """For inputs that a function gives."""
    return [
        *("", "", "def _given():"),
        f"    given = {expression}",
        "    if isinstance(given, Mapping):",
        "        return [], dict(given)",
        "    if isinstance(given, torch.Tensor):",
        "        return [given], {}",
        "    if isinstance(given, (list, tuple)):",
        "        return list(given), {}",
        "    raise TypeError(",
        f'        f"{name} gives {{type(given).__name__}} as inputs, "',
        '        "not a list, a dict or a tensor"',
        "    )",
        *("", "", "def get_inputs():", "    return _given()[0]"),
        *("", "", "def get_input_kwargs():", "    return _given()[1]"),
    ]
