"""Similarity of every image with every text: unit-length embeddings, product, temperature."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

IMAGES = 256
TEXTS = 384
DIM = 512


class Model(nn.Module):
    def __init__(self, logit_scale: float):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(logit_scale))

    def forward(self, image_features: Tensor, text_features: Tensor) -> Tensor:
        image_features = F.normalize(image_features, dim=-1)
        text_features = F.normalize(text_features, dim=-1)
        return self.logit_scale.exp() * image_features @ text_features.t()


def get_inputs():
    return [torch.randn(IMAGES, DIM), torch.randn(TEXTS, DIM)]


def get_init_inputs():
    return [2.66]
