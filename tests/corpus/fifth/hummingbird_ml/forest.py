"""A random forest of scikit-learn that hummingbird turned into tensor operations."""

import numpy
import torch
from hummingbird.ml import convert
from sklearn.ensemble import RandomForestClassifier


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        random = numpy.random.RandomState(0)
        rows = random.randn(400, features).astype("float32")
        labels = (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0).astype("int64") + (rows[:, 3] > 1)
        forest = RandomForestClassifier(n_estimators=32, max_depth=6, random_state=0)
        forest.fit(rows, labels)
        self.net = convert(forest, "torch").model

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    return [torch.randn(256, 20)]


def get_init_inputs():
    return [20]
