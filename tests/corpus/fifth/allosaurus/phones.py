"""Allosaurus: two-way LSTMs that give the phones of any language, from frames of speech."""

from argparse import Namespace

import torch
from allosaurus.am.allosaurus_torch import AllosaurusTorchModel


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.net = AllosaurusTorchModel(
            Namespace(
                feat_size=features,
                hidden_size=320,
                layer_size=5,
                proj_size=0,
                phone_size=230,
                lang_size_dict={"eng": 40},
                loss="ctc",
            )
        )

    def forward(self, frames):
        lengths = torch.full((frames.shape[0],), frames.shape[1])
        return self.net(frames, lengths)


def get_inputs():
    return [torch.randn(2, 60, 120)]


def get_init_inputs():
    return [120]
