"""Concept embedding model with the deep concept reasoner of torch_explain."""

import torch
import torch_explain as te
from torch import nn
from torch_explain.nn.concepts import ConceptReasoningLayer


class Model(nn.Module):
    def __init__(self, features, concepts, embedding, classes):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(features, 64),
            nn.LeakyReLU(),
            te.nn.ConceptEmbedding(64, concepts, embedding),
        )
        self.reasoner = ConceptReasoningLayer(embedding, classes)
        self.entropy = nn.Sequential(
            te.nn.EntropyLinear(concepts, 10, n_classes=classes),
            nn.LeakyReLU(),
            nn.Linear(10, 1),
        )

    def forward(self, x):
        embeddings, concepts = self.encoder(x)
        return concepts, self.reasoner(embeddings, concepts), self.entropy(concepts)


def get_inputs():
    return [torch.randn(32, 20)]


def get_init_inputs():
    return [20, 8, 12, 4]
