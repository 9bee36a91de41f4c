"""One module per family of result formats; each turns parsed documents into a `Reading`."""
