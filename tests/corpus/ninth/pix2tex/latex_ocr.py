"""LaTeX-OCR of pix2tex: a ViT of a formula and a decoder of its tokens."""

import torch
from munch import Munch
from pix2tex.models.utils import get_model
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        args = Munch(
            encoder_structure="vit",
            channels=1,
            max_height=192,
            max_width=672,
            max_seq_len=512,
            patch_size=16,
            dim=dim,
            encoder_depth=4,
            num_layers=4,
            heads=8,
            num_tokens=tokens,
            pad_token=0,
            bos_token=1,
            eos_token=2,
            decoder_args={
                "attn_on_attn": True,
                "cross_attend": True,
                "ff_glu": True,
                "rel_pos_bias": False,
                "use_scalenorm": False,
            },
            device="cpu",
            wandb=False,
        )
        self.model = get_model(args)

    def forward(self, images, tokens):
        context = self.model.encoder(images)
        return self.model.decoder.net(tokens, context=context)


def get_inputs():
    return [torch.rand(1, 1, 64, 256), torch.randint(3, 8000, (1, 30))]


def get_init_inputs():
    return [8000, 256]
