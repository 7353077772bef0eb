"""Selects models of zoos by name or glob, and writes a problem file for each.

The file imports the package alone. Its last line says which zoo, family and model it is of.
"""

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from runner.errors import UsageError, suggest_names
from runner.problems.package_model import problem_text
from runner.problems.problem import write_problem_file
from runner.problems.variants import FOLDER
from runner.untrusted_files import read_file
from runner.zoo.recipe import ModelRecipe, Refusal, ZooModel
from runner.zoo.registry import describe_error, list_zoo, open_zoo

MARK = "# zoo: "


class ZooOrigin(BaseModel):
    """Says which model of which package a problem file builds; its last line, as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    package: str
    family: str
    model: str
    version: str
    """Version of the package that the file was written for."""


def read_zoo_origin(path: Path) -> ZooOrigin | None:
    """Return the zoo, family and model of a problem file; None for any other file."""
    with suppress(OSError, ValidationError):
        for line in reversed(read_file(path).decode("utf-8", "replace").splitlines()):
            if line.startswith(MARK):
                return ZooOrigin.model_validate_json(line.removeprefix(MARK))
    return None


def write_zoo_problems(
    zoos: Iterable[str],
    patterns: Sequence[str],
    output: Path,
    start: int = 0,
    count: int | None = None,
) -> list[Path]:
    """Write the problem files of the selected models of zoos; return their paths.

    Without patterns, all models are selected. `start` and `count` cut from the selection, which is
    sorted by package and name.

    Raises:
        UsageError: there is no such zoo, its package cannot be imported, or nothing matches.
        StoreError: a file cannot be written.
    """
    listings = {name: list_zoo(name) for name in sorted(set(zoos))}
    selected = select_models({name: zoo.models for name, zoo in listings.items()}, patterns)
    if start >= len(selected):
        raise UsageError(f"--start {start} is past the end: {len(selected)} models selected")
    return [
        _write_file(zoo, model, listings[zoo].version, output)
        for zoo, model in selected[start : None if count is None else start + count]
    ]


def select_models(
    listed: Mapping[str, Sequence[ZooModel]], patterns: Sequence[str]
) -> list[tuple[str, ZooModel]]:
    """Return zoo and model of all models that match a name or glob, in any case; all without any.

    Raises:
        UsageError: a pattern matches nothing.
    """
    if not patterns:
        return [(zoo, model) for zoo, models in listed.items() for model in models]
    matches = {
        pattern: {
            (zoo, model)
            for zoo, models in listed.items()
            for model in models
            if fnmatch.fnmatchcase(model.name.lower(), pattern.lower())
        }
        for pattern in patterns
    }
    for pattern, matched in matches.items():
        if not matched:
            names = [model.name for models in listed.values() for model in models]
            raise UsageError(
                f"--problem {pattern}: matches no model of {', '.join(listed)}",
                hint=suggest_names(pattern, names),
            )
    return sorted(set().union(*matches.values()), key=lambda pair: (pair[0], pair[1].name))


def _write_file(zoo: str, model: ZooModel, version: str, output: Path) -> Path:
    origin = ZooOrigin(package=zoo, family=model.family, model=model.name, version=version)
    try:
        recipe = open_zoo(zoo).find_recipe(model.name)
    except Exception as error:  # the package's own code
        recipe = Refusal(describe_error(error))
    text = f"{_text(recipe, origin)}\n\n{MARK}{origin.model_dump_json()}\n"
    path = output / FOLDER / zoo / f"{zoo}_{re.sub(r'[^A-Za-z0-9_]', '_', model.name)}.py"
    return write_problem_file(path, text)


def _text(recipe: ModelRecipe | Refusal, origin: ZooOrigin) -> str:
    title = f"{origin.model} of {origin.package} {origin.version}"
    if isinstance(recipe, ModelRecipe):
        return problem_text(recipe.target, recipe.init, recipe.inputs, title).rstrip("\n")
    return "\n".join(
        [
            f'"""{title}, which cannot be built offline."""',
            *("", "from torch import nn", "", "", "class Model(nn.Module):"),
            *("    def __init__(self):", "        super().__init__()"),
            f"        raise RuntimeError({recipe.reason!r})",
            *("", "", "def get_inputs():", "    return []"),
            *("", "", "def get_init_inputs():", "    return []"),
        ]
    )
