"""Lists the models of installed packages by name, and writes a problem file for each.

A zoo is one package: timm, torchvision, transformers, diffusers, or one that another package
registers. Only the zoos that a command names are imported.
"""

from runner.zoo.problem_files import (
    read_zoo_origin,
    select_models,
    write_zoo_problems,
)
from runner.zoo.recipe import ModelRecipe, Refusal, Zoo, ZooModel
from runner.zoo.registry import (
    find_shared_modules,
    list_zoo,
    list_zoos,
)

__all__ = [
    "ModelRecipe",
    "Refusal",
    "Zoo",
    "ZooModel",
    "find_shared_modules",
    "list_zoo",
    "list_zoos",
    "read_zoo_origin",
    "select_models",
    "write_zoo_problems",
]
