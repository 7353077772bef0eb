"""Tiny recursive model: one MLP-mixer refines latents and output in turn."""

import torch
from tiny_recursive_model import MLPMixer1D, TinyRecursiveModel
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, num_tokens):
        super().__init__()
        self.model = TinyRecursiveModel(
            dim=dim,
            num_tokens=num_tokens,
            network=MLPMixer1D(dim=dim, depth=2, seq_len=24),
            num_refinement_blocks=2,
            num_latent_refinements=2,
        )

    def forward(self, seq):
        outputs, latents = self.model.get_initial()
        return self.model(seq, outputs, latents)


def get_inputs():
    return [torch.randint(0, 50, (2, 24))]


def get_init_inputs():
    return [64, 50]
