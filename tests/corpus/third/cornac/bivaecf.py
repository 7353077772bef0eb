"""Bilateral variational autoencoder: users and items both encoded, ratings from their product.

As in a training step: items first, then users against the item samples; the loss is the one for
Poisson ratings with its two KL terms.
"""

import torch
from cornac.models.bivaecf.bivae import BiVAE


class Model(torch.nn.Module):
    def __init__(self, users, items, width, factors):
        super().__init__()
        self.net = BiVAE(
            k=factors,
            user_encoder_structure=[items, width],
            item_encoder_structure=[users, width],
            act_fn="tanh",
            likelihood="pois",
            cap_priors={"user": False, "item": False},
            feature_dim={"user": None, "item": None},
            batch_size=users,
        )

    def forward(self, ratings):
        theta = ratings.new_ones(ratings.shape[0], self.net.mu_theta.shape[1]) * 0.1
        beta, items, mu_i, std_i = self.net(ratings.t(), user=False, theta=theta)
        theta, users, mu_u, std_u = self.net(ratings, user=True, beta=beta)
        user_loss = self.net.loss(ratings, users, mu_u, mu_u.new_zeros(()), std_u, 1.0)
        item_loss = self.net.loss(ratings.t(), items, mu_i, mu_i.new_zeros(()), std_i, 1.0)
        return user_loss, item_loss, users


def get_inputs():
    return [torch.randint(0, 6, (200, 600)).float() * (torch.rand(200, 600) < 0.05)]


def get_init_inputs():
    return [200, 600, 64, 16]
