"""Lists the models of transformers: each architecture in its default configuration.

A language model has its head (`LlamaForCausalLM`), an encoder-decoder both of its sides; of any
other architecture it is the class that `AutoModel` builds. Inputs follow from the names of
forward's parameters, or else from a table of classes. Sequences are full, so that no padding mask
is given: transformers reads a mask's values, and drops one that masks nothing.
"""

import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.problems import InputExpression
from runner.problems.input_language import parse_inputs
from runner.zoo.recipe import ModelRecipe, Refusal, ZooModel
from runner.zoo.transformers_inputs import INPUTS, REFUSALS

SEQUENCE = 128
_AUDIO_SAMPLES = 16_000
"""Samples of one second at the rate that the speech models are trained with."""
_IMAGE_SIZE = 640
"""Size of an image for detectors, whose configuration names none."""
_GRID = 32
"""Patches in the height and the width of an image that is given as rows of patches."""
_FRAMES = 128
"""Frames of a spectrogram where the configuration names no length."""


def list_models() -> Sequence[ZooModel]:
    """Return one class for each architecture; a family is a folder of transformers.models."""
    from transformers.models.auto.configuration_auto import model_type_to_module_name

    families: dict[str, str] = {}
    for model_type, name in _class_names().items():
        family = model_type_to_module_name(model_type)
        is_own = name.lower().startswith(family.replace("_", ""))
        if name not in families or is_own:  # exaone is called a LlamaForCausalLM, too
            families[name] = family
    return [ZooModel(name, family) for name, family in families.items()]


def find_recipe(name: str) -> ModelRecipe | Refusal:
    """Return the class with its default configuration, and its main inputs and masks."""
    import transformers

    # Default configurations contradict themselves, and warn of it.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        model_class: Any = getattr(transformers, name)
        config = model_class.config_class()
    except Exception as error:  # the package's own code, with what it needs beside it
        return Refusal(f"has no default configuration here: {type(error).__name__}: {error}")
    if name in REFUSALS:
        return Refusal(REFUSALS[name])
    known, inputs = INPUTS.get(name), list[InputExpression]()
    if isinstance(known, str):
        inputs = parse_inputs(known)
    elif known is not None:
        inputs = [InputExpression(*item) for item in known.items()]
    else:
        called = _find_called_parameters(model_class, config)
        for parameter in called:
            if "grid_thw" in called and (patches := _patches(config, parameter)):
                inputs.append(InputExpression(parameter, patches))
                continue
            rule = _INPUT_RULES.get(parameter)
            text = rule(config) if rule else None
            if text is None:
                reason = f"its forward() needs {parameter}, for which there is no default size"
                return Refusal(reason)
            inputs += parse_inputs(f"{parameter}={text}")
    config_class = type(config)
    module = (
        "transformers" if hasattr(transformers, config_class.__name__) else config_class.__module__
    )
    return ModelRecipe(
        f"transformers:{name}", json.dumps({f"{module}:{config_class.__name__}": {}}), inputs
    )


def _class_names() -> Mapping[str, str]:
    """Return model type -> name of the class that stands for it."""
    from transformers.models.auto import modeling_auto as auto

    bases = auto.MODEL_MAPPING_NAMES
    causal = {
        model_type: name
        for model_type, name in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()
        if model_type not in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    }
    chosen = {
        **bases,
        **causal,
        **auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
        **auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    }
    return {
        model_type: name if isinstance(name, str) else name[0]
        for model_type, name in chosen.items()
    }


