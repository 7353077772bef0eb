"""Mix transformer B1 with a context-aggregation decoder of pytorch-toolbelt."""

import torch
from pytorch_toolbelt.modules.decoders import CANDecoder
from pytorch_toolbelt.modules.encoders import MitB1Encoder


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.encoder = MitB1Encoder(pretrained=False)
        spec = self.encoder.get_output_spec()
        self.decoder = CANDecoder(spec, out_channels=128)
        self.head = torch.nn.Conv2d(128, classes, 1)

    def forward(self, image):
        features = self.decoder(self.encoder(image))
        return [self.head(part) for part in features]


def get_inputs():
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return [5]
