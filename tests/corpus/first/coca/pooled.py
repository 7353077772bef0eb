"""coca-pytorch's CoCa: contrastive and captioning logits over a ViT's pooled queries."""

import torch
from coca_pytorch.coca_pytorch import CoCa


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = CoCa(
            dim=64,
            num_tokens=200,
            unimodal_depth=2,
            multimodal_depth=2,
            image_dim=48,
            num_img_queries=16,
            dim_head=16,
            heads=4,
        )

    def forward(self, text, image_tokens):
        return self.net(text, image_tokens=image_tokens, return_loss=False)


def get_inputs():
    return [torch.randint(1, 200, (2, 12)), torch.randn(2, 20, 48)]


def get_init_inputs():
    return []
