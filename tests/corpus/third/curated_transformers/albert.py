"""ALBERT of the curated-transformers library: 12 layers that share two groups of weights."""

import torch
from curated_transformers.layers.attention import AttentionMask
from curated_transformers.models import ALBERTConfig, ALBERTEncoder


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = ALBERTEncoder(
            ALBERTConfig(
                embedding_width=128,
                hidden_width=width,
                intermediate_width=4 * width,
                n_attention_heads=8,
                n_hidden_layers=layers,
                n_hidden_groups=2,
                n_layers_per_group=1,
                n_pieces=8000,
            )
        )

    def forward(self, pieces, mask, types):
        output = self.net(pieces, AttentionMask(mask), type_ids=types)
        return output.last_hidden_layer_state


def get_inputs():
    mask = torch.ones(2, 96, dtype=torch.bool)
    mask[1, 70:] = False
    types = torch.cat([torch.zeros(2, 40), torch.ones(2, 56)], dim=1).long()
    return [torch.randint(0, 8000, (2, 96)), mask, types]


def get_init_inputs():
    return [512, 12]
