"""rtdl-revisiting-models' FTTransformer: tokens of columns, ReGLU blocks, a CLS token read at
the end."""

import torch
from rtdl_revisiting_models import FTTransformer


class Model(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.net = FTTransformer(
            n_cont_features=8,
            cat_cardinalities=[3, 5],
            d_out=2,
            n_blocks=blocks,
            d_block=48,
            attention_n_heads=4,
            attention_dropout=0.1,
            ffn_d_hidden_multiplier=4 / 3,
            ffn_dropout=0.1,
            residual_dropout=0.0,
        )

    def forward(self, numbers, categories):
        return self.net(numbers, categories)


def get_inputs():
    return [torch.randn(32, 8), torch.randint(0, 3, (32, 2))]


def get_init_inputs():
    return [3]
