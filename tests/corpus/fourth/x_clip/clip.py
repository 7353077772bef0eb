"""CLIP of x-clip: a text transformer with rotary positions and a vision transformer; the similarity
of every caption with every image, with a second pair of projections for image to text."""

import torch
from x_clip import CLIP


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = CLIP(
            dim_text=dim,
            dim_image=dim,
            dim_latent=dim // 2,
            num_text_tokens=5000,
            text_enc_depth=depth,
            text_seq_len=64,
            text_heads=4,
            text_has_cls_token=True,
            text_rotary_pos_emb=True,
            visual_enc_depth=depth,
            visual_heads=4,
            visual_image_size=128,
            visual_patch_size=16,
            visual_patch_dropout=0.5,
            extra_latent_projection=True,
        )

    def forward(self, text, image):
        latents = self.net(text, image, return_latents=True)
        return (*latents, self.net.temperature.exp() * latents[0] @ latents[1].t())


def get_inputs():
    return [torch.randint(1, 5000, (2, 64)), torch.randn(2, 3, 128, 128)]


def get_init_inputs():
    return [256, 4]
