"""Which runs we have and which of them match; the only SQL."""

from nvdash.store.observations import observations

__all__ = ["observations"]
