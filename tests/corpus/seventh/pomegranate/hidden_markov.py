"""A dense hidden Markov model of pomegranate over nucleotides: states' probabilities by forward and
backward passes."""

import torch
from pomegranate.distributions import Categorical
from pomegranate.hmm import DenseHMM


class Model(torch.nn.Module):
    def __init__(self, states, letters):
        super().__init__()
        emissions = [Categorical(torch.rand(1, letters).softmax(dim=1)) for _ in range(states)]
        self.model = DenseHMM(
            emissions,
            edges=torch.rand(states, states).softmax(dim=1) * 0.95,
            starts=torch.full((states,), 1 / states),
            ends=torch.full((states,), 0.05),
        )

    def forward(self, sequence):
        return self.model.predict_proba(sequence), self.model.log_probability(sequence)


def get_inputs():
    return [torch.randint(0, 4, (8, 40, 1))]


def get_init_inputs():
    return [5, 4]
