"""Converts class names to snake case, with the field's terms in one piece."""

from __future__ import annotations

import re

# Terms that splitting at capitals alone would cut wrongly. `WaveNet`, `GATv2`, `DiT`, `E2E` and
# `mLSTM` need no entry, since the patterns below split them correctly.
TERMS = {
    "ALiBi": "alibi", "AdaIN": "adain", "AdaLN": "adaln", "BiFPN": "bifpn", "BiGRU": "bigru",
    "BiLSTM": "bilstm", "BoTNet": "botnet", "CoAtNet": "coatnet", "ConvNeXt": "convnext",
    "FiLM": "film", "GEGLU": "geglu", "GELU": "gelu", "GPT": "gpt", "GRN": "grn", "GeGLU": "geglu",
    "L1Norm": "l1_norm", "L2Norm": "l2_norm", "LRN": "lrn", "LeViT": "levit", "LoRA": "lora",
    "MBConv": "mbconv", "MLP": "mlp", "MaxViT": "maxvit", "MoE": "moe", "NeRF": "nerf",
    "NetVlad": "netvlad", "PReLU": "prelu", "RMSNorm": "rms_norm", "ReGLU": "reglu",
    "ReLU": "relu", "ResNeXt": "resnext", "ResNet": "resnet", "RoPE": "rope", "SiLU": "silu",
    "SwiGLU": "swiglu", "SwiGlu": "swiglu", "Swiglu": "swiglu", "UNet": "unet", "ViT": "vit",
    "Wav2Vec": "wav2vec", "XCiT": "xcit",
}  # fmt: skip

_TERM = re.compile(
    "("
    + "|".join(sorted(map(re.escape, TERMS), key=len, reverse=True))
    + r")(?![a-z])(\d*(?:(?<=\d)D(?![a-z]))?)"
)
_NO_WORD_START = (
    r"(?<=\d)D(?![a-z])",  # Conv2D
    r"(?<=[A-Z]\d)[A-Z](?![a-z])",  # E2E, S4D
    r"(?<=[A-Za-z0-9])Net(?![a-z])",  # WaveNet, HRNet, Res2Net
    r"(?<=[A-Z][a-z])T(?![a-z])",  # DiT
    r"(?<=[A-Z][a-z][a-z])T(?![a-z])",  # DeiT
    r"(?<=\b[a-z])[A-Z]{2}",  # mLSTM
)
"""Patterns for capitals that do not begin a new word."""
_WORDS = re.compile(
    rf"(?!{'|'.join(_NO_WORD_START)})(?:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!v\d)[a-z]))"
)
"""Matches the start of a word: a capital, except in `GATv2` and as `_NO_WORD_START` lists."""


def snake_case(name: str) -> str:
    """Return a name in snake case: `RMSNorm` as `rms_norm`, `ReLU6` as `relu6`."""
    name = _TERM.sub(lambda m: f"_{TERMS[m[1]]}{m[2]}_", name)
    text = re.sub(r"\W+", "_", _WORDS.sub("_", name)).lower()
    return re.sub(r"_+", "_", text).strip("_")
