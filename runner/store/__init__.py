"""Keeps results: a problem's result, a run's manifest, output directories, stores of runs."""
