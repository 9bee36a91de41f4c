"""The selector, the constructors and the condenser on a small release of our own."""

from pathlib import Path

import pytest

from nvdash.extract.condense import Condenser
from nvdash.extract.constructors import decode_context, guards
from nvdash.extract.context import ARCHITECTURES, Cell
from nvdash.extract.read import read_release
from nvdash.extract.selector import Selector
from nvdash.extract.source import ExtractError, Tree
from nvdash.extract.statements import Reading, thawed
from nvdash.extract.sweep import Backend, cache_dtypes, candidate_names, sweep
from tests.extract import toy

FAST_FILE = "vllm/v1/attention/backends/fast.py"


def line_of(root: Path, file: str, words: str) -> int:
    return next(n for n, line in enumerate((root / file).read_text().splitlines(), 1) if words in line)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return toy.tree(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def release(root):
    return Selector(Tree(root, "0.30.0"))


@pytest.fixture(scope="module")
def backends(release):
    """Every backend with its answers, and its statements by verdict."""
    dtypes = cache_dtypes(release)[0]
    return {backend.name: (backend, condensed(release, backend, dtypes)) for backend in sweep(release, dtypes)}


@pytest.mark.parametrize("shape", [toy.NEW, toy.MIDDLE], ids=["0.16 and later", "0.12 to 0.14"])
def test_both_registry_shapes_give_backends_and_priorities(tmp_path, shape):
    selector = Selector(Tree(toy.tree(tmp_path, shape), "0.20.0"))
    assert list(selector.backends()) == ["FAST", "SLOW", "LATENT"]
    order, place = selector.priorities(Cell(100, "auto", 128), 32)
    assert order == ["FAST", "SLOW"]
    assert place == ("vllm/platforms/cuda.py", line_of(tmp_path, "vllm/platforms/cuda.py", "def _get_backend"))
    assert selector.priorities(Cell(120, "auto", 128), 32)[0] == ["SLOW", "FAST"]


def test_a_refused_cache_dtype_names_the_method_that_judges_it(root, release):
    answer = release.ask(release.backend_class("FAST"), Cell(90, "nvfp4", 128))
    assert answer.verdict == "no"
    at = line_of(root, FAST_FILE, "def supports_kv_cache_dtype")
    assert answer.reasons == (("kv_cache_dtype not supported", (FAST_FILE, at)),)
    assert answer.used == {"cuda_platform"}


def test_an_acceptance_names_the_method_that_took_the_cache_dtype(root, release):
    answer = release.ask(release.backend_class("FAST"), Cell(120, "nvfp4", 128))
    assert answer.verdict == "yes"
    assert answer.place == (FAST_FILE, line_of(root, FAST_FILE, "def supports_kv_cache_dtype"))


def test_what_only_a_model_decides_is_unknown_with_what_it_needs(release):
    answer = release.ask(release.backend_class("LATENT"), Cell(90, "auto", 576, mla=True))
    assert answer.verdict == "unknown"
    assert [text for text, _ in answer.reasons] == ["needs a secret size of 1 or 2"]
    assert "secret_size" in answer.needs[0]


def test_a_backend_whose_module_is_not_shipped_is_left_out(tmp_path):
    root = toy.tree(tmp_path)
    (root / "vllm/v1/attention/backends/slow.py").unlink()
    selector = Selector(Tree(root, "0.30.0"))
    assert selector.backend_class("SLOW") is None
    assert [b.name for b in sweep(selector, ["auto"])] == ["FAST", "LATENT"]


def test_a_registered_class_that_the_module_lacks_is_refused(tmp_path):
    root = toy.tree(tmp_path, slow="class Renamed:\n    pass\n")
    with pytest.raises(ExtractError, match="class SlowBackend of backend SLOW"):
        Selector(Tree(root, "0.30.0")).backend_class("SLOW")


def test_a_renamed_validation_hook_is_refused_by_name(tmp_path):
    root = toy.tree(tmp_path, base=toy.BASE.replace("validate_configuration", "check_everything"))
    selector = Selector(Tree(root, "0.40.0"))
    with pytest.raises(ExtractError, match="validate_configuration, no such method"):
        selector.ask(selector.backend_class("FAST"), Cell(90, "auto", 128))


def condensed(selector: Selector, backend: Backend, dtypes: list[str]) -> dict[str, list[dict]]:
    """The statements about one backend, before runs, by verdict."""
    reading = Reading("0.30.0")
    condenser = Condenser(selector, backend, dtypes, reading)
    condenser.condense()
    guards(condenser)
    rows: dict[str, list[dict]] = {}
    for atom in reading.atoms:
        said = thawed(atom.said)
        row = {**thawed(atom.when), "arch": atom.arch, "dtype": atom.kv_cache_dtype, **said}
        rows.setdefault(said["verdict"], []).append(row)
    return rows


def test_a_head_size_refusal_is_one_statement_for_all_cards_and_dtypes(backends):
    rows = [r for r in backends["FAST"][1]["refused"] if "head_size not" in r["reason"]]
    assert [(r["arch"], r["dtype"], r["head_size"]) for r in rows] == [(None, None, {"not": [64, 128, 256]})]


def test_a_range_of_head_sizes_is_stated_as_a_range(backends):
    rows = backends["SLOW"][1]
    assert {str(r["head_size"]) for r in rows["expected"]} == {"{'max': 256, 'multiple_of': 8}"}
    assert {"min": 257} in [r.get("head_size") for r in rows["refused"]]


def test_a_rule_across_fields_is_stated_with_all_of_them(backends):
    rows = [r for r in backends["FAST"][1]["refused"] if "misreads" in r["reason"]]
    assert {(r["arch"], r["dtype"], tuple(r["head_size"])) for r in rows} == {
        (arch, "nvfp4", (64,)) for arch in ("sm80", "sm86", "sm89", "sm120", "sm121")
    }
    assert {r["reason"] for r in rows} == {"the selector skips it: NVFP4 misreads head size 64"}


def test_sinks_and_dcp_add_their_own_refusals(backends):
    fast = [r for r in backends["FAST"][1]["refused"] if r.get("sinks")]
    assert {r["arch"] for r in fast} == {f"sm{a}" for a in ARCHITECTURES if a not in (100, 103)}
    slow = [r for r in backends["SLOW"][1]["refused"] if r.get("dcp")]
    assert [(r["arch"], r["dtype"], r["dcp"]) for r in slow] == [(None, None, {"min": 2})]


def test_a_raise_that_no_path_avoids_is_a_trap_and_an_unknown_flag_before_it_does_not_hide_it(backends):
    traps = backends["FAST"][1]["trap"]
    assert {(r["arch"], r["dtype"], str(r["dcp"])) for r in traps} == {
        (arch, "nvfp4", "{'min': 2}") for arch in ("sm80", "sm86", "sm89", "sm120", "sm121")
    }
    assert {r["layer"] for r in traps} == {"constructor"}
    words = (
        "the selector accepts it, then FastBuilder raises NotImplementedError: The DCP wrapper cannot read NVFP4 scales"
    )
    assert {r["reason"] for r in traps} == {words}


def test_a_backend_that_takes_dcp_without_a_log_sum_exp_is_a_trap_where_the_runner_asserts_it(tmp_path):
    refuses = "supports_dcp(cls):\n            return False"
    assert refuses in toy.SLOW
    selector = Selector(Tree(toy.tree(tmp_path, slow=toy.SLOW.replace(refuses, refuses[:-5] + "True")), "0.30.0"))
    reading = Reading("0.30.0")
    for backend in sweep(selector, ["auto"]):
        decode_context(Condenser(selector, backend, ["auto"], reading))
    ((atom, evidence),) = reading.atoms.items()
    assert thawed(atom.when) == {"backend": "SLOW", "mla": False, "dcp": {"min": 2}}
    runner = "vllm/v1/worker/cp_utils.py"
    assert evidence.place == (runner, line_of(tmp_path, runner, "assert"))


def test_no_trap_is_added_where_the_selector_refuses_dcp_itself(release, backends):
    reading = Reading("0.30.0")
    decode_context(Condenser(release, backends["SLOW"][0], ["auto"], reading))
    assert reading.atoms == {}


def test_every_statement_together_answers_every_cell_as_the_source_does(backends):
    """Compaction loses nothing: the worst matching statement equals the evaluated answer."""
    for backend, said in backends.values():
        rows = [r for group in said.values() for r in group if r["verdict"] != "trap"]
        for cell, answer in backend.answers.items():
            words = {r["verdict"] for r in rows if matches(r, cell)}
            worst = next((w for w in ("refused", "unknown", "expected") if w in words), "none")
            expected = {"no": "refused", "yes": "expected", "unknown": "unknown"}[answer.verdict]
            assert worst == expected, (backend.name, cell, answer)


def matches(row: dict, cell: Cell) -> bool:
    def number(limit, value):
        if limit is None:
            return True
        if isinstance(limit, list):
            return value in limit
        return (
            value not in limit.get("not", [])
            and limit.get("min", 0) <= value <= limit.get("max", 10**9)
            and value % limit.get("multiple_of", 1) == 0
        )

    return (
        row["arch"] in (None, f"sm{cell.arch}")
        and row["dtype"] in (None, cell.kv_cache_dtype)
        and row.get("mla", cell.mla) == cell.mla
        and row.get("sparse", cell.sparse) == cell.sparse
        and row.get("sinks", cell.sinks) == cell.sinks
        and row.get("causal", cell.causal) == cell.causal
        and number(row.get("head_size"), cell.head_size)
        and number(row.get("dcp"), cell.dcp)
        and number(row.get("window"), 4096 if cell.window else 0)
    )


def test_a_release_without_a_registry_is_read_for_gqa_and_leaves_mla_open(tmp_path):
    reading = read_release(toy.legacy_tree(tmp_path), "0.9.2")
    said = [(atom.kind, atom.arch, thawed(atom.said), thawed(atom.when)) for atom in reading.atoms]
    orders = {arch: words["order"] for kind, arch, words, _ in said if kind == "priority"}
    assert orders["sm100"] == ["FAST"]
    assert orders["sm90"] == ["SLOW"]
    assert ("support", None, "unknown") in [(k, a, w.get("verdict")) for k, a, w, when in said if when == {"mla": True}]
    winners = next(f["value"] for f in reading.facts if f["fact"] == "legacy_winner.gqa.head128.bf16")
    assert (winners["sm100.fp8"], winners["sm103.auto"]) == ("FastBackend", "SlowBackend")


def test_facts_carry_value_path_and_line(tmp_path):
    root = toy.tree(tmp_path)
    facts = {f["fact"]: f for f in read_release(root, "0.30.0").facts}
    assert facts["kv_cache_dtype.values"]["value"] == ["auto", "bfloat16", "fp8", "nvfp4"]
    assert facts["attention_backend_registry.members_with_class_path"]["value"] == 3
    assert facts["SLOW.head_sizes"]["value"] == "any"
    assert facts["priority.sm100.gqa.kv_auto"]["value"] == ["FAST", "SLOW"]
    sizes = facts["FAST.head_sizes"]
    assert (sizes["value"], sizes["path"]) == ([64, 128, 256], FAST_FILE)
    assert sizes["line"] == line_of(root, FAST_FILE, "def get_supported_head_sizes")
    log = facts["log.kv_size"]
    assert log["value"] == "%s KV cache size: %s tokens, "
    assert log["line"] == line_of(root, "vllm/v1/core/kv_cache_utils.py", "KV cache size")


def test_candidates_are_the_backends_of_all_priority_lists(release):
    assert candidate_names(release, ["auto"]) == ["SLOW", "FAST", "LATENT"]
