"""diffusers' Flux transformer: joint blocks of image and text, then single ones, rotary axes."""

import torch
from diffusers import FluxTransformer2DModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = FluxTransformer2DModel(
            in_channels=16,
            num_layers=2,
            num_single_layers=2,
            attention_head_dim=16,
            num_attention_heads=4,
            joint_attention_dim=32,
            pooled_projection_dim=24,
            guidance_embeds=True,
            axes_dims_rope=(4, 6, 6),
        )

    def forward(self, latent, text, pooled, step, image_ids, text_ids, guidance):
        return self.net(
            hidden_states=latent,
            encoder_hidden_states=text,
            pooled_projections=pooled,
            timestep=step,
            img_ids=image_ids,
            txt_ids=text_ids,
            guidance=guidance,
        ).sample


def get_inputs():
    return [
        torch.randn(1, 16, 16),
        torch.randn(1, 6, 32),
        torch.randn(1, 24),
        torch.tensor([0.5]),
        torch.cartesian_prod(torch.zeros(1), torch.arange(4.0), torch.arange(4.0)),
        torch.zeros(6, 3),
        torch.tensor([3.5]),
    ]


def get_init_inputs():
    return []
