"""Audio tagging on torchlibrosa's layers: STFT by convolution, log-mel, and PANNs' CNN blocks with
pooling over time and frequency."""

import torch
from torch import nn
from torchlibrosa.stft import LogmelFilterBank, Spectrogram


class Block(nn.Sequential):
    def __init__(self, before, after):
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )


class Model(nn.Module):
    def __init__(self, rate, classes):
        super().__init__()
        self.spectrogram = Spectrogram(n_fft=512, hop_length=160, win_length=512)
        self.logmel = LogmelFilterBank(sr=rate, n_fft=512, n_mels=64, fmin=50, fmax=7000)
        self.norm = nn.BatchNorm2d(64)
        self.blocks = nn.Sequential(Block(1, 32), Block(32, 64), Block(64, 128), Block(128, 256))
        self.dense = nn.Linear(256, 256)
        self.head = nn.Linear(256, classes)

    def forward(self, audio):
        x = self.logmel(self.spectrogram(audio))
        x = self.norm(x.transpose(1, 3)).transpose(1, 3)
        x = self.blocks(x).mean(dim=3)
        x = x.amax(dim=2) + x.mean(dim=2)
        return torch.sigmoid(self.head(torch.relu(self.dense(x))))


def get_inputs():
    return [torch.randn(2, 16000) * 0.1]


def get_init_inputs():
    return [16000, 50]
