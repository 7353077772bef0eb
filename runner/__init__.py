"""kdrun takes PyTorch models apart into kernels at their exact shapes, and proves that the parts recompose."""

__version__ = "0.1.0"
