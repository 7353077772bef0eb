"""Scores of a knowledge graph's triples: ConvE's convolution over reshaped head and relation, with
the scores of all tails, and those of RotatE's complex rotations."""

import torch
from pykeen.models import ConvE, RotatE
from pykeen.triples import CoreTriplesFactory


class Model(torch.nn.Module):
    def __init__(self, entities, relations, dim):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        triples = torch.stack(
            [
                torch.randint(0, entities, (500,), generator=generator),
                torch.randint(0, relations, (500,), generator=generator),
                torch.randint(0, entities, (500,), generator=generator),
            ],
            dim=1,
        )
        factory = CoreTriplesFactory.create(
            triples, num_entities=entities, num_relations=relations, create_inverse_triples=True
        )
        self.convolve = ConvE(triples_factory=factory, embedding_dim=dim, random_seed=0)
        plain = CoreTriplesFactory.create(triples, num_entities=entities, num_relations=relations)
        self.rotate = RotatE(triples_factory=plain, embedding_dim=dim, random_seed=0)

    def forward(self, triples):
        return (
            self.convolve.score_t(triples[:, :2]),
            self.rotate.score_hrt(triples),
            self.rotate.score_t(triples[:, :2]),
        )


def get_inputs():
    return [torch.stack([torch.arange(16), torch.arange(16) % 8, torch.arange(16) + 20], dim=1)]


def get_init_inputs():
    return [120, 8, 200]
