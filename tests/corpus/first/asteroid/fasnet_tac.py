"""asteroid's FasNetTAC: a beamformer of four microphones, the last of which one recording lacks."""

import torch
from asteroid.models import FasNetTAC


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = FasNetTAC(
            2,
            enc_dim=width,
            feature_dim=width,
            hidden_dim=2 * width,
            n_layers=layers,
            tac_hidden_dim=3 * width,
        )

    def forward(self, waves, microphones):
        return self.net(waves, microphones)


def get_inputs():
    return [torch.randn(2, 4, 3200), torch.tensor([4, 3])]


def get_init_inputs():
    return [32, 2]
