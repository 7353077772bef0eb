"""x-transformers' Encoder with relative position biases beside a cross attending Decoder with
ALiBi and talking heads."""

import torch
from x_transformers import Decoder, Encoder, TransformerWrapper


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.encoder = TransformerWrapper(
            num_tokens=200,
            max_seq_len=40,
            attn_layers=Encoder(
                dim=width,
                depth=depth,
                heads=4,
                attn_dim_head=16,
                rel_pos_bias=True,
                sandwich_norm=True,
            ),
        )
        self.decoder = TransformerWrapper(
            num_tokens=200,
            max_seq_len=24,
            attn_layers=Decoder(
                dim=width,
                depth=depth,
                heads=4,
                attn_dim_head=16,
                cross_attend=True,
                alibi_pos_bias=True,
                attn_pre_talking_heads=True,
                residual_attn=True,
            ),
        )

    def forward(self, source, target, mask):
        context = self.encoder(source, mask=mask, return_embeddings=True)
        return self.decoder(target, context=context, context_mask=mask)


def get_inputs():
    return [
        torch.randint(0, 200, (2, 32)),
        torch.randint(0, 200, (2, 20)),
        torch.arange(32) < torch.tensor([[32], [24]]),
    ]


def get_init_inputs():
    return [48, 2]
