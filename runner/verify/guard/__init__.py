"""Judges files of others without running their code in the judging process."""
