"""Encoder, recurrent cell and decoder of a world model, from sheeprl."""

import torch
from sheeprl.models.models import CNN, MLP, DeCNN, LayerNormGRUCell
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        conv = {"kernel_size": 4, "stride": 2, "padding": 1}
        self.encoder = CNN(
            3, [width, 2 * width, 4 * width, 8 * width], layer_args=conv, activation=nn.SiLU
        )
        self.before = MLP(8 * width * 16 + 6, None, [hidden], activation=nn.SiLU)
        self.cell = LayerNormGRUCell(hidden, hidden, bias=False, layer_norm_cls=nn.LayerNorm)
        self.after = MLP(hidden, 8 * width * 16, [hidden], activation=nn.SiLU)
        self.decoder = DeCNN(
            8 * width,
            [4 * width, 2 * width, width, 3],
            layer_args=conv,
            activation=[nn.SiLU] * 3 + [None],
        )
        self.width = width

    def forward(self, frames, actions):
        state, out = frames.new_zeros(frames.shape[1], self.cell.hidden_size), []
        for frame, action in zip(frames, actions, strict=True):
            seen = self.encoder(frame).flatten(1)
            state = self.cell(self.before(torch.cat([seen, action], -1)), state)
            out.append(self.decoder(self.after(state).view(-1, 8 * self.width, 4, 4)))
        return torch.stack(out), state


def get_inputs():
    return [torch.rand(4, 2, 3, 64, 64), torch.randn(4, 2, 6)]


def get_init_inputs():
    return [16, 128]
