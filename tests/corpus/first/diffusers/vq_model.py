"""diffusers' VQModel: encode, quantise with a codebook, decode."""

import torch
from diffusers import VQModel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = VQModel(
            block_out_channels=(32, 64),
            down_block_types=("DownEncoderBlock2D", "AttnDownEncoderBlock2D"),
            up_block_types=("AttnUpDecoderBlock2D", "UpDecoderBlock2D"),
            layers_per_block=2,
            num_vq_embeddings=64,
            norm_num_groups=16,
        )

    def forward(self, image):
        return self.net(image).sample


def get_inputs():
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return []
