"""Combined topic model: bag of words and sentence embedding to topics, ProdLDA decoder, its loss.

The topics of a document are sampled (logistic normal); the loss has the KL term to the learned
prior.
"""

import torch
from contextualized_topic_models.networks.decoding_network import DecoderNetwork


class Model(torch.nn.Module):
    def __init__(self, vocabulary, embedding, topics):
        super().__init__()
        self.net = DecoderNetwork(
            vocabulary,
            embedding,
            "combined",
            n_components=topics,
            model_type="prodLDA",
            hidden_sizes=(256, 256),
            activation="softplus",
            dropout=0.2,
        )

    def forward(self, words, sentence):
        prior_mean, prior_variance, mean, variance, log_variance, word_dist, _ = self.net(
            words, sentence
        )
        divergence = 0.5 * (
            (variance / prior_variance).sum(1)
            + ((prior_mean - mean) ** 2 / prior_variance).sum(1)
            - mean.shape[1]
            + prior_variance.log().sum()
            - log_variance.sum(1)
        )
        likelihood = (words * (word_dist + 1e-10).log()).sum(1)
        return divergence - likelihood, self.net.get_theta(words, sentence)


def get_inputs():
    words = torch.poisson(torch.full((64, 2000), 0.03))
    return [words, torch.randn(64, 768)]


def get_init_inputs():
    return [2000, 768, 50]
