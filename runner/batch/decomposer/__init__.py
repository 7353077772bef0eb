"""Runs a decomposer, a command of somebody else's, and takes over what it delivers."""
