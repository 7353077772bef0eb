"""Vision transformer for medical volumes."""

import torch
from medimm.models.vit_3d import ViT3d, ViT3dConfig
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ViT3d(
            ViT3dConfig(
                image_size=(32, 32, 32),
                patch_size=8,
                embed_dim=192,
                depth=4,
                num_heads=3,
                layer_scale=True,
            )
        )

    def forward(self, image):
        out = self.model(image)
        return out.cls_token, out.reg_tokens, out.patch_tokens


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 32)]


def get_init_inputs():
    return []
