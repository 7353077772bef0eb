"""BYOL's loss for a ResNet-18: online and target networks, projectors and predictor.

Its random augmentations are replaced by given ones (a flip and a change of contrast); the target
network is a copy that the package makes.
"""

import torch
from byol_pytorch import BYOL
from torchvision.models import resnet18


class Flip(torch.nn.Module):
    def forward(self, image):
        return image.flip(-1)


class Contrast(torch.nn.Module):
    def forward(self, image):
        return (image - image.mean(dim=(-2, -1), keepdim=True)) * 1.3


class Model(torch.nn.Module):
    def __init__(self, size, projection):
        super().__init__()
        self.net = BYOL(
            resnet18(),
            image_size=size,
            hidden_layer="avgpool",
            projection_size=projection,
            projection_hidden_size=1024,
            augment_fn=Flip(),
            augment_fn2=Contrast(),
        )

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.rand(4, 3, 96, 96)]


def get_init_inputs():
    return [96, 256]
