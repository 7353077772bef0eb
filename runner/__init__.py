"""kdrun takes PyTorch models apart into kernels at exact shapes, and proves that they recompose."""

__version__ = "0.1.0"
