"""Reads the support matrix: statements, releases and facts, strictly, with file, line and key in every refusal."""

from nvdash.readers.digest import matrix_digest, matrix_files, matrix_roots

__all__ = ["matrix_digest", "matrix_files", "matrix_roots"]
