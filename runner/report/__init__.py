"""Shows results: a run's web page, the workload catalogue, a decomposition in the terminal."""
