"""Judges one aspect of a decomposition each: steps, self-tests, composition, coverage and so on."""
