"""Estimates how the values of a program are distributed, from its operations and without computing.

Initial weights follow from the operations that made them, inputs from `get_inputs()`. From there
each operation has a rule, in a table of the file for its subject.
"""

from runner.graph.distributions.distribution import MIN_ZERO_SHARE, Distribution, mix
from runner.graph.distributions.pointwise import apply_pointwise, normal_before_relu
from runner.graph.distributions.propagation import distributions

__all__ = [
    "MIN_ZERO_SHARE",
    "Distribution",
    "apply_pointwise",
    "distributions",
    "mix",
    "normal_before_relu",
]
