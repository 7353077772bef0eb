"""RF-DETR, a detector of objects with windowed attention and deformable decoding."""

import torch
from rfdetr.config import RFDETRNanoConfig
from rfdetr.models.lwdetr import build_model_from_config
from torch import nn


class Model(nn.Module):
    def __init__(self, resolution, classes):
        super().__init__()
        config = RFDETRNanoConfig(
            pretrain_weights=None, resolution=resolution, num_classes=classes, device="cpu"
        )
        self.model = build_model_from_config(config)

    def forward(self, images):
        out = self.model(images)
        return out["pred_logits"], out["pred_boxes"]


def get_inputs():
    return [torch.rand(1, 3, 384, 384)]


def get_init_inputs():
    return [384, 90]
