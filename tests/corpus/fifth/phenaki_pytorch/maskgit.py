"""Phenaki's MaskGit: video tokens with a continuous position bias and text by cross-attention."""

import torch
from phenaki_pytorch import MaskGit


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = MaskGit(dim=dim, num_tokens=4096, max_seq_len=128, depth=depth, dim_context=512)

    def forward(self, codes, text, mask):
        return self.net(codes, context=text, text_mask=mask, video_patch_shape=(5, 4, 4))


def get_inputs():
    mask = torch.arange(20)[None] < torch.tensor([20, 9])[:, None]
    return [torch.randint(0, 4096, (2, 80)), torch.randn(2, 20, 512), mask]


def get_init_inputs():
    return [320, 6]
