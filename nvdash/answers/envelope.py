"""What every JSON answer carries in front: schema, version, matrix digest, question."""

from typing import Any

from nvdash import __version__

SCHEMA_VERSION = 1


def envelope(name: str, question: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """One answer: the question it stands for, echoed with its defaults, and the keys that answer it."""
    from nvdash.readers.digest import matrix_digest

    front = {
        "schema": f"nvdash.{name}/{SCHEMA_VERSION}",
        "nvdash_version": __version__,
        "matrix_digest": matrix_digest(),
        "question": question,
    }
    return front | keys | front  # in front, and never replaced
