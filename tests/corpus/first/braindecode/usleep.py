"""braindecode's USleep: a deep U-Net in time that names the stages of sleep."""

import torch
from braindecode.models import USleep


class Model(torch.nn.Module):
    def __init__(self, depth, classes):
        super().__init__()
        self.net = USleep(
            n_chans=2,
            n_outputs=classes,
            n_times=3000,
            sfreq=100,
            input_window_seconds=30.0,
            depth=depth,
            with_skip_connection=True,
        )

    def forward(self, signals):
        return self.net(signals)


def get_inputs():
    return [torch.randn(2, 2, 3000)]


def get_init_inputs():
    return [6, 5]
