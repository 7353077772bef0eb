"""denoising-diffusion-pytorch's Karras UNet: weights kept at unit norm, magnitude-preserving."""

import torch
from denoising_diffusion_pytorch.karras_unet import KarrasUnet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = KarrasUnet(
            image_size=32,
            dim=16,
            dim_max=48,
            num_classes=5,
            num_downsamples=2,
            num_blocks_per_stage=2,
            attn_res=(16, 8),
            attn_dim_head=16,
        )

    def forward(self, image, time, label):
        return self.net(image, time, class_labels=label)


def get_inputs():
    return [torch.randn(2, 4, 32, 32), torch.rand(2), torch.tensor([1, 3])]


def get_init_inputs():
    return []
