"""Lists the models of diffusers in their default configurations.

Diffusers has no rule for a model's inputs, so a table gives them. A model that is not in the table
says so.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from runner.problems import InputExpression
from runner.zoo.diffusers_inputs import INPUTS, REFUSALS
from runner.zoo.recipe import ModelRecipe, Refusal, ZooModel


def list_models() -> Sequence[ZooModel]:
    """Return the classes of diffusers.models; a family is a module, such as `transformer_flux`."""
    import diffusers

    models = []
    for name in dir(diffusers.models):
        model_class = getattr(diffusers, name, None)
        if isinstance(model_class, type) and issubclass(model_class, diffusers.ModelMixin):
            family = model_class.__module__.rpartition(".")[2]
            if model_class is not diffusers.ModelMixin:
                models.append(ZooModel(name, family))
    return models


def find_recipe(name: str) -> ModelRecipe | Refusal:
    """Return the class without arguments, and the inputs that the table has for it."""
    import diffusers

    parameters = inspect.signature(getattr(diffusers, name).__init__).parameters
    arguments: dict[str, Any] = {key: parameter.default for key, parameter in parameters.items()}
    required = [key for key, value in arguments.items() if value is inspect.Parameter.empty]
    if missing := [key for key in required if key not in ("self", "args", "kwargs")]:
        return Refusal(f"has no default configuration: it needs {', '.join(missing)}")
    if name in REFUSALS:
        return Refusal(REFUSALS[name])
    if name not in INPUTS:
        return Refusal("kdrun has no inputs for its forward(), and diffusers documents no rule")
    inputs = INPUTS[name]
    if isinstance(inputs, str):
        return ModelRecipe(f"diffusers:{name}", "[]", inputs.format(**arguments))
    return ModelRecipe(
        f"diffusers:{name}", "[]", [InputExpression(*item) for item in inputs.items()]
    )
