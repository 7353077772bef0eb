"""Sends a run to a cluster as a Ray job, which goes on when its sender is gone."""
