"""Fusion of several classifiers trained as one, from torchensemble."""

import torch
from torch import nn
from torchensemble import FusionClassifier


class Base(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, classes)
        )

    def forward(self, x):
        return self.net(x)


class Model(nn.Module):
    def __init__(self, features, classes, members):
        super().__init__()
        self.model = FusionClassifier(
            Base, members, estimator_args={"features": features, "classes": classes}, cuda=False
        )
        self.model.n_outputs = classes
        for _ in range(members):
            self.model.estimators_.append(self.model._make_estimator())

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 40)]


def get_init_inputs():
    return [40, 7, 6]
