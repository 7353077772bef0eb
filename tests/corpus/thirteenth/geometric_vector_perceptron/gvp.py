"""Geometric vector perceptrons with normalisation and dropout on scalar and vector features."""

import torch
from geometric_vector_perceptron import GVP, GVPDropout, GVPLayerNorm
from torch import nn


class Model(nn.Module):
    def __init__(self, feats, vectors, depth):
        super().__init__()
        self.blocks = nn.ModuleList(
            [
                nn.ModuleList(
                    [
                        GVP(
                            dim_vectors_in=vectors,
                            dim_vectors_out=vectors,
                            dim_feats_in=feats,
                            dim_feats_out=feats,
                            vector_gating=True,
                        ),
                        GVPDropout(0.2),
                        GVPLayerNorm(feats),
                    ]
                )
                for _ in range(depth)
            ]
        )

    def forward(self, feats, vectors):
        for gvp, dropout, norm in self.blocks:
            new_feats, new_vectors = dropout(*gvp((feats, vectors)))
            feats, vectors = norm(feats + new_feats, vectors + new_vectors)
        return feats, vectors


def get_inputs():
    return [torch.randn(10, 128), torch.randn(10, 32, 3)]


def get_init_inputs():
    return [128, 32, 3]
