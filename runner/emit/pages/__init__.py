"""Writes the analysis page and the decision log, and the rows in which people see a tree."""
