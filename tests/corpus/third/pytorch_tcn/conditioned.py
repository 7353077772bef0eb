"""Causal temporal convolution network with weight norm, gates, skip connections and two conditions
mixed in by embedding layers."""

import torch
from pytorch_tcn import TCN


class Model(torch.nn.Module):
    def __init__(self, channels, widths):
        super().__init__()
        self.net = TCN(
            num_inputs=channels,
            num_channels=widths,
            kernel_size=4,
            dilation_reset=16,
            use_norm="weight_norm",
            use_skip_connections=True,
            embedding_shapes=[(16,), (8, None)],
            embedding_mode="concat",
            use_gate=True,
            output_projection=10,
            output_activation="tanh",
        )

    def forward(self, signal, speaker, pitch):
        return self.net(signal, embeddings=[speaker, pitch])


def get_inputs():
    return [torch.randn(2, 24, 400), torch.randn(2, 16), torch.randn(2, 8, 400)]


def get_init_inputs():
    return [24, [64, 64, 96, 96, 128, 128]]
