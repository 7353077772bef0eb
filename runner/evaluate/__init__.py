"""Judges better kernels: whether they are right, how fast they are, and what a model gains."""
