"""M-LSD of controlnet-aux: a MobileNet finds the line segments of a picture."""

import torch
from controlnet_aux.mlsd.models.mbv2_mlsd_large import MobileV2_MLSD_Large


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = MobileV2_MLSD_Large()

    def forward(self, image):
        lines = self.net(image)
        centre = lines[:, :1].sigmoid()
        peak = torch.nn.functional.max_pool2d(centre, 5, stride=1, padding=2)
        return lines, centre * (peak == centre)


def get_inputs():
    return [torch.rand(1, 4, 128, 128) * 2 - 1]


def get_init_inputs():
    return []
