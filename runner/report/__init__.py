"""What people look at: a run's page, the workload catalogue, a decomposition in the terminal."""
