"""Lists the models of timm: each architecture at the input size that timm documents for it."""

import json
from collections.abc import Sequence

from runner.zoo.recipe import ModelRecipe, Refusal, ZooModel


def list_models() -> Sequence[ZooModel]:
    """Return timm's architectures; a family is a module of timm.models."""
    import timm

    return [ZooModel(name, _family(timm.model_entrypoint(name))) for name in timm.list_models()]


def find_recipe(name: str) -> ModelRecipe | Refusal:
    """Return the call of `timm.create_model`, without pretrained weights."""
    import timm

    config = timm.models.get_pretrained_cfg(name)
    if config is None or not config.input_size:
        return Refusal(f"timm documents no input size for {name}")
    size = ",".join(map(str, config.input_size))
    return ModelRecipe("timm:create_model", json.dumps([name]), f"float32[1,{size}]")


def _family(function: object) -> str:
    return str(getattr(function, "__module__", "")).rpartition(".")[2]
