"""Defines what a package returns that registers its models as a zoo of kdrun.

The entry point `kdrun.zoos` of the package names a module or an object with two functions:
`list_models()` returns ZooModels, and `find_recipe(name)` a ModelRecipe, or a Refusal with its
reason.
"""

from runner.zoo import ModelRecipe, Refusal, Zoo, ZooModel

__all__ = ["ModelRecipe", "Refusal", "Zoo", "ZooModel"]
