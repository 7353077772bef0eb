"""SegFormer B0 of torch-uncertainty, logits and their entropy for each pixel."""

import torch
from torch_uncertainty.models.segmentation import seg_former


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = seg_former(num_classes=classes, arch=0)

    def forward(self, image):
        logits = self.net(image)
        return logits, torch.distributions.Categorical(logits=logits.movedim(1, -1)).entropy()


def get_inputs():
    return [torch.rand(1, 3, 128, 160)]


def get_init_inputs():
    return [19]
