"""Judges code of others without running it in the judging process."""
