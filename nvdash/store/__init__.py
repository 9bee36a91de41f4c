"""Which runs we have and which of them match; the only SQL."""
