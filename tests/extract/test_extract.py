"""`matrix extract` as a whole: deterministic, incremental, and loud about what it cannot read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nvdash.cli.matrix_extract import command, named_source
from nvdash.errors import UsageError
from nvdash.extract import extract
from nvdash.extract.fetch import fetch
from nvdash.extract.known import release_rows
from nvdash.extract.source import ExtractError
from nvdash.readers.yaml_rows import read_rows, read_yaml
from tests.extract import toy

ROOT = Path(__file__).parents[2]
SHIFTED = toy.BASE.replace("class AttentionBackend", "\n    class AttentionBackend")
NEWER = toy.CACHE.replace('"nvfp4"]', '"nvfp4", "nvfp4_4over6"]')


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    base = tmp_path_factory.mktemp("trees")
    return {"0.30.0": toy.tree(base / "a"), "0.31.0": toy.tree(base / "b", cache=NEWER, base=SHIFTED)}


@pytest.fixture(scope="module")
def both(trees, tmp_path_factory):
    out = tmp_path_factory.mktemp("both")
    extract(sources=trees, out=out)
    return out


def test_generated_files_load_as_statements_and_facts(both):
    names = {p.name for p in both.glob("*.yaml")}
    assert {"releases.yaml", "priority.yaml", "fast.yaml", "slow.yaml", "cache_dtypes.yaml"} <= names
    rows = read_rows(both / "cache_dtypes.yaml")
    mla = next(row for row in rows if row["when"].get("mla"))
    assert (mla["verdict"], mla["layer"], mla["when"]["kv_cache_dtype"]) == ("refused", "config", "nvfp4")
    assert mla["reason"] == "VllmConfig.validate_cache_with_mla raises ValueError"
    facts = read_yaml(both / "facts/0.31.0.yaml")
    assert facts["release"] == "0.31.0"
    assert facts["facts"][0]["value"][-1] == "nvfp4_4over6"
    (first, _) = read_rows(both / "releases.yaml")
    assert (first["release"], first["flashinfer"], first["flashinfer_evidence"]["line"]) == ("0.30.0", "0.7.0.post1", 2)


def test_a_word_that_a_release_lacks_is_refused_only_there(both):
    rows = [row for row in read_rows(both / "cache_dtypes.yaml") if isinstance(row["when"].get("kv_cache_dtype"), dict)]
    assert [(row["since"], row.get("until"), len(row["when"]["kv_cache_dtype"]["not"])) for row in rows] == [
        ("0.30.0", "0.31.0", 4),
        ("0.31.0", None, 5),
    ]


def test_a_statement_names_the_line_of_every_release_where_it_moved(both):
    moved = [row["evidence"] for row in read_rows(both / "slow.yaml") if "lines" in row["evidence"]]
    assert moved
    assert all(said["line"] == said["lines"]["0.30.0"] + 1 for said in moved)
    assert {said["file"] for said in moved} == {"vllm/v1/attention/backend.py"}


def test_two_runs_give_the_same_bytes_whatever_the_hash_seed(trees, both, tmp_path):
    code = (
        "import sys; from pathlib import Path; from nvdash.extract import extract\n"
        "extract(sources={r: Path(p) for r, p in zip(sys.argv[2::2], sys.argv[3::2])}, out=Path(sys.argv[1]))"
    )
    pairs = [part for release, tree in trees.items() for part in (release, str(tree))]
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "again"), *pairs], check=True, env=environment, capture_output=True
    )
    assert contents(tmp_path / "again") == contents(both)


def test_adding_the_newest_release_gives_what_reading_all_gives(trees, both, tmp_path):
    extract(sources={"0.30.0": trees["0.30.0"]}, out=tmp_path)
    extract(sources={"0.31.0": trees["0.31.0"]}, out=tmp_path)
    assert contents(tmp_path) == contents(both)


def test_the_dates_of_a_folder_stay_when_a_release_is_added_to_it(tmp_path):
    (tmp_path / "releases.yaml").write_text('- {release: "0.1.0", date: "2024-01-02", source: none}\n')
    rows = release_rows(tmp_path, ["0.2.0"], shipped=False)
    assert [(row["release"], row["date"]) for row in rows] == [("0.1.0", "2024-01-02"), ("0.2.0", None)]


def test_a_release_in_the_middle_of_runs_cannot_be_read_again_alone(trees, both, tmp_path):
    extract(sources=trees, out=tmp_path)
    with pytest.raises(ExtractError, match=r"release 0\.30\.0"):
        extract(sources={"0.30.0": trees["0.30.0"]}, out=tmp_path)
    assert contents(tmp_path) == contents(both)


def test_a_failing_tree_leaves_nothing_half_written(trees, tmp_path):
    extract(sources={"0.30.0": trees["0.30.0"]}, out=tmp_path / "out")
    before = contents(tmp_path / "out")
    broken = toy.tree(tmp_path / "broken", platform=toy.PLATFORM.replace("_get_backend_priorities", "_order"))
    with pytest.raises(ExtractError) as refused:
        extract(sources={"0.32.0": broken}, out=tmp_path / "out")
    assert "priorities at vllm/platforms/cuda.py:_get_backend_priorities" in str(refused.value)
    assert "paths.yaml" in str(refused.value)
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("name", ["main", "0.15.1.nv25.10"])
def test_a_name_without_a_place_in_the_order_goes_to_an_overlay(trees, tmp_path, name):
    with pytest.raises(ExtractError, match=f"release {name}: .*no place in the release order") as refused:
        extract(sources={name: trees["0.30.0"]})
    assert "NVDASH_MATRIX_PATH" in refused.value.hint
    extract(sources={name: trees["0.30.0"]}, out=tmp_path)
    assert [row["release"] for row in read_rows(tmp_path / "releases.yaml")] == [name]
    assert read_yaml(tmp_path / f"facts/{name}.yaml")["release"] == name


def test_a_requirement_that_is_not_vllm_is_refused(tmp_path):
    with pytest.raises(ExtractError, match=r"a requirement such as vllm==0\.33\.0"):
        extract(["torch==2.0"], out=tmp_path)


def test_a_release_without_a_sdist_is_refused_with_what_pip_said(tmp_path, monkeypatch):
    monkeypatch.setattr("nvdash.extract.fetch._download", lambda release, work: "ERROR: No matching distribution found")
    with pytest.raises(ExtractError, match="No matching distribution found"):
        fetch("0.15.0", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_pip_unpacked_is_kept_without_what_is_not_read(tmp_path, monkeypatch):
    def unpack(release: str, work: Path) -> str:
        toy.write(work / "build/vllm-0.1", {"PKG-INFO": "Version: 0.1\n", "vllm/__init__.py": "", "tests/t.py": ""})
        return "ERROR: metadata"

    monkeypatch.setattr("nvdash.extract.fetch._download", unpack)
    tree = fetch("0.1", tmp_path)
    assert sorted(p.name for p in tree.iterdir()) == ["PKG-INFO", "vllm"]
    monkeypatch.setattr("nvdash.extract.fetch._download", lambda *_: pytest.fail("the tree was already there"))
    assert fetch("0.1", tmp_path) == tree


def test_the_command_reads_a_tree_and_says_what_it_wrote(trees, tmp_path):
    done = CliRunner().invoke(command, ["--source", f"0.30.0={trees['0.30.0']}", "--out", str(tmp_path), "--json"])
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert [row["release"] for row in answer["releases"]] == ["0.30.0"]
    assert answer["releases"][0]["undecided"] > 0


def test_the_command_without_anything_to_read_is_wrong_usage():
    assert CliRunner().invoke(command, []).exit_code == 2


def test_a_source_folder_names_its_own_release(tmp_path):
    (tmp_path / "PKG-INFO").write_text("Name: vllm\nVersion: 0.33.0\n")
    assert named_source(str(tmp_path)) == ("0.33.0", tmp_path)
    assert named_source(f"main={tmp_path}") == ("main", tmp_path)
    with pytest.raises(UsageError, match="states its version"):
        named_source(str(tmp_path / "elsewhere"))
