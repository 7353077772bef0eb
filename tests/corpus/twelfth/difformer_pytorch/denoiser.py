"""Difformer: continuous transformer as the denoiser of token embeddings."""

import torch
from difformer_pytorch import Difformer
from torch import nn


class Model(nn.Module):
    def __init__(self, num_tokens, dim):
        super().__init__()
        self.model = Difformer(
            num_tokens=num_tokens, embedding_dim=dim, num_layers=2, num_heads=4, head_features=32
        )

    def forward(self, noisy, sigmas, tokens):
        context = self.model.token_embedding(tokens)
        denoised = self.model.diffusion.denoise_fn(noisy, sigmas=sigmas, context=context)
        return denoised, self.model.token_embedding.get_ids(denoised)


def get_inputs():
    return [torch.randn(2, 24, 64), torch.rand(2) + 0.1, torch.randint(0, 500, (2, 24))]


def get_init_inputs():
    return [500, 64]
