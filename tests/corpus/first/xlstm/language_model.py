"""xlstm's language model: blocks of the matrix LSTM and one of the scalar LSTM."""

import torch
from xlstm import (
    FeedForwardConfig,
    mLSTMBlockConfig,
    mLSTMLayerConfig,
    sLSTMBlockConfig,
    sLSTMLayerConfig,
    xLSTMLMModel,
    xLSTMLMModelConfig,
)


class Model(torch.nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        scalar = sLSTMLayerConfig(
            backend="vanilla", num_heads=4, conv1d_kernel_size=4, dtype="float32"
        )
        config = xLSTMLMModelConfig(
            mlstm_block=mLSTMBlockConfig(mLSTMLayerConfig(num_heads=4)),
            slstm_block=sLSTMBlockConfig(scalar, FeedForwardConfig(act_fn="gelu")),
            context_length=24,
            num_blocks=blocks,
            embedding_dim=width,
            slstm_at=[1],
            vocab_size=300,
        )
        self.net = xLSTMLMModel(config)

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 300, (2, 24))]


def get_init_inputs():
    return [64, 4]
