"""TransMIL of torchmil: Nystrom attention over the patches of a slide, a pyramid of convolutions as
positions, one label for the bag."""

import torch
from torchmil.models import TransMIL


class Model(torch.nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.model = TransMIL(in_shape=(features,), att_dim=width, n_layers=2, n_heads=4)

    def forward(self, patches):
        return self.model(patches)


def get_inputs():
    return [torch.randn(2, 150, 512)]


def get_init_inputs():
    return [512, 256]
