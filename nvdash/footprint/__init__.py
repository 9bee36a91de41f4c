"""What is fixed (weights) and what grows (KV cache), in bytes."""
