"""segment-anything's image encoder: windows and global attention with relative positions."""

import torch
from segment_anything.modeling import ImageEncoderViT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = ImageEncoderViT(
            img_size=64,
            patch_size=8,
            embed_dim=48,
            depth=4,
            num_heads=4,
            out_chans=32,
            use_rel_pos=True,
            rel_pos_zero_init=False,
            window_size=5,
            global_attn_indexes=(1, 3),
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
