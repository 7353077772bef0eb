"""A scikit-learn pipeline as tensors: scaling, polynomials, PCA and gradient boosting."""

import numpy
import torch
from hummingbird.ml import convert
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        random = numpy.random.RandomState(0)
        rows = random.randn(500, features).astype("float32")
        target = rows[:, 0] * rows[:, 1] + numpy.sin(rows[:, 2])
        steps = make_pipeline(
            StandardScaler(),
            PolynomialFeatures(2),
            PCA(24, random_state=0),
            GradientBoostingRegressor(n_estimators=60, max_depth=4, random_state=0),
        )
        steps.fit(rows, target)
        self.net = convert(steps, "torch", rows).model

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    return [torch.randn(128, 12)]


def get_init_inputs():
    return [12]
