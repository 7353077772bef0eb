"""segmentation_models_pytorch's DeepLabV3+ over MobileNetV2: atrous pyramid, one skip."""

import segmentation_models_pytorch as smp
import torch


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = smp.DeepLabV3Plus(
            "mobilenet_v2", encoder_weights=None, classes=classes, decoder_channels=64
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [5]
