"""Writes `get_inputs()`: tensors with values, strides and constants like those in the model."""
