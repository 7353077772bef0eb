"""fair-esm's ESM-2: a protein's language model with rotary positions, token dropout and
predicted contacts."""

import torch
from esm.model.esm2 import ESM2


class Model(torch.nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.net = ESM2(num_layers=layers, embed_dim=width, attention_heads=8)

    def forward(self, tokens):
        result = self.net(tokens, repr_layers=[self.net.num_layers], return_contacts=True)
        return result["logits"], result["contacts"]


def get_inputs():
    return [
        torch.cat(
            [
                torch.zeros(2, 1, dtype=torch.long),
                torch.randint(4, 24, (2, 40)),
                torch.full((2, 1), 2),
            ],
            1,
        )
    ]


def get_init_inputs():
    return [4, 128]
