"""Writes get_inputs(): values, strides and constants like those that arrive in the model."""
