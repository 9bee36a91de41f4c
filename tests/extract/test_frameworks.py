"""Reading a new release of a framework into its part of the matrix, and fetching it."""

import zipfile

import pytest
import yaml

from nvdash.errors import NvdashError
from nvdash.extract import extract, wheels
from tests.extract.trees import tree_of

PAGE = "def append_paged_mla_kv_cache(x): ...\ndef append_paged_kv_cache(x): ...\n"
NEW = PAGE + "def nvfp4_quantize_append_paged_mla_kv_cache(x): ...\n"


def flashinfer_tree(folder, page):
    tree_of(folder, {"flashinfer/page.py": page}, "flashinfer")
    return folder


def append_mla(out, release):
    rows = yaml.safe_load((out / "facts" / f"{release}.yaml").read_text())["facts"]
    return next(row["value"] for row in rows if row["fact"] == "append.nvfp4.mla")


def test_a_new_release_continues_what_the_folder_already_says(tmp_path):
    out = tmp_path / "flashinfer"
    old, new = flashinfer_tree(tmp_path / "a", PAGE), flashinfer_tree(tmp_path / "b", NEW)
    extract((), {"1.0.0": old, "1.1.0": new}, out)
    first = {path.name: path.read_bytes() for path in out.rglob("*.yaml")}
    assert append_mla(out, "1.0.0") == "absent"
    assert append_mla(out, "1.1.0") == "present (absent in 1.0.0)"
    extract((), {"1.2.0": new}, out)
    assert append_mla(out, "1.2.0") == "present (absent in 1.0.0)"
    rows = yaml.safe_load((out / "releases.yaml").read_text())
    assert [row["release"] for row in rows] == ["1.0.0", "1.1.0", "1.2.0"]
    assert {name: (out / "facts" / name).read_bytes() for name in ("1.0.0.yaml", "1.1.0.yaml")} == {
        name: first[name] for name in ("1.0.0.yaml", "1.1.0.yaml")
    }


def test_reading_the_newest_release_again_changes_no_byte(tmp_path):
    out = tmp_path / "flashinfer"
    trees = {"1.0.0": flashinfer_tree(tmp_path / "a", PAGE), "1.1.0": flashinfer_tree(tmp_path / "b", NEW)}
    extract((), trees, out)
    first = {path: path.read_bytes() for path in sorted(out.rglob("*.yaml"))}
    extract((), {"1.1.0": trees["1.1.0"]}, out)
    assert {path: path.read_bytes() for path in sorted(out.rglob("*.yaml"))} == first


def test_two_frameworks_at_once_are_refused():
    with pytest.raises(NvdashError, match="one framework at a time"):
        extract(("sglang==0.5.23", "flashinfer==0.7.4"))


def test_a_release_that_has_no_place_in_the_order_is_refused(tmp_path):
    with pytest.raises(NvdashError, match="release main"):
        extract((), {"main": flashinfer_tree(tmp_path / "a", PAGE)}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def wheel_of(folder, files):
    path = folder / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 3, 4, 0, 0, 0)), text)
    return path


def test_a_wheel_is_unpacked_to_its_sources_with_the_metadata_on_top(tmp_path):
    wheel = wheel_of(
        tmp_path, {"thing/a.py": "x = 1", "thing/a.so": "binary", "thing-1.0.dist-info/METADATA": "Version: 1.0"}
    )
    wheels.unpack(wheel, tmp_path / "out")
    assert sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file()) == [
        "METADATA",
        "thing/a.py",
    ]
    assert wheels.built_on(wheel) == "2026-03-04"


def test_a_name_that_leaves_the_folder_is_refused(tmp_path):
    with pytest.raises(NvdashError, match="inside the wheel's own folder"):
        wheels.unpack(wheel_of(tmp_path, {"../outside.py": "x = 1"}), tmp_path / "out")
    assert not (tmp_path / "outside.py").exists()


def test_a_file_that_is_no_wheel_is_named(tmp_path):
    (tmp_path / "cut.whl").write_bytes(b"PK")
    with pytest.raises(NvdashError, match=r"cut\.whl: expected a wheel"):
        wheels.unpack(tmp_path / "cut.whl", tmp_path / "out")
