"""Runs forwards for the gates, watches their operations, and stores large outputs and weights."""
