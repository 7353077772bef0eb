"""C-ViViT: video tokenizer with spatial and causal temporal transformers and a lookup-free code."""

import torch
from phenaki_pytorch import CViViT


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = CViViT(
            dim=dim,
            codebook_size=4096,
            image_size=64,
            patch_size=16,
            temporal_patch_size=2,
            spatial_depth=depth,
            temporal_depth=depth,
            use_vgg_and_gan=False,
        )

    def forward(self, video):
        return self.net(video, return_recons_only=True), self.net(
            video, return_only_codebook_ids=True
        )


def get_inputs():
    return [torch.rand(1, 3, 9, 64, 64)]


def get_init_inputs():
    return [256, 4]
