"""How an engine says that it did not run, apart from every crash.

A module of its own: the case runs as `__main__`, and an exception class must be the same for it and for its engine.
"""


class Refused(Exception):
    """The engine refuses the combination in its own words."""

    def __init__(self, layer: str, reason: str) -> None:
        super().__init__(reason)
        self.layer = layer


class NotHere(Exception):
    """Something the case needs is not set up on this machine."""

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(f"{reason}; {fix}" if fix else reason)
