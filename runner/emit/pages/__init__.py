"""Writes the analysis page and the decision log, and groups a tree's nodes into rows."""
