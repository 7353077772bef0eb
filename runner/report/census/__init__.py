"""Counts the kernels of many models, and prints the counts."""

from runner.report.census.counts import Census, CensusPart, read_census, take_census
from runner.report.census.tables import describe_curve, show_census

__all__ = [
    "Census",
    "CensusPart",
    "describe_curve",
    "read_census",
    "show_census",
    "take_census",
]
