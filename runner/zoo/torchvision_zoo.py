"""Lists the models of torchvision, with the inputs that its documentation shows for their task."""

import inspect
import json
from collections.abc import Sequence
from typing import Any

from runner.problems import InputExpression
from runner.zoo.recipe import ModelRecipe, Refusal, ZooModel

_SEGMENTATION_SIZE = 520
_IMAGE_SIZE = 224
_DETECTION_SIZE = 800
"""Shortest side that the detectors resize an image to, unless their name has another size."""
_FRAMES = 16
_FLOW_SIZE = (520, 960)


def list_models() -> Sequence[ZooModel]:
    """Return torchvision's models; a family is a module, such as `detection.faster_rcnn`."""
    from torchvision import models

    return [
        ZooModel(name, _family(models.get_model_builder(name))) for name in models.list_models()
    ]


def find_recipe(name: str) -> ModelRecipe | Refusal:
    """Return the call of `torchvision.models.get_model`, without weights of any part."""
    from torchvision import models

    builder = models.get_model_builder(name)
    arguments: dict[str, object] = {"name": name, "weights": None}
    if "weights_backbone" in inspect.signature(builder).parameters:
        arguments["weights_backbone"] = None
    inputs = _find_inputs(name, _family(builder), next(iter(models.get_model_weights(name)), None))
    if inputs is None:
        return Refusal(f"torchvision documents no input size for {name}")
    return ModelRecipe("torchvision.models:get_model", json.dumps(arguments), inputs)


def _find_inputs(name: str, family: str, weights: Any) -> str | Sequence[InputExpression] | None:
    task, _, _ = family.rpartition(".")
    if task == "detection":
        side = next((s for s in (300, 320) if str(s) in name), _DETECTION_SIZE)
        return [InputExpression(None, f"[torch.rand(3, {side}, {side})]")]
    if task == "segmentation":
        return f"float32[1,3,{_SEGMENTATION_SIZE},{_SEGMENTATION_SIZE}]"
    if task == "optical_flow":
        image = "float32[1,3,{},{}]".format(*_FLOW_SIZE)
        return f"{image}, {image}"
    size = getattr(weights and weights.transforms, "keywords", {}).get("crop_size")
    if size is None:
        return None
    if family == "vision_transformer":
        size = _IMAGE_SIZE  # It is built for this one, whatever its weights were trained with.
    height, width = size if isinstance(size, tuple | list) else (size, size)
    frames = f"{_FRAMES}," if task == "video" else ""
    return f"float32[1,3,{frames}{height},{width}]"


def _family(builder: object) -> str:
    return str(getattr(builder, "__module__", "")).removeprefix("torchvision.models.")
