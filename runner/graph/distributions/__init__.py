"""How a program's values are distributed, told from the operations alone: nothing is computed.

Initial weights are known from the operations that made them, inputs from `get_inputs()`. From there
each operation has a rule, in a table of its subject's file.
"""

from runner.graph.distributions.distribution import FEW, Distribution, mixed
from runner.graph.distributions.pointwise import pointwise, rectified
from runner.graph.distributions.propagation import distributions

__all__ = ["FEW", "Distribution", "distributions", "mixed", "pointwise", "rectified"]
