"""Writes a problem file for a model in a package, `package.module:Class`.

The file imports the package, builds the model from its arguments and draws forward()'s inputs. It
is a problem like any other: its text holds all that distinguishes it, which are the arguments and
the version of the package.
"""

import importlib
import inspect
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from runner.errors import UsageError
from runner.problems.input_language import InputExpression, parse_inputs
from runner.problems.package_targets import (
    Arguments,
    ObjectExpression,
    PackageTarget,
    is_target,
    parse_arguments,
    parse_target,
)
from runner.problems.packages import package_identities
from runner.problems.problem import find_path, write_problem_file
from runner.problems.selection import data_root, select_problem
from runner.problems.variants import FOLDER

WIDTH = 88

_RESERVED_NAMES = {
    *("torch", "nn", "Mapping", "Model", "get_inputs", "get_input_kwargs", "get_init_inputs"),
    *("given", "made", "_given", "_made", "isinstance", "len", "list", "dict", "tuple", "type"),
}


def write_target_problems(patterns: Iterable[str], output: Path) -> list[str]:
    """Return patterns with each `package.module:function` replaced by a file written for it.

    Raises:
        UsageError: two targets would be written to one file; or as `resolve_problem_file`.
    """
    targets: dict[Path, str] = {}
    resolved = []
    for pattern in patterns:
        if not is_target(pattern):
            resolved.append(pattern)
            continue
        path = resolve_problem_file(pattern, None, None, output)
        if targets.setdefault(path, pattern) != pattern:
            raise UsageError(
                f"--problem {pattern} and {targets[path]} would both be {path.stem}",
                hint="give one of them another name, or submit them to different --output",
            )
        resolved.append(str(path))
    return resolved


def find_problem(
    text: str, init: str | None, inputs: str | None, data: Path | None, output: Path
) -> tuple[Path, str | None]:
    """Return the file of the problem that a path, name, glob or `package.module:Class` means.

    For `package.module:Class`, the file is written into `output`, and the second value is `text`;
    else that is None.

    Raises:
        UsageError: no problem or several problems match; or as `resolve_problem_file`.
        StoreError: the file cannot be written.
    """
    if ":" in text and find_path(text) is None:
        return resolve_problem_file(text, init, inputs, output), text
    return resolve_problem_file(
        select_problem(text, data_root(data)).path, init, inputs, output
    ), None


def resolve_problem_file(
    problem: Path | str, init: str | None, inputs: str | None, output: Path
) -> Path:
    """Return a path as it is; write a file for `package.module:Class` into `output`.

    Raises:
        UsageError: the package cannot be imported, or the arguments or inputs are invalid.
        StoreError: the file cannot be written.
    """
    if isinstance(problem, Path):
        for flag, value, function in (
            ("--init", init, "get_init_inputs()"),
            ("--inputs", inputs, "get_inputs()"),
        ):
            if value is not None:
                hint = f"{problem.name} says that itself, in {function}"
                raise UsageError(f"{flag} is for package.module:Class", hint=hint)
        return problem
    text = problem_text(problem, init, inputs)
    path = output / FOLDER / f"{problem.partition(':')[2].replace('.', '_')}.py"
    return write_problem_file(path, text)


def problem_text(
    target_text: str,
    init: str | None,
    inputs: str | Sequence[InputExpression] | None,
    title: str | None = None,
) -> str:
    """Return the text of a problem file for `package.module:Class`.

    `init` is JSON; `inputs` is in the language of `--inputs`, or names a function that returns the
    inputs, or is already parsed. Without `inputs`, the target is a function that returns a model
    and its inputs. The file's docstring begins with `title`, by default the target and the versions
    of packages.
    """
    target = parse_target(target_text)
    arguments = parse_arguments(init) if init is not None else Arguments()
    input_source: list[InputExpression] | PackageTarget | None = None
    if inputs is not None and not isinstance(inputs, str):
        input_source = list(inputs)
    elif inputs is not None:
        input_source = (
            parse_target(inputs, "--inputs ") if is_target(inputs) else parse_inputs(inputs)
        )
    file, model_call = _ProblemFile(), ObjectExpression(target, arguments)
    body = (
        _model_class(file, model_call)
        if input_source is not None
        else _factory_model_class(file, model_call)
    )
    if isinstance(input_source, list):
        body += _input_functions(file, input_source)
    elif input_source is not None:
        body += _factory_input_functions(str(input_source), f"{file.local_name(input_source)}()")
    else:
        body += _factory_input_functions(str(target), "_made()[1]")
    packages = package_identities(file.modules)
    identities = ", ".join(f"{package} {identity}" for package, identity in packages.items())
    title = title or f"{target}{f' of {identities}' if identities else ''}"
    head = f'"""{title}, as kdrun takes it apart."""'
    code = "\n".join([*body, "", "", "def get_init_inputs():", "    return []", ""])
    return "\n".join([head, "", *file.import_lines(code), "", "", code])


