"""transformers' DPT: depth from a ViT's layers, reassembled at four scales."""

import torch
from transformers import DPTConfig, DPTForDepthEstimation


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DPTForDepthEstimation(
            DPTConfig(
                hidden_size=48,
                num_hidden_layers=4,
                num_attention_heads=4,
                intermediate_size=96,
                image_size=64,
                patch_size=16,
                backbone_out_indices=[0, 1, 2, 3],
                neck_hidden_sizes=[16, 24, 32, 48],
                fusion_hidden_size=32,
            )
        )

    def forward(self, image):
        return self.net(pixel_values=image).predicted_depth


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
