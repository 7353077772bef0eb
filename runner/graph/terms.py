"""This file knows about how class names are said in snake case, terms of the field kept whole."""

from __future__ import annotations

import re

# What the usual splitting at capitals would tear apart or leave joined.
TERMS = {
    "AlexNet": "alexnet", "ConvNeXt": "convnext", "DenseNet": "densenet",
    "EfficientNet": "efficientnet", "GEGLU": "geglu", "GELU": "gelu", "GPT": "gpt",
    "GRN": "grn", "GeGLU": "geglu", "GoogleNet": "googlenet", "L1Norm": "l1_norm",
    "L2Norm": "l2_norm", "LRN": "lrn", "LeNet": "lenet", "LoRA": "lora", "MLP": "mlp",
    "MaxViT": "maxvit", "MoE": "moe", "MobileNet": "mobilenet", "NetVlad": "netvlad",
    "PReLU": "prelu", "RMSNorm": "rms_norm", "ReGLU": "reglu", "ReLU": "relu", "RegNet": "regnet",
    "ResNet": "resnet", "RoPE": "rope", "ShuffleNet": "shufflenet", "SiLU": "silu",
    "SqueezeNet": "squeezenet", "SwiGLU": "swiglu", "SwiGlu": "swiglu", "Swiglu": "swiglu",
    "UNet": "unet", "ViT": "vit",
}  # fmt: skip

_TERM = re.compile(
    "(" + "|".join(sorted(map(re.escape, TERMS), key=len, reverse=True)) + r")(?![a-z])(\d*)"
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?!(?<=\d)D(?![a-z]))(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins: at a capital, but for the D of `Conv2D`."""


def snake_case(name: str) -> str:
    """`TransformerBlock` as `transformer_block`, `RMSNorm` as `rms_norm`, `ReLU6` as `relu6`."""
    name = _TERM.sub(lambda m: f"_{TERMS[m[1]]}{m[2]}_", name)
    text = re.sub(r"\W+", "_", _WORDS.sub("_", name)).lower()
    return re.sub(r"_+", "_", text).strip("_")
