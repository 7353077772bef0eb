"""transformers' XLNet: two streams of attention with a permutation of the tokens, two of which
are predicted."""

import torch
from transformers import XLNetConfig, XLNetLMHeadModel


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = XLNetLMHeadModel(
            XLNetConfig(vocab_size=300, d_model=width, n_layer=layers, n_head=4, d_inner=2 * width)
        )

    def forward(self, tokens, order, predicted):
        return self.net(tokens, perm_mask=order, target_mapping=predicted, use_mems=False).logits


def get_inputs():
    predicted = torch.zeros(2, 2, 20)
    predicted[:, 0, 18] = predicted[:, 1, 19] = 1.0
    return [
        torch.randint(0, 300, (2, 20)),
        torch.ones(20, 20).triu().expand(2, 20, 20).clone(),
        predicted,
    ]


def get_init_inputs():
    return [64, 2]
