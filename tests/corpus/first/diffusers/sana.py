"""diffusers' Sana transformer: linear attention over patches, gated depthwise convolution."""

import torch
from diffusers import SanaTransformer2DModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SanaTransformer2DModel(
            in_channels=8,
            out_channels=8,
            num_attention_heads=4,
            attention_head_dim=16,
            num_layers=2,
            num_cross_attention_heads=4,
            cross_attention_head_dim=16,
            cross_attention_dim=64,
            caption_channels=32,
            sample_size=16,
        )

    def forward(self, latent, text, step, mask):
        return self.net(
            latent, encoder_hidden_states=text, timestep=step, encoder_attention_mask=mask
        ).sample


def get_inputs():
    return [
        torch.randn(2, 8, 16, 16),
        torch.randn(2, 9, 32),
        torch.tensor([3, 500]),
        torch.ones(2, 9),
    ]


def get_init_inputs():
    return []
