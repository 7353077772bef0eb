"""CrossViT of VFormer: patches of two sizes in two transformers that look at each other."""

import torch
from vformer.models.classification import CrossViT


class Model(torch.nn.Module):
    def __init__(self, side, classes):
        super().__init__()
        self.model = CrossViT(
            img_size=side,
            patch_size_s=16,
            patch_size_l=32,
            n_classes=classes,
            cross_dim_head_s=32,
            cross_dim_head_l=32,
            latent_dim_s=192,
            latent_dim_l=256,
            head_dim_s=32,
            head_dim_l=32,
            depth_s=2,
            depth_l=2,
            attn_heads_s=4,
            attn_heads_l=4,
            cross_head_s=4,
            cross_head_l=4,
            encoder_mlp_dim_s=384,
            encoder_mlp_dim_l=512,
        )

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(2, 3, 192, 192)]


def get_init_inputs():
    return [192, 10]
