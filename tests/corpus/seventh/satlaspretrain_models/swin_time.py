"""SatlasPretrain's Swin-T on four Sentinel-2 images of one place, pooled over time; classes of land
use."""

import torch
from satlaspretrain_models.model import Model as Satlas
from satlaspretrain_models.utils import Backbone, Head


class Model(torch.nn.Module):
    def __init__(self, bands, classes):
        super().__init__()
        self.model = Satlas(
            num_channels=bands,
            multi_image=True,
            backbone=Backbone.SWINT,
            fpn=True,
            head=Head.CLASSIFY,
            num_categories=classes,
        )

    def forward(self, images):
        return self.model(images)[0]


def get_inputs():
    return [torch.rand(1, 4 * 3, 96, 96)]


def get_init_inputs():
    return [3, 10]
