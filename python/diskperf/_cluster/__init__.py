"""What computes points elsewhere: executors, Dask, and the hosts of a fleet."""
