"""Which release was read, and which read one is nearest to one that was not."""

import re
from datetime import date

from nvdash.readers.matrix import Release, Rules


def nearest_read(rules: Rules, release: str) -> str | None:
    """The read release nearest to this one: the newest before it, else the oldest after it."""
    read = rules.read_releases
    if not read:
        return None
    wanted = version_key(release)
    before = [item.name for item in read if version_key(item.name) <= wanted]
    return before[-1] if before else read[0].name


def version_key(release: str) -> tuple[object, ...]:
    """A sortable form of a version; a vendor's suffix is left out, and text that is no version sorts as newest."""
    from packaging.version import InvalidVersion, Version

    public = re.match(r"v?\d+(\.\d+)*", release)
    for text in (release, public[0] if public else ""):
        try:
            return 0, Version(text)
        except InvalidVersion:
            continue
    return 1, release


def age_days(release: Release, today: date) -> int | None:
    """How old a release is; None where its date is not known."""
    return (today - date.fromisoformat(release.date)).days if release.date else None
