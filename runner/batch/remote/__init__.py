"""HOW A RUN IS SENT TO A CLUSTER: as a job of Ray's, which goes on when its sender is gone."""
