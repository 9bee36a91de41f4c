"""Source trees: what is found, and how a broken one is refused."""

import pytest

from nvdash.extract.locate import require
from nvdash.extract.source import ExtractError, Tree
from tests.extract import toy


def test_a_folder_without_the_package_is_refused(tmp_path):
    with pytest.raises(ExtractError, match=r"a source tree with a folder vllm/"):
        Tree(tmp_path, "0.33.0")


def test_a_truncated_file_is_named_with_its_line(tmp_path):
    toy.write(tmp_path, {"vllm/__init__.py": "", "vllm/cut.py": "def whole():\n    return 1\n\ndef cut(\n"})
    with pytest.raises(ExtractError, match=r"0\.33\.0 vllm/cut\.py:4: expected Python source"):
        Tree(tmp_path, "0.33.0").module("vllm.cut")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    toy.write(tmp_path, {"vllm/__init__.py": ""})
    (tmp_path / "vllm/odd.py").write_bytes(b"x = '\xff\xfe'\n")
    with pytest.raises(ExtractError, match=r"byte 5 is not UTF-8"):
        Tree(tmp_path, "1.0").module("vllm.odd")


def test_a_moved_file_is_refused_with_what_to_map(tmp_path):
    tree = Tree(toy.tree(tmp_path), "0.40.0")
    (tmp_path / "vllm/v1/attention/backends/registry.py").unlink()
    with pytest.raises(ExtractError) as refused:
        require(tree, "registry")
    assert "registry at vllm/v1/attention/backends/registry.py:AttentionBackendEnum" in str(refused.value)
    assert "paths.yaml" in refused.value.hint


def test_type_checking_imports_do_not_hide_the_runtime_binding(tmp_path):
    toy.write(
        tmp_path,
        {
            "vllm/__init__.py": "",
            "vllm/a.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from elsewhere import Config
        else:
            Config = None
    """,
        },
    )
    module = Tree(tmp_path, "1.0").module("vllm.a")
    assert module is not None
    assert [type(d.node).__name__ for d in module.names["Config"]] == ["Assign"]
