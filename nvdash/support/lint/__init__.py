"""Checks of the matrix's facts, one per file."""
