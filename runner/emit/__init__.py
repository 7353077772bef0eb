"""This package knows about writing a decomposition down as Python that reads like a person wrote it."""
