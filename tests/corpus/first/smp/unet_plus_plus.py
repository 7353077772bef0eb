"""segmentation_models_pytorch's UNet++ over ResNet-18: nested skip connections."""

import segmentation_models_pytorch as smp
import torch


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = smp.UnetPlusPlus(
            "resnet18", encoder_weights=None, classes=classes, decoder_channels=(64, 48, 32, 24, 16)
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return [3]
