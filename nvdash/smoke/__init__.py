"""Which kernels really ran, and is the cache really stored in the format that was asked for."""