def suggest_init(target_text: str, error: BaseException | None) -> str | None:
    """Return an example for --init if `error` says that a call of the target lacks arguments.

    The example lists the parameters without a default, `{"in_features": ..., "out_features": ...}`.
    Return None for any other error.
    """
    if not isinstance(error, TypeError) or " missing " not in str(error):
        return None
    try:
        target = parse_target(target_text)
        function: Any = importlib.import_module(target.module)
        for name in target.name.split("."):
            function = getattr(function, name)
        if str(error).partition("(")[0].removesuffix(".__init__") != function.__qualname__:
            return None  # the error is about another function that the target calls
        parameters = inspect.signature(function).parameters.values()
    except (ImportError, AttributeError, TypeError, ValueError):
        return None  # a functools.partial, for example, has no __qualname__
    named_kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    examples = [
        f'"{parameter.name}": ...'
        for parameter in parameters
        if parameter.kind in named_kinds and parameter.default is inspect.Parameter.empty
    ]
    return f"{{{', '.join(examples)}}}" if examples else None


class _ProblemFile:
    """A problem file to be written: the names that it imports, and values as text that use them."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self._names}

    def local_name(self, target: PackageTarget) -> str:
        """Return the expression for a target in the file, and import it."""
        first, dot, attribute_path = target.name.partition(".")
        key = (target.module, first)
        if key not in self._names:
            name, number = first, 1
            while name in _RESERVED_NAMES or name in self._names.values():
                number += 1
                name = f"{first}_{number}"
            self._names[key] = name
        return self._names[key] + dot + attribute_path

    def import_lines(self, code: str) -> list[str]:
        """Return the lines of the import statements of a file with this code."""
        lines = ["from collections.abc import Mapping", ""] if "Mapping" in code else []
        lines += ["import torch"] if "torch." in code else []
        modules: dict[str, list[str]] = {"torch": ["nn"]}
        for (module, name), local in self._names.items():
            import_text = name if name == local else f"{name} as {local}"
            modules.setdefault(module, []).append(import_text)
        for module in sorted(modules):
            names = sorted(modules[module])
            line = f"from {module} import {', '.join(names)}"
            if len(line) > WIDTH:
                lines += [f"from {module} import (", *(f"    {name}," for name in names), ")"]
            else:
                lines.append(line)
        return lines

    def value_lines(self, value: Any, before: str, after: str = "") -> list[str]:
        """Return a value as lines of Python between two texts, one item a line if it is long."""
        opening, items, closing = self._parts(value)
        line = f"{before}{self._flat(value)}{after}"
        if len(line) <= WIDTH or not items:
            return [line]
        outside = " " * (len(before) - len(before.lstrip()))
        inside = [self.value_lines(item, f"{outside}    {head}", ",") for head, item in items]
        return [
            before + opening,
            *(line for lines in inside for line in lines),
            outside + closing + after,
        ]

    def _flat(self, value: Any) -> str:
        opening, items, closing = self._parts(value)
        return opening + ", ".join(head + self._flat(item) for head, item in items) + closing

    def _parts(self, value: Any) -> tuple[str, list[tuple[str, Any]], str]:
        """Return a value's opening bracket, its items (prefix, item) and its closing bracket."""
        match value:
            case ObjectExpression(target, None):
                return self.local_name(target), [], ""
            case ObjectExpression(target, Arguments(positional, named)):
                items = [("", item) for item in positional]
                items += [(f"{name}=", item) for name, item in named.items()]
                return f"{self.local_name(target)}(", items, ")"
            case list():
                return "[", [("", item) for item in value], "]"
            case dict():
                return "{", [(f"{_constant_text(key)}: ", item) for key, item in value.items()], "}"
        return _constant_text(value), [], ""


def _constant_text(value: object) -> str:
    if isinstance(value, InputExpression):
        return value.expression
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _model_class(file: _ProblemFile, model_call: ObjectExpression) -> list[str]:
    return [
        "class Model(nn.Module):",
        f'    """What {model_call.target} gives, itself."""',
        "",
        "    def __new__(cls):",
        *file.value_lines(model_call, "        return "),
    ]


def _factory_model_class(file: _ProblemFile, model_call: ObjectExpression) -> list[str]:
    """Return the lines of a Model made by a function that returns a model and its inputs."""
    return [
        "def _made():",
        *file.value_lines(model_call, "    made = "),
        "    if isinstance(made, tuple) and len(made) == 2:",
        "        return made",
        "    raise TypeError(",
        f'        f"{model_call.target} gives {{type(made).__name__}}, not (model, inputs): "',
        '        "say what it takes with --inputs"',
        "    )",
        "",
        "",
        "class Model(nn.Module):",
        f'    """The model that {model_call.target} gives, itself."""',
        "",
        "    def __new__(cls):",
        "        return _made()[0]",
    ]


def _input_functions(file: _ProblemFile, inputs: list[InputExpression]) -> list[str]:
    positional = [expression for expression in inputs if expression.name is None]
    named = {expression.name: expression for expression in inputs if expression.name is not None}
    lines = ["", "", "def get_inputs():", *file.value_lines(positional, "    return ")]
    if named:
        lines += ["", "", "def get_input_kwargs():", *file.value_lines(named, "    return ")]
    return lines


def _factory_input_functions(name: str, expression: str) -> list[str]:
    """Return the lines of input functions that use what a function returns."""
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
