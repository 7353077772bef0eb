"""TimesFM 2.5 made smaller: patches of 32 points and their mask, a decoder with rotary positions
and normalised queries and keys, 128 points ahead with quantiles for every patch."""

import dataclasses

import torch
from timesfm.timesfm_2p5.timesfm_2p5_torch import TimesFM_2p5_200M_torch_module as Full

stack = Full.config.stacked_transformers


def block(layer, dim):
    return dataclasses.replace(layer, input_dims=dim, hidden_dims=dim, output_dims=dim)


def small(dim, layers):
    transformer = dataclasses.replace(
        stack.transformer, model_dims=dim, hidden_dims=dim, num_heads=8
    )
    return dataclasses.replace(
        Full.config,
        tokenizer=dataclasses.replace(Full.config.tokenizer, hidden_dims=dim, output_dims=dim),
        stacked_transformers=dataclasses.replace(stack, num_layers=layers, transformer=transformer),
        output_projection_point=dataclasses.replace(
            Full.config.output_projection_point, input_dims=dim, hidden_dims=dim
        ),
        output_projection_quantiles=dataclasses.replace(
            Full.config.output_projection_quantiles, input_dims=dim, hidden_dims=dim
        ),
    )


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.net = type("Small", (Full,), {"config": small(dim, layers)})()

    def forward(self, series, mask):
        patches = series.unflatten(1, (-1, 32)), mask.unflatten(1, (-1, 32))
        (_, _, points, spread), _ = self.net(*patches)
        return points, spread


def get_inputs():
    mask = torch.zeros(2, 256, dtype=torch.bool)
    mask[0, :64] = True
    return [torch.randn(2, 256), mask]


def get_init_inputs():
    return [256, 4]
