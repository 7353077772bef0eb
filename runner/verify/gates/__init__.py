"""Judges one aspect of a decomposition in each module: steps, self-tests, coverage and so on."""
