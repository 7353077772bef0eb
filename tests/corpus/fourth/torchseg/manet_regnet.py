"""MA-Net of TorchSeg: attention over places and fused attention over channels in the decoder, a
RegNet of timm as the encoder, six spectral bands and an auxiliary classifier."""

import torch
import torchseg


class Model(torch.nn.Module):
    def __init__(self, encoder, bands, classes):
        super().__init__()
        self.net = torchseg.create_model(
            "manet",
            encoder_name=encoder,
            encoder_weights=None,
            in_channels=bands,
            classes=classes,
            decoder_pab_channels=32,
            aux_params={"classes": 4, "pooling": "avg", "dropout": 0.2},
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 6, 128, 128)]


def get_init_inputs():
    return ["regnety_004", 6, 5]
