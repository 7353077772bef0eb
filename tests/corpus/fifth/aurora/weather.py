"""Aurora: weather from a Perceiver over levels and a 3-D Swin U-Net; one step of six hours."""

import datetime

import torch
from aurora import Aurora, Batch, Metadata


class Model(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.levels = (100, 250, 500, 850)
        self.net = Aurora(
            embed_dim=64,
            num_heads=4,
            encoder_depths=(2, 2, 2),
            encoder_num_heads=(2, 4, 8),
            decoder_depths=(2, 2, 2),
            decoder_num_heads=(8, 4, 2),
            use_lora=False,
            autocast=False,
        )
        self.latitude = torch.linspace(90, -90, rows + 1)[:-1]
        self.longitude = torch.linspace(0, 360, 2 * rows + 1)[:-1]

    def forward(self, surface, static, atmosphere):
        batch = Batch(
            surf_vars=dict(zip(("2t", "10u", "10v", "msl"), surface.unbind(2), strict=True)),
            static_vars=dict(zip(("lsm", "z", "slt"), static, strict=True)),
            atmos_vars=dict(zip(("z", "u", "v", "t", "q"), atmosphere.unbind(2), strict=True)),
            metadata=Metadata(
                lat=self.latitude,
                lon=self.longitude,
                time=(datetime.datetime(2020, 6, 1, 12, 0),),
                atmos_levels=self.levels,
            ),
        )
        result = self.net(batch)
        return result.surf_vars, result.atmos_vars


def get_inputs():
    return [
        torch.randn(1, 2, 4, 32, 64),
        torch.randn(3, 32, 64),
        torch.randn(1, 2, 5, 4, 32, 64),
    ]


def get_init_inputs():
    return [32]
