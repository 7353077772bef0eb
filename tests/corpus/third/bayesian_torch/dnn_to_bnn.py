"""A plain ResNet-18 made Bayesian by the package's converter: all layers become reparameterised.

One pass with sampled weights and the model's KL divergence.
"""

import torch
from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss
from torchvision.models import resnet18


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = resnet18(num_classes=classes)
        settings = {
            "prior_mu": 0.0,
            "prior_sigma": 1.0,
            "posterior_mu_init": 0.0,
            "posterior_rho_init": -3.0,
            "type": "Reparameterization",
            "moped_enable": False,
            "moped_delta": 0.5,
        }
        dnn_to_bnn(self.net, settings)

    def forward(self, images):
        return self.net(images), get_kl_loss(self.net)


def get_inputs():
    return [torch.randn(2, 3, 96, 96)]


def get_init_inputs():
    return [20]
