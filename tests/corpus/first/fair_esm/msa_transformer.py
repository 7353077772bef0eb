"""fair-esm's MSA Transformer: attention along the rows and columns of aligned proteins."""

from argparse import Namespace

import torch
from esm import Alphabet
from esm.model.msa_transformer import MSATransformer


class Model(torch.nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        settings = Namespace(
            layers=layers,
            embed_dim=width,
            ffn_embed_dim=4 * width,
            attention_heads=4,
            dropout=0.1,
            attention_dropout=0.1,
            activation_dropout=0.1,
            max_tokens=2**14,
            max_positions=128,
            embed_positions_msa=True,
            embed_positions_msa_dim=width,
            max_tokens_per_msa=2**14,
            logit_bias=True,
        )
        self.net = MSATransformer(settings, Alphabet.from_architecture("msa_transformer"))

    def forward(self, tokens):
        return self.net(tokens)["logits"]


def get_inputs():
    return [
        torch.cat([torch.zeros(1, 6, 1, dtype=torch.long), torch.randint(4, 24, (1, 6, 31))], 2)
    ]


def get_init_inputs():
    return [3, 96]
