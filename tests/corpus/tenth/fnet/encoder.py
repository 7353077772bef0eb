"""FNet, whose tokens are mixed by Fourier transforms, from fnet-pytorch."""

import torch
from fnet import FNet
from torch import nn


class Model(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.model = FNet(
            {
                "vocab_size": 2000,
                "embedding_size": 128,
                "hidden_size": hidden,
                "intermediate_size": 4 * hidden,
                "max_position_embeddings": 128,
                "type_vocab_size": 4,
                "num_hidden_layers": layers,
                "pad_token_id": 3,
                "layer_norm_eps": 1e-12,
                "dropout_rate": 0.1,
                "fourier": "fft",
            }
        )

    def forward(self, ids, types):
        return self.model(ids, types)


def get_inputs():
    return [torch.randint(4, 2000, (2, 128)), torch.randint(0, 4, (2, 128))]


def get_init_inputs():
    return [192, 3]
