"""Parti: decoder over image tokens with cross-attention to given text embeddings, to logits."""

import torch
from parti_pytorch import Parti, VitVQGanVAE
from parti_pytorch.t5 import T5_CONFIGS
from transformers import T5Config


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        vae = VitVQGanVAE(
            dim=64, image_size=64, patch_size=8, layers=2, codebook_size=4096, use_vgg_and_gan=False
        )
        # The width of the text's embeddings, which Parti would ask the hub for.
        T5_CONFIGS["small"] = {"config": T5Config(d_model=512)}
        self.net = Parti(vae=vae, dim=dim, depth=depth, t5_name="small", text_embed_dim=512)

    def forward(self, text, mask, images):
        _, codes, _ = self.net.vae.encode(images, return_indices_and_loss=True)
        return self.net(
            text_token_embeds=text,
            text_mask=mask,
            image_token_ids=codes.flatten(1)[:, :-1],
            cond_drop_prob=0.0,
        )


def get_inputs():
    mask = torch.arange(24)[None] < torch.tensor([24, 15])[:, None]
    return [torch.randn(2, 24, 512), mask, torch.rand(2, 3, 64, 64)]


def get_init_inputs():
    return [384, 6]
