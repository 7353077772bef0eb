"""XLNet language model with relative attention and memories."""

import torch
from pytorch_transformers import XLNetConfig, XLNetLMHeadModel
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = XLNetLMHeadModel(
            XLNetConfig(
                vocab_size_or_config_json_file=1000,
                d_model=128,
                n_layer=3,
                n_head=4,
                d_inner=256,
                mem_len=16,
            )
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 1000, (2, 32))]


def get_init_inputs():
    return []
