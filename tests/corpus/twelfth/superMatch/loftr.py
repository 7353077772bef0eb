"""Coarse part of LoFTR: ResNet-FPN and linear attention within and between two images."""

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(find_spec("dloc").origin).parent / "models" / "loftr"))

from backbone import build_backbone
from loftr_module import LocalFeatureTransformer


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.backbone = build_backbone(
            {
                "backbone_type": "ResNetFPN",
                "resolution": (8, 2),
                "resnetfpn": {"initial_dim": 32, "block_dims": [32, 48, dim]},
            }
        )
        self.coarse = LocalFeatureTransformer(
            {
                "d_model": dim,
                "nhead": 4,
                "layer_names": ["self", "cross"] * 2,
                "attention": "linear",
            }
        )

    def forward(self, image0, image1):
        coarse, fine = self.backbone(torch.cat([image0, image1]))
        feat0, feat1 = coarse.flatten(2).transpose(1, 2).split(len(image0))
        feat0, feat1 = self.coarse(feat0, feat1)
        return torch.einsum("nlc,nsc->nls", feat0, feat1).softmax(1), fine


def get_inputs():
    return [torch.rand(1, 1, 64, 64), torch.rand(1, 1, 64, 64)]


def get_init_inputs():
    return [64]
