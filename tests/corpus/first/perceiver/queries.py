"""perceiver-pytorch's Perceiver IO: any queries, a mask on the input."""

import torch
from perceiver_pytorch import PerceiverIO


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = PerceiverIO(
            dim=32,
            queries_dim=24,
            logits_dim=10,
            depth=2,
            num_latents=16,
            latent_dim=48,
            cross_dim_head=16,
            latent_heads=4,
            latent_dim_head=12,
            decoder_ff=True,
        )

    def forward(self, sequence, queries, mask):
        return self.net(sequence, mask=mask, queries=queries)


def get_inputs():
    return [torch.randn(2, 40, 32), torch.randn(12, 24), torch.rand(2, 40) > 0.2]


def get_init_inputs():
    return []
