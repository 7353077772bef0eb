"""Runs a decomposer, an external command that decomposes a problem, and judges its delivery."""
