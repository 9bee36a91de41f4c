"""nvdash: NVFP4 weights and an NVFP4 KV cache, decided apart and with evidence."""

__version__ = "0.1.0"
