"""Is this combination validated, and who says so."""
