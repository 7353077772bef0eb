"""FT-Transformer on numbers and categories, from rtdl."""

import rtdl
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, numbers, cardinalities, outputs):
        super().__init__()
        self.model = rtdl.FTTransformer.make_default(
            n_num_features=numbers,
            cat_cardinalities=cardinalities,
            last_layer_query_idx=[-1],
            d_out=outputs,
        )

    def forward(self, numbers, categories):
        return self.model(numbers, categories)


def get_inputs():
    categories = torch.stack([torch.randint(0, n, (64,)) for n in (4, 12, 7)], 1)
    return [torch.randn(64, 10), categories]


def get_init_inputs():
    return [10, [4, 12, 7], 3]
