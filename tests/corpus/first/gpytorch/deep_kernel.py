"""gpytorch's deep kernel learning: the posterior's mean and variance of an exact Gaussian
process behind a network."""

import gpytorch
import torch


class Process(gpytorch.models.ExactGP):
    def __init__(self, inputs, targets, likelihood):
        super().__init__(inputs, targets, likelihood)
        self.features = torch.nn.Sequential(
            torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
        )
        self.mean = gpytorch.means.ConstantMean()
        self.covariance = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))

    def forward(self, x):
        x = self.features(x)
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


class Model(torch.nn.Module):
    def __init__(self, points):
        super().__init__()
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.process = Process(torch.randn(points, 6), torch.randn(points), self.likelihood)

    def forward(self, x):
        self.process.eval()
        self.process.prediction_strategy = None
        posterior = self.likelihood(self.process(x))
        return posterior.mean, posterior.variance


def get_inputs():
    return [torch.randn(20, 6)]


def get_init_inputs():
    return [60]
