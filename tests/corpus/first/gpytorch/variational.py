"""gpytorch's variational Gaussian process: 24 inducing points, a Matern kernel, two tasks mixed."""

import gpytorch
import torch


class Process(gpytorch.models.ApproximateGP):
    def __init__(self, inducing, tasks):
        points = torch.randn(tasks, inducing, 3)
        distribution = gpytorch.variational.CholeskyVariationalDistribution(
            inducing, batch_shape=torch.Size([tasks])
        )
        single = gpytorch.variational.VariationalStrategy(self, points, distribution)
        super().__init__(
            gpytorch.variational.LMCVariationalStrategy(single, num_tasks=tasks, num_latents=tasks)
        )
        self.mean = gpytorch.means.LinearMean(3, batch_shape=torch.Size([tasks]))
        self.covariance = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.MaternKernel(nu=2.5, batch_shape=torch.Size([tasks])),
            batch_shape=torch.Size([tasks]),
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


class Model(torch.nn.Module):
    def __init__(self, inducing, tasks):
        super().__init__()
        self.process = Process(inducing, tasks)

    def forward(self, x):
        posterior = self.process(x)
        return posterior.mean, posterior.variance


def get_inputs():
    return [torch.randn(16, 3)]


def get_init_inputs():
    return [24, 2]
