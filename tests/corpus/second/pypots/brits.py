"""BRITS: a recurrence with time gaps in each direction over 16 steps, imputing as it goes."""

import torch
from pypots.nn.modules.brits import BackboneBRITS


class Model(torch.nn.Module):
    def __init__(self, steps, features, hidden):
        super().__init__()
        self.backbone = BackboneBRITS(steps, features, hidden)

    def forward(self, series, observed, gaps):
        inputs = {
            "forward": {"X": series, "missing_mask": observed, "deltas": gaps},
            "backward": {
                "X": series.flip(1),
                "missing_mask": observed.flip(1),
                "deltas": gaps.flip(1),
            },
        }
        return self.backbone(inputs)[0]


def get_inputs():
    return [
        torch.randn(4, 16, 8),
        torch.randint(0, 2, (4, 16, 8)).float(),
        torch.rand(4, 16, 8) * 3,
    ]


def get_init_inputs():
    return [16, 8, 32]
