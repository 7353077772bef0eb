"""A calibrated lattice: piecewise linear calibrators of features, some monotonic, a categorical
one, and an interpolated lattice of six dimensions with an output calibrator."""

import numpy
import torch
from pytorch_lattice.enums import Monotonicity
from pytorch_lattice.models import CalibratedLattice
from pytorch_lattice.models.features import CategoricalFeature, NumericalFeature


class Model(torch.nn.Module):
    def __init__(self, numerical, keypoints):
        super().__init__()
        data = numpy.linspace(-2.0, 2.0, 200)
        features = [
            NumericalFeature(
                f"x{i}",
                data,
                num_keypoints=keypoints,
                monotonicity=Monotonicity.INCREASING if i % 2 else None,
                lattice_size=2 + i % 2,
            )
            for i in range(numerical)
        ]
        features.append(CategoricalFeature("kind", ["a", "b", "c", "d"]))
        self.net = CalibratedLattice(
            features,
            output_min=-1.0,
            output_max=1.0,
            output_calibration_num_keypoints=keypoints,
        )

    def forward(self, numbers, kind):
        return self.net(torch.cat([numbers, kind.to(numbers.dtype)], dim=1))


def get_inputs():
    return [torch.randn(64, 5).double(), torch.randint(0, 4, (64, 1))]


def get_init_inputs():
    return [5, 8]
