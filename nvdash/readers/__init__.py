"""What a file says: catalogues, configs, checkpoints, matrix facts, results, logs."""
