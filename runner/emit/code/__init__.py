"""Writes Python: classes, statements, operations and lines."""
