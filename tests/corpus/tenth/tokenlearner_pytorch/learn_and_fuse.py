"""TokenLearner, a layer over the tokens, and TokenFuser, from tokenlearner-pytorch."""

import torch
from tokenlearner_pytorch.tokenlearner_pytorch import TokenFuser, TokenLearner
from torch import nn


class Model(nn.Module):
    def __init__(self, size, channels, tokens):
        super().__init__()
        self.learner = TokenLearner(tokens)
        self.mixer = nn.TransformerEncoderLayer(channels, 4, 2 * channels, batch_first=True)
        self.fuser = TokenFuser(size, size, channels, tokens)

    def forward(self, image):
        return self.fuser(self.mixer(self.learner(image)), image)


def get_inputs():
    return [torch.randn(2, 16, 16, 64)]


def get_init_inputs():
    return [16, 64, 8]
