"""Files of a test's own, read as a visitor's are."""

import json

import pytest

from nvdash.readers.bundle import read_file


@pytest.fixture
def read(tmp_path):
    """Read a file with this content: a text as it stands, anything else as JSON."""

    def read_content(content, name="result.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        reading = read_file(path)
        assert reading.error is None, reading.error
        return reading

    return read_content
