"""Runs the work of one problem in a disposable child process."""
