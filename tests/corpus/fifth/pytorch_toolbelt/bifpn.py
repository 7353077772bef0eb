"""HRNet encoder with a bidirectional feature pyramid of Kaggle's toolbelt, mask head."""

import torch
from pytorch_toolbelt.modules import encoders
from pytorch_toolbelt.modules.decoders import BiFPNDecoder


class Model(torch.nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self.encoder = encoders.HRNetV2Encoder18(pretrained=False)
        self.decoder = BiFPNDecoder(
            self.encoder.get_output_spec(), channels, num_layers=layers, activation="swish"
        )
        self.head = torch.nn.Conv2d(channels, 2, 1)

    def forward(self, image):
        maps = self.decoder(self.encoder(image))
        return [self.head(part) for part in maps]


def get_inputs():
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return [64, 3]
