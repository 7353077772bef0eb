"""Finds zoos: those of kdrun, and those that other packages register as `kdrun.zoos`."""

import importlib
import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass

from runner.errors import UsageError, suggest_names
from runner.problems import package_identity
from runner.problems.packages import is_importable
from runner.zoo.recipe import Zoo, ZooModel

ENTRY_POINTS = "kdrun.zoos"
"""Group of entry points under which another package registers an object with a zoo's functions."""

_SHARED_MODULES = {
    "diffusers": (
        "diffusers.models.modeling_utils",
        "diffusers.models.attention_processor",
        "diffusers.models.transformers",
        "diffusers.hooks",
        "transformers.modeling_utils",
    ),
    "timm": ("timm",),
    "torchvision": ("torchvision.models",),
    "transformers": (
        "transformers.modeling_utils",
        "transformers.masking_utils",
        "transformers.modeling_layers",
        "transformers.generation",
    ),
}
"""Packages that kdrun has a zoo of, each with the modules that almost all of its models import.

Importing these takes about a second."""


@dataclass(frozen=True, slots=True)
class ZooListing:
    """One zoo as it is here: its package's version and models, or why it cannot be used."""

    name: str
    version: str
    """Installed version, or the hash of a checkout; `missing` if the package is not installed."""
    models: Sequence[ZooModel] = ()
    problem: str | None = None
    """Why the models cannot be listed; None if they can."""

    @property
    def families(self) -> int:
        return len({model.family for model in self.models})


def list_zoos() -> list[ZooListing]:
    """Return every zoo with its models; one that cannot be imported says why."""
    return [_list_or_explain(name) for name in _find_names()]


def list_zoo(name: str) -> ZooListing:
    """Return one zoo with its models.

    Raises:
        UsageError: there is no such zoo, or its package cannot be imported.
    """
    open_zoo(name)
    listing = _list_or_explain(name)
    if listing.problem is not None:
        raise UsageError(f"{name}: {listing.problem}")
    return listing


def find_shared_modules(package: str) -> tuple[str, ...]:
    """Return the modules that almost every model of a zoo imports; none for a zoo not of kdrun."""
    return _SHARED_MODULES.get(package, ())


def open_zoo(name: str) -> Zoo:
    """Return the zoo with a name.

    Raises:
        UsageError: there is none, its package is not installed, or its module fails on import.
    """
    names = _find_names()
    if name not in names:
        raise UsageError(f"there is no zoo {name!r}", hint=suggest_names(name, names))
    if name in _SHARED_MODULES:
        if not is_importable(name):
            raise UsageError(f"{name} is not installed", hint="pip install 'kdrun[zoo]'")
        zoo: Zoo = importlib.import_module(f"runner.zoo.{name}_zoo")
        return zoo
    (entry_point,) = importlib.metadata.entry_points(group=ENTRY_POINTS, name=name)
    try:
        registered: Zoo = entry_point.load()
    except Exception as error:  # the code of another package
        raise UsageError(f"zoo {name} of {entry_point.value}: {describe_error(error)}") from error
    return registered


def _find_version(name: str) -> str:
    if name in _SHARED_MODULES:
        return package_identity(name)
    (entry_point,) = importlib.metadata.entry_points(group=ENTRY_POINTS, name=name)
    return package_identity(entry_point.module.partition(".")[0])


def _find_names() -> list[str]:
    registered = {entry.name for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    return sorted(_SHARED_MODULES.keys() | registered)


def _list_or_explain(name: str) -> ZooListing:
    version = _find_version(name)
    try:
        models = sorted(open_zoo(name).list_models(), key=lambda model: model.name)
    except UsageError as error:
        return ZooListing(name, version, problem=str(error))
    except Exception as error:  # the package's own code: its compiled part may not fit this torch
        return ZooListing(name, version, problem=f"cannot be listed: {describe_error(error)}")
    return ZooListing(name, version, models)


def describe_error(error: Exception) -> str:
    """Return an error of a package's own code in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
