"""A causal language model with sparse Sinkhorn attention: buckets of keys are sorted by a learned,
doubly stochastic matrix; some heads attend locally, the layers are reversible."""

import torch
from sinkhorn_transformer import SinkhornTransformerLM


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = SinkhornTransformerLM(
            num_tokens=2000,
            dim=dim,
            heads=8,
            depth=depth,
            max_seq_len=512,
            bucket_size=64,
            causal=True,
            n_local_attn_heads=2,
            n_top_buckets=2,
            reversible=True,
            ff_chunks=2,
            ff_glu=True,
            weight_tie=True,
            emb_dim=128,
        )

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 2000, (1, 512))]


def get_init_inputs():
    return [256, 4]
