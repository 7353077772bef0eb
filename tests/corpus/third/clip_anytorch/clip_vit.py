"""CLIP as its authors wrote it: ViT image tower and causal text tower, logits both ways."""

import torch
from clip.model import CLIP


class Model(torch.nn.Module):
    def __init__(self, vision_width, text_width, layers):
        super().__init__()
        self.net = CLIP(
            embed_dim=256,
            image_resolution=112,
            vision_layers=layers,
            vision_width=vision_width,
            vision_patch_size=16,
            context_length=32,
            vocab_size=5000,
            transformer_width=text_width,
            transformer_heads=text_width // 64,
            transformer_layers=layers,
        )

    def forward(self, images, texts):
        return self.net(images, texts)


def get_inputs():
    return [torch.randn(3, 3, 112, 112), torch.randint(1, 5000, (3, 32))]


def get_init_inputs():
    return [384, 256, 6]
