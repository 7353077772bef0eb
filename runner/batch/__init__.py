"""Runs many problems: plans a run, drives it over Ray, works on each problem in a child process."""
