"""segmentation_models_pytorch's MA-Net over EfficientNet-B0: position and channel attention."""

import segmentation_models_pytorch as smp
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = smp.MAnet(
            "efficientnet-b0",
            encoder_weights=None,
            classes=1,
            decoder_channels=(64, 48, 32, 24, 16),
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
