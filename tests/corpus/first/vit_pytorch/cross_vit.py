"""vit-pytorch's CrossViT: two patch sizes that attend to each other's class token."""

import torch
from vit_pytorch.cross_vit import CrossViT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = CrossViT(
            image_size=64,
            num_classes=10,
            depth=2,
            sm_dim=48,
            sm_patch_size=8,
            sm_enc_depth=2,
            sm_enc_heads=4,
            sm_enc_mlp_dim=96,
            sm_enc_dim_head=12,
            lg_dim=64,
            lg_patch_size=16,
            lg_enc_depth=2,
            lg_enc_heads=4,
            lg_enc_mlp_dim=128,
            lg_enc_dim_head=16,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return []
