"""A class-conditional U-Net of torchcfm as the vector field of a flow: four steps of Euler from
noise to picture."""

import torch
from torchcfm.models.unet.unet import UNetModelWrapper


class Model(torch.nn.Module):
    def __init__(self, width, classes, steps):
        super().__init__()
        self.steps = steps
        self.net = UNetModelWrapper(
            dim=(3, 32, 32),
            num_channels=width,
            num_res_blocks=1,
            channel_mult=[1, 2, 2],
            num_classes=classes,
            class_cond=True,
            num_heads=4,
            num_head_channels=16,
            attention_resolutions="16",
            use_scale_shift_norm=True,
            resblock_updown=True,
        )

    def forward(self, noise, kind):
        x = noise
        for step in range(self.steps):
            t = torch.full((x.shape[0],), step / self.steps)
            x = x + self.net(t, x, kind) / self.steps
        return x


def get_inputs():
    return [torch.randn(1, 3, 32, 32), torch.randint(0, 10, (1,))]


def get_init_inputs():
    return [32, 10, 4]
