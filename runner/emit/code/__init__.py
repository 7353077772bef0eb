"""Writes Python source: classes, statements, expressions and line breaks."""
