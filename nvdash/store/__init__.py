"""Which runs we have and which of them match; the only SQL."""

from nvdash.store.observations import observations
from nvdash.store.smoke import smoke_reports

__all__ = ["observations", "smoke_reports"]
