"""Mimi audio codec, small: SEANet, transformers and split residual vector quantization."""

import torch
from moshi.models import get_mimi
from torch import nn

SEANET = {
    "channels": 1,
    "dimension": 64,
    "causal": True,
    "n_filters": 8,
    "n_residual_layers": 1,
    "activation": "ELU",
    "compress": 2,
    "dilation_base": 2,
    "disable_norm_outer_blocks": 0,
    "kernel_size": 7,
    "residual_kernel_size": 3,
    "last_kernel_size": 3,
    "norm": "none",
    "pad_mode": "constant",
    "ratios": [8, 6, 5, 4],
    "true_skip": True,
}
TRANSFORMER = {
    "d_model": 64,
    "num_heads": 4,
    "num_layers": 2,
    "causal": True,
    "layer_scale": 0.01,
    "context": 250,
    "conv_layout": True,
    "max_period": 10000,
    "gating": "none",
    "norm": "layer_norm",
    "positional_embedding": "rope",
    "dim_feedforward": 128,
    "input_dimension": 64,
    "output_dimensions": [64],
}
CONFIG = {
    "sample_rate": 24000,
    "channels": 1,
    "frame_rate": 12.5,
    "seanet": SEANET,
    "transformer": TRANSFORMER,
    "quantizer": {
        "dimension": 32,
        "n_q": 8,
        "bins": 256,
        "input_dimension": 64,
        "output_dimension": 64,
    },
}


class Model(nn.Module):
    def __init__(self, codebooks):
        super().__init__()
        self.model = get_mimi(None, CONFIG, num_codebooks=codebooks)

    def forward(self, x):
        result = self.model(x)
        return result.x, result.codes


def get_inputs():
    return [torch.randn(1, 1, 1920 * 4)]


def get_init_inputs():
    return [4]
