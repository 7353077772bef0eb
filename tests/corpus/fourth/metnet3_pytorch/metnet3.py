"""MetNet-3: weather at several resolutions; lead-time conditioned residual blocks and a MaxViT
with register tokens; maps of surface variables, HRRR and precipitation bins."""

import torch
from metnet3_pytorch import MetNet3


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = MetNet3(
            dim=dim,
            num_lead_times=722,
            lead_time_embed_dim=32,
            input_spatial_size=128,
            attn_depth=depth,
            attn_dim_head=16,
            attn_heads=8,
            vit_window_size=4,
            input_2496_channels=8,
            input_4996_channels=6,
            precipitation_target_bins={"mrms_rate": 64, "mrms_accumulation": 64},
            surface_target_bins={"omo_temperature": 32, "omo_dew_point": 32},
            hrrr_channels=24,
            crop_size_post_16km=8,
            resnet_block_depth=2,
            hrrr_norm_strategy="none",
            surface_and_hrrr_target_spatial_size=16,
        )

    def forward(self, lead_times, hrrr, stale, fine, coarse):
        return self.net(
            lead_times=lead_times,
            hrrr_input_2496=hrrr,
            hrrr_stale_state=stale,
            input_2496=fine,
            input_4996=coarse,
        )


def get_inputs():
    return [
        torch.randint(0, 722, (2,)),
        torch.randn(2, 24, 128, 128),
        torch.randn(2, 1, 128, 128),
        torch.randn(2, 8, 128, 128),
        torch.randn(2, 6, 128, 128),
    ]


def get_init_inputs():
    return [64, 4]
