"""TiTok: an image as 32 latent tokens of a code book, and the image made from them again."""

import torch
from titok_pytorch import TiTokTokenizer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = TiTokTokenizer(
            dim=dim,
            image_size=128,
            patch_size=16,
            num_latent_tokens=32,
            codebook_size=2048,
            enc_depth=depth,
            dec_depth=depth,
        )

    def forward(self, images):
        codes = self.net.tokenize(images)
        return codes, self.net.codebook_ids_to_images(codes)


def get_inputs():
    return [torch.rand(2, 3, 128, 128)]


def get_init_inputs():
    return [256, 5]
