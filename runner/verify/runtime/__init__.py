"""Runs forwards for the gates: on which values, on which device, and what waits where."""
