"""AbLang-2: a language model for antibodies with rotary attention and SwiGLU, padding masked."""

import torch
from ablang2.models.ablang2.ablang import AbLang


class Model(torch.nn.Module):
    def __init__(self, dim, heads, blocks):
        super().__init__()
        self.net = AbLang(26, dim, heads, blocks, padding_tkn=21, mask_tkn=23, a_fn="swiglu")

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    tokens = torch.randint(1, 21, (2, 48))
    tokens[1, 40:] = 21
    return [tokens]


def get_init_inputs():
    return [128, 4, 3]
