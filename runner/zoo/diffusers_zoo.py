"""Lists the models of diffusers in their default configurations.

Diffusers has no rule for a model's inputs, so a table gives those that its documentation shows. A
model that is not in the table says so.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from runner.zoo.recipe import ModelRecipe, Refusal, ZooModel

_IMAGE = "float32[1,{in_channels},256,256]"
_VIDEO = "float32[1,{in_channels},9,256,256]"
_LATENT = "float32[1,{in_channels},64,64], int64[1]=500"
_CLIP_TEXT = "float32[1,77,{cross_attention_dim}]"
_PACKED_IDS = "img_ids=float32[1024,3]=0, txt_ids=float32[512,3]=0"
_PACKED = (
    "hidden_states=float32[1,1024,{in_channels}], timestep=float32[1]=0.5, "
    "encoder_hidden_states=float32[1,512,{joint_attention_dim}], " + _PACKED_IDS
)
_VIDEO_LATENT = (
    "hidden_states=float32[1,{in_channels},5,32,32], timestep=int64[1]=500, "
    "encoder_hidden_states=float32[1,512,{text_dim}]"
)
_SIZES = (
    "original_size=float32[1,2]=1024, target_size=float32[1,2]=1024, crop_coords=float32[1,2]=0"
)

_INPUTS: dict[str, tuple[str, ...]] = {
    _IMAGE: (
        *("AsymmetricAutoencoderKL", "AutoencoderDC", "AutoencoderKL", "AutoencoderKLFlux2"),
        *("AutoencoderKLKVAE", "AutoencoderTiny", "VQModel"),
    ),
    "float32[1,3,224,224]": ("AutoencoderRAE",),
    _VIDEO: (
        *("AutoencoderKLAllegro", "AutoencoderKLCogVideoX", "AutoencoderKLCosmos"),
        *("AutoencoderKLHunyuanVideo", "AutoencoderKLHunyuanVideo15", "AutoencoderKLKVAEVideo"),
        *("AutoencoderKLHunyuanImageRefiner", "AutoencoderKLLTX2Video", "AutoencoderKLLTXVideo"),
        *("AutoencoderKLMagvit", "AutoencoderKLWan"),
    ),
    "float32[1,3,1,256,256]": ("AutoencoderKLQwenImage",),
    "float32[2,{in_channels},256,256], num_frames=2": ("AutoencoderKLTemporalDecoder",),
    "float32[1,{audio_channels},65536]": ("AutoencoderOobleck", "AutoencoderSAME"),
    "float32[1,{in_channels},{sample_size}], int64[1]=500": ("UNet1DModel",),
    _LATENT: ("UNet2DModel",),
    f"{_LATENT}, {_CLIP_TEXT}": ("UNet2DConditionModel",),
    f"{_LATENT}, {_CLIP_TEXT}, float32[1,{{conditioning_channels}},512,512]": ("ControlNetModel",),
    "float32[1,{in_channels},16,32,32], int64[1]=500, float32[1,77,{cross_attention_dim}]": (
        "UNet3DConditionModel",
        "UNetMotionModel",
    ),
    "float32[1,14,{in_channels},64,64], float32[1]=0.5, float32[1,1,{cross_attention_dim}], "
    "float32[1,3]": ("UNetSpatioTemporalConditionModel",),
    "float32[1,{in_channels},64,64], int64[1]=500, "
    "encoder_hidden_states=float32[1,128,{encoder_hid_dim}], "
    "encoder_attention_mask=int64[1,128]=1": ("Kandinsky3UNet",),
    "int64[1,16,16]<{codebook_size}, float32[1,77,{encoder_hidden_size}], "
    "float32[1,{cond_embed_dim}], float32[1,5]": ("UVit2DModel",),
    "float32[1,{embedding_dim}], int64[1]=500, float32[1,{embedding_dim}], "
    "float32[1,{num_embeddings},{embedding_dim}]": ("PriorTransformer",),
    "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], timestep=int64[1]=500, "
    "class_labels=int64[1]=207": ("DiTTransformer2DModel",),
    "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
    "encoder_hidden_states=float32[1,154,{joint_attention_dim}], "
    "pooled_projections=float32[1,{pooled_projection_dim}], timestep=int64[1]=500": (
        "SD3Transformer2DModel",
    ),
    "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
    "encoder_hidden_states=float32[1,256,{joint_attention_dim}], timestep=float32[1]=0.5": (
        "AuraFlowTransformer2DModel",
    ),
    "float32[1,{in_channels},{sample_size},{sample_size}], float32[1,300,{caption_channels}], "
    "int64[1]=500": ("SanaTransformer2DModel",),
    "float32[1,{in_channels},{sample_size},{sample_size}], float32[1]=0.5, "
    "float32[1,256,{cap_feat_dim}], bool[1,256]=true": ("Lumina2Transformer2DModel",),
    "float32[1,13,{in_channels},60,90], float32[1,{max_text_seq_length},{text_embed_dim}], "
    "int64[1]=500": ("CogVideoXTransformer3DModel",),
    "hidden_states=float32[1,{in_channels},{sample_size},{sample_size}], "
    "encoder_hidden_states=float32[1,224,{text_embed_dim}], timestep=int64[1]=500, " + _SIZES: (
        "CogView3PlusTransformer2DModel",
        "CogView4Transformer2DModel",
    ),
    _PACKED: ("ChromaTransformer2DModel", "BriaTransformer2DModel"),
    f"{_PACKED}, pooled_projections=float32[1,{{pooled_projection_dim}}]": (
        "FluxTransformer2DModel",
    ),
    _VIDEO_LATENT: (
        *("ChronoEditTransformer3DModel", "SkyReelsV2Transformer3DModel"),
        "WanTransformer3DModel",
    ),
    "hidden_states=float32[1,{in_channels},5,32,32], timestep=int64[1]=500, "
    "encoder_hidden_states=float32[1,256,{text_embed_dim}], encoder_attention_mask=int64[1,256]=1, "
    "pooled_projections=float32[1,{pooled_projection_dim}], guidance=float32[1]=6": (
        "HunyuanVideoTransformer3DModel",
    ),
    "hidden_states=float32[1,1024,{in_channels}], timestep=int64[1]=500, "
    "encoder_hidden_states=float32[1,128,{caption_channels}], "
    "encoder_attention_mask=int64[1,128]=1, num_frames=4, height=16, width=16": (
        "LTXVideoTransformer3DModel",
    ),
    "float32[1,{in_channels},4,32,32], float32[1,{max_sequence_length},{text_embed_dim}], "
    "int64[1]=500, bool[1,{max_sequence_length}]=true": ("MochiTransformer3DModel",),
    "float32[1,{in_channels},64,64], float32[1]=0.5, float32[1,256,{context_in_dim}]": (
        "PRXTransformer2DModel",
    ),
}
"""Inputs of forward() -> models; a name in braces is an argument of the class, with its default."""


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
    for text, names in _INPUTS.items():
        if name in names:
            return ModelRecipe(f"diffusers:{name}", "[]", text.format(**arguments))
    return Refusal("kdrun has no inputs for its forward(), and diffusers documents no rule")
