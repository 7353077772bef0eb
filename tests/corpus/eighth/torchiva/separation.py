"""Independent vector analysis of spectra with a learnt source model, from torchiva."""

import torch
from torch import nn
from torchiva import STFT, T_ISS


class Mask(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(bins, 64, 3, padding=1), nn.ReLU(), nn.Conv1d(64, bins, 3, padding=1)
        )

    def forward(self, x):
        log_power = torch.log(x.abs().square() + 1e-5)
        return torch.sigmoid(self.net(log_power.flatten(0, -3))).view(x.shape)


class Model(nn.Module):
    def __init__(self, window, iterations):
        super().__init__()
        self.stft = STFT(window, hop_length=window // 2)
        self.separate = T_ISS(
            n_iter=iterations,
            n_taps=2,
            n_delay=1,
            n_src=2,
            model=Mask(window // 2 + 1),
            proj_back_mic=0,
        )

    def forward(self, mixture):
        return self.stft.inv(self.separate(self.stft(mixture)))


def get_inputs():
    return [torch.randn(1, 2, 16000)]


def get_init_inputs():
    return [512, 3]
