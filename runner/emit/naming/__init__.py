"""Chooses the names in emitted code: the author's where there are any."""
