"""RetNet in its parallel form: retention with a decay for each head, gated, over 48 tokens."""

import torch
from torchscale.architecture.config import RetNetConfig
from torchscale.architecture.retnet import RetNetDecoder


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        config = RetNetConfig(
            vocab_size=1000,
            decoder_embed_dim=dim,
            decoder_value_embed_dim=2 * dim,
            decoder_ffn_embed_dim=2 * dim,
            decoder_retention_heads=4,
            decoder_layers=layers,
        )
        self.net = RetNetDecoder(config, embed_tokens=torch.nn.Embedding(1000, dim))

    def forward(self, tokens):
        return self.net(tokens)[0]


def get_inputs():
    return [torch.randint(0, 1000, (1, 48))]


def get_init_inputs():
    return [128, 3]
