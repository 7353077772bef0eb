"""Defines a zoo: a package that lists its models, and says how each is built and called."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runner.problems import InputExpression


@dataclass(frozen=True, slots=True)
class ZooModel:
    """One model of a package, by the name that the package has for it."""

    name: str
    """Name such as `vit_base_patch16_224`; it may serve as a file name."""
    family: str
    """Models of one architecture, such as `vision_transformer`."""


@dataclass(frozen=True, slots=True)
class ModelRecipe:
    """Says how a model is built with random weights and called, in the terms of `kdrun decompose`.

    Nothing may be downloaded by a model that is built like this.
    """

    target: str
    """`package.module:Class`, or a function that returns the model."""
    init: str
    """Arguments of the target, as JSON, such as `["resnet50"]`."""
    inputs: str | Sequence[InputExpression]
    """Inputs of forward(), such as `float32[1,3,224,224]`, or Python expressions that draw them."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Says why a model cannot be built or called without a download or a person's choice."""

    reason: str
    """One line, which becomes the reason of the model's row."""


class Zoo(Protocol):
    """A package's models. Importing the package is left to these functions."""

    def list_models(self) -> Sequence[ZooModel]:
        """Return all models, without building any."""

    def find_recipe(self, name: str) -> ModelRecipe | Refusal:
        """Return how the model of this name is built and called, or why it cannot be."""