def _find_called_parameters(model_class: Any, config: Any) -> list[str]:
    """Return the parameters of forward() that are given: the required and the main ones."""
    parameters = inspect.signature(model_class.forward).parameters
    named = [
        parameter
        for parameter in list(parameters.values())[1:]
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    wanted = {p.name for p in named if p.default is p.empty}
    main = model_class.main_input_name  # a list for a model with several
    wanted |= {main} if isinstance(main, str) else {*main}
    reads_images = getattr(config, "vision_config", None) is not None
    if main == "input_ids" and reads_images and not hasattr(config, "image_token_id"):
        wanted.add("pixel_values")  # both sides of a contrastive model, such as CLIP
    if getattr(config, "is_encoder_decoder", False):
        wanted.add("decoder_input_ids")
    wanted.add("use_cache")
    return [parameter.name for parameter in named if parameter.name in wanted]


def _parts(config: Any) -> list[Any]:
    """Return a configuration and those of its parts that read images or sounds."""
    names = ("vision_config", "audio_config", "backbone_config", "encoder", "encoder_config")
    return [config, *(part for name in names if (part := getattr(config, name, None)) is not None)]


def _find_value(config: Any, *names: str) -> Any:
    """Return the first attribute that the configuration or one of its parts sets, or None."""
    for part in _parts(config):
        for name in names:
            if (value := getattr(part, name, None)) is not None:
                return value
    return None


def _ids(config: Any) -> str | None:
    vocabulary = getattr(config.get_text_config(), "vocab_size", None) or _find_value(
        config, "vocab_size"
    )
    return _tokens(config.get_text_config(), vocabulary)


def _tokens(config: Any, vocabulary: object) -> str | None:
    """Return token ids: SEQUENCE of them, or as many as there are positions."""
    positions = getattr(config, "max_position_embeddings", None)
    length = min(SEQUENCE, positions) if isinstance(positions, int) else SEQUENCE
    return f"int64[1,{length}]<{vocabulary}" if isinstance(vocabulary, int) else None


def _decoder_ids(config: Any) -> str | None:
    decoder = config.get_text_config(decoder=True)
    vocabulary = getattr(decoder, "vocab_size", None)
    return _tokens(decoder, vocabulary) or _ids(config)


def _pixels(config: Any) -> str | None:
    size = _find_value(config, "image_size", "crop_size")
    if isinstance(size, Mapping):
        size = (size.get("height"), size.get("width"))
    height, width = size if isinstance(size, Sequence) else (size or _IMAGE_SIZE,) * 2
    channels = _find_value(config, "num_channels", "in_channels", "in_chans") or 3
    frames = _find_value(config, "num_frames", "frames_per_clip")
    leading = f"1,{frames}" if isinstance(frames, int) else "1"
    return f"float32[{leading},{channels},{height},{width}]"


def _patches(config: Any, parameter: str) -> str | None:
    """Return an image as rows of patches, or the number of its patches in time, height and width.

    The towers that take `grid_thw` read such rows, so that images of any size fit in a batch.
    """
    if parameter == "grid_thw":
        return f"torch.tensor([[1, {_GRID}, {_GRID}]])"
    patch = getattr(config, "patch_size", None)
    if parameter not in {"hidden_states", "pixel_values"} or not isinstance(patch, int):
        return None
    channels = _find_value(config, "num_channels", "in_channels", "in_chans") or 3
    frames = getattr(config, "temporal_patch_size", None) or 1
    return f"torch.randn({_GRID**2}, {channels * frames * patch**2})"


def _spectrogram(config: Any) -> str | None:
    """Return log-mel features; channels come first where two convolutions halve the frames."""
    if (positions := _find_value(config, "max_source_positions")) and (
        mels := _find_value(config, "num_mel_bins")
    ):
        return f"float32[1,{mels},{2 * positions}]"
    width = _find_value(
        config,
        "feature_projection_input_dim",
        "input_feat_per_channel",
        "num_mel_bins",
        "input_dim",
        "feature_size",
    )
    return f"float32[1,{_FRAMES},{width}]" if isinstance(width, int) else None


def _sound(config: Any) -> str | None:
    if (mels := _find_value(config, "num_mel_bins")) and (
        frames := _find_value(config, "max_length")
    ):
        return f"float32[1,{frames},{mels}]"
    channels = getattr(config, "audio_channels", None)
    return f"float32[1,{channels},{_AUDIO_SAMPLES}]" if channels else f"float32[1,{_AUDIO_SAMPLES}]"


def _past_values(config: Any) -> str | None:
    length, channels = (
        getattr(config, "context_length", None),
        getattr(config, "num_input_channels", None),
    )
    return f"float32[1,{length},{channels}]" if length and channels else None


_INPUT_RULES: Mapping[str, Callable[[Any], str | None]] = {
    "input_ids": _ids,
    "attention_mask": lambda _: f"int64[1,{SEQUENCE}]=1",
    "decoder_input_ids": _decoder_ids,
    "pixel_values": _pixels,
    "pixel_values_videos": _pixels,
    "input_features": _spectrogram,
    "input_values": _sound,
    "past_values": _past_values,
    "use_cache": lambda _: "false",
}
"""Text of an input, by the name of forward()'s parameter and the configuration."""
