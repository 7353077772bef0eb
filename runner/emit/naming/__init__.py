"""Chooses the names in emitted code: the author's if there are any."""
