"""Variational autoencoder of counts of genes in cells, with batches, from scvi."""

import torch
from scvi import REGISTRY_KEYS
from scvi.module import VAE
from torch import nn


class Model(nn.Module):
    def __init__(self, genes, batches, labels):
        super().__init__()
        self.model = VAE(
            n_input=genes,
            n_batch=batches,
            n_labels=labels,
            n_hidden=128,
            n_latent=10,
            n_layers=2,
            gene_likelihood="zinb",
        )

    def forward(self, counts, batch, labels):
        tensors = {
            REGISTRY_KEYS.X_KEY: counts,
            REGISTRY_KEYS.BATCH_KEY: batch,
            REGISTRY_KEYS.LABELS_KEY: labels,
        }
        inferred, generated = self.model(tensors, compute_loss=False)
        px = generated["px"]
        return inferred["qz"].loc, inferred["qz"].scale, px.mean, px.log_prob(counts)


def get_inputs():
    return [
        torch.poisson(torch.rand(64, 1000) * 3),
        torch.randint(0, 3, (64, 1)),
        torch.randint(0, 5, (64, 1)),
    ]


def get_init_inputs():
    return [1000, 3, 5]
