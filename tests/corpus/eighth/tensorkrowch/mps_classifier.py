"""Matrix product state of tensorkrowch that classifies rows of pixels."""

import tensorkrowch as tk
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, pixels, classes, bond):
        super().__init__()
        self.model = tk.models.MPSLayer(
            n_features=pixels + 1,
            in_dim=2,
            out_dim=classes,
            bond_dim=bond,
            init_method="randn_eye",
            std=1e-3,
        )

    def forward(self, image):
        return self.model(tk.embeddings.poly(image, degree=1))


def get_inputs():
    return [torch.rand(6, 48)]


def get_init_inputs():
    return [48, 10, 8]
