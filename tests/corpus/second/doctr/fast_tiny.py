"""docTR's FAST tiny: rep-layers of 3 by 3, 1 by 3 and 3 by 1 convolutions side by side; text
kernels."""

import torch
from doctr.models.detection.fast.pytorch import fast_tiny


class Model(torch.nn.Module):
    def __init__(self, pretrained):
        super().__init__()
        self.net = fast_tiny(pretrained=pretrained, pretrained_backbone=False)

    def forward(self, page):
        return self.net(page, return_model_output=True)["out_map"]


def get_inputs():
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return [False]
