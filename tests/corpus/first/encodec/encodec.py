"""encodec's EncodecModel at 24 kHz: the encoder, four of its codebooks and the decoder."""

import torch
from encodec.model import EncodecModel
from encodec.modules import SEANetDecoder, SEANetEncoder
from encodec.quantization import ResidualVectorQuantizer


class Model(torch.nn.Module):
    def __init__(self, filters):
        super().__init__()
        encoder = SEANetEncoder(channels=1, n_filters=filters, norm="weight_norm", causal=True)
        decoder = SEANetDecoder(channels=1, n_filters=filters, norm="weight_norm", causal=True)
        quantizer = ResidualVectorQuantizer(
            dimension=encoder.dimension, n_q=4, bins=256, kmeans_init=False
        )
        for layer in quantizer.vq.layers:
            torch.nn.init.normal_(layer._codebook.embed)
        self.net = EncodecModel(encoder, decoder, quantizer, [3.0], 24000, 1)

    def forward(self, wave):
        return self.net(wave)


def get_inputs():
    return [torch.randn(1, 1, 9600)]


def get_init_inputs():
    return [16]
