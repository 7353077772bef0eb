"""MONAI's diffusion UNet of a volume's slice, conditioned on a text's embedding."""

import torch
from monai.networks.nets import DiffusionModelUNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DiffusionModelUNet(
            spatial_dims=2,
            in_channels=1,
            out_channels=1,
            num_res_blocks=2,
            channels=(32, 64, 64),
            attention_levels=(False, True, True),
            norm_num_groups=16,
            num_head_channels=16,
            with_conditioning=True,
            cross_attention_dim=24,
            resblock_updown=True,
        )

    def forward(self, image, step, text):
        return self.net(image, timesteps=step, context=text)


def get_inputs():
    return [torch.randn(2, 1, 32, 32), torch.randint(0, 1000, (2,)), torch.randn(2, 5, 24)]


def get_init_inputs():
    return []
