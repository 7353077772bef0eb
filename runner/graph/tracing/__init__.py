"""Runs a model under a tracer and writes the program that ran as a kdrun graph."""
