"""The discrete VAE of DALL-E: a picture becomes a grid of visual words, and these are drawn."""

import torch
from dall_e import Decoder, Encoder, map_pixels, unmap_pixels


class Model(torch.nn.Module):
    def __init__(self, words):
        super().__init__()
        self.encoder = Encoder(n_hid=64, vocab_size=words)
        self.decoder = Decoder(n_init=64, n_hid=64, vocab_size=words)
        self.words = words

    def forward(self, image):
        codes = self.encoder(map_pixels(image)).argmax(dim=1)
        hot = torch.nn.functional.one_hot(codes, num_classes=self.words)
        stats = self.decoder(hot.permute(0, 3, 1, 2).float()).float()
        return codes, unmap_pixels(torch.sigmoid(stats[:, :3]))


def get_inputs():
    return [torch.rand(1, 3, 96, 96)]


def get_init_inputs():
    return [1024]
