"""OSNet-AIN for finding people again: blocks that see at several scales at once with a gate, some
with instance norm."""

import torch
from torchreid.reid.models.osnet_ain import osnet_ain_x1_0


class Model(torch.nn.Module):
    def __init__(self, people):
        super().__init__()
        self.net = osnet_ain_x1_0(num_classes=people, pretrained=False, loss="triplet")

    def forward(self, image):
        return torch.nn.functional.normalize(self.net(image), dim=1)


def get_inputs():
    return [torch.randn(2, 3, 256, 128)]


def get_init_inputs():
    return [100]
