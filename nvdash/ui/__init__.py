"""The answers on a page."""
