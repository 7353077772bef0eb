"""RetinaFace of retinaface_pytorch on a ResNet-50 with a feature pyramid: boxes, scores and five
landmarks of faces at every anchor."""

import torch
from retinaface.network import RetinaFace


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.model = RetinaFace(
            name="Resnet50",
            pretrained=False,
            return_layers={"layer2": 1, "layer3": 2, "layer4": 3},
            in_channels=256,
            out_channels=channels,
        )

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(1, 3, 256, 320)]


def get_init_inputs():
    return [256]
