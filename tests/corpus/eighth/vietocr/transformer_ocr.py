"""VietOCR's convolutional backbone with a transformer over the characters."""

import torch
from torch import nn
from vietocr.model.transformerocr import VietOCR


class Model(nn.Module):
    def __init__(self, characters, dim):
        super().__init__()
        self.model = VietOCR(
            characters,
            "vgg11_bn",
            {
                "pretrained": False,
                "ss": [[2, 2], [2, 2], [2, 1], [2, 1], [1, 1]],
                "ks": [[2, 2], [2, 2], [2, 1], [2, 1], [1, 1]],
                "hidden": dim,
            },
            {
                "d_model": dim,
                "nhead": 8,
                "num_encoder_layers": 2,
                "num_decoder_layers": 2,
                "dim_feedforward": 512,
                "max_seq_length": 256,
                "pos_dropout": 0.1,
                "trans_dropout": 0.1,
            },
        )

    def forward(self, image, characters, padding):
        return self.model(image, characters, padding)


def get_inputs():
    padding = torch.zeros(2, 14, dtype=torch.bool)
    padding[1, 9:] = True
    return [torch.rand(2, 3, 32, 160), torch.randint(4, 233, (14, 2)), padding]


def get_init_inputs():
    return [233, 256]
