"""SatlasPretrain's Swin-T on nine Sentinel-2 bands with a feature pyramid and a segmentation
head."""

import torch
from satlaspretrain_models.model import Model as Satlas
from satlaspretrain_models.utils import Backbone, Head


class Model(torch.nn.Module):
    def __init__(self, bands, classes):
        super().__init__()
        self.model = Satlas(
            num_channels=bands,
            multi_image=False,
            backbone=Backbone.SWINT,
            fpn=True,
            head=Head.SEGMENT,
            num_categories=classes,
        )

    def forward(self, image):
        return self.model(image)[0]


def get_inputs():
    return [torch.rand(1, 9, 128, 128)]


def get_init_inputs():
    return [9, 11]
