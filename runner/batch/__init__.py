"""Runs many problems: plans and resumes a run, drives it over Ray, works on each in a child process."""
