"""diffusers' UNet of Stable Diffusion XL's kind: cross attention, text and size embedded."""

import torch
from diffusers import UNet2DConditionModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = UNet2DConditionModel(
            sample_size=16,
            block_out_channels=(32, 64),
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=(2, 4),
            cross_attention_dim=48,
            transformer_layers_per_block=(1, 2),
            use_linear_projection=True,
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=80,
            norm_num_groups=16,
        )

    def forward(self, latent, step, text, pooled, sizes):
        added = {"text_embeds": pooled, "time_ids": sizes}
        return self.net(latent, step, text, added_cond_kwargs=added).sample


def get_inputs():
    return [
        torch.randn(2, 4, 16, 16),
        torch.tensor([5, 400]),
        torch.randn(2, 7, 48),
        torch.randn(2, 32),
        torch.full((2, 6), 64.0),
    ]


def get_init_inputs():
    return []
