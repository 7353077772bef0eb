"""Finds the operations that have a name in the field, however their author spelled them."""
