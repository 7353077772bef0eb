"""Reads the source of foreign files and tells what they may not say."""
