"""From SGLang's evaluated outcomes to statements: sides, pairs, phantoms and weights."""

import json

import pytest

from nvdash.extract import sglang
from nvdash.extract.findings import Fact
from nvdash.extract.sglang_statements import flashinfer_path, rectangles
from nvdash.extract.sglang_weights import read as read_weights
from nvdash.extract.source import ExtractError
from nvdash.extract.statements import Reading
from tests.extract.trees import tree_of

COMMON = """
    is_sm100_supported = lru_cache(maxsize=1)(partial(check, device_capability_majors=[10], cuda_version=(12, 8)))
"""
ARGUMENTS = """
    from sglang.srt.utils.common import is_sm100_supported

    class ServerArgs:
        def add_cli_args(parser):
            parser.add_argument("--kv-cache-dtype", choices=["auto", "fp8_e4m3", "nvfp4"])
            parser.add_argument("--attention-backend", choices=["triton", "flashinfer", "trtllm_mha"])

        def __post_init__(self):
            self._handle_attention_backend_compatibility()
            self._handle_kv4_compatibility()

        def _handle_attention_backend_compatibility(self):
            if self.attention_backend is None:
                self.attention_backend = "triton"
            prefill = self.prefill_attention_backend or self.attention_backend
            if prefill == "trtllm_mha":
                raise ValueError("no prefill with trtllm_mha")

        def _handle_kv4_compatibility(self):
            if self.kv_cache_dtype != "nvfp4":
                return
            if not is_sm100_supported():
                raise ValueError("nvfp4 needs SM100")
            prefill = self.prefill_attention_backend or self.attention_backend
            decode = self.decode_attention_backend or self.attention_backend
            assert decode == "trtllm_mha", "decode must be trtllm_mha"
"""
METHODS = """
    class NVFP4KVCacheMethod:
        \"\"\"NVFP4 two-level scaling: global FP32 + per-block FP8 E4M3.\"\"\"
    _NVFP4_PREFILL_BACKENDS = frozenset({"flashinfer"})
"""
POOL = """
    class MHATokenToKVPoolFP4: ...
    class MLATokenToKVPoolFP4:
        def set_kv_buffer(self, k):
            return BlockFP4.batched_quantize(k)
"""
FILES = {
    "sglang/srt/server_args.py": ARGUMENTS,
    "sglang/srt/utils/common.py": COMMON,
    "sglang/srt/layers/quantization/fp4_kv_cache_quant_method.py": METHODS,
    "sglang/srt/layers/attention/trtllm_mha_backend.py": "",
    "sglang/srt/mem_cache/memory_pool.py": POOL,
}


def said_of(folder, files, arch, word, **when):
    """What is said, as plain rows, of one architecture and cache dtype under these conditions."""
    tree_of(folder, files, "sglang")
    rows = []
    for atom in sglang.read_release(folder, "1.0.0").atoms:
        conditions = {key: json.loads(value) for key, value in atom.when}
        if (atom.arch, atom.kv_cache_dtype) == (arch, word) and when.items() <= conditions.items():
            rows.append(({key: json.loads(value) for key, value in atom.said}, conditions))
    return rows


def test_a_backend_that_only_decodes_is_refused_for_prefill_and_expected_for_decode(tmp_path):
    rows = said_of(tmp_path, FILES, "sm100", "fp8_e4m3", backend="trtllm_mha", mla=False)
    verdicts = {tuple(said["stage"]): (said["verdict"], said.get("layer")) for said, _ in rows}
    assert verdicts == {
        ("prefill",): ("refused", "config"),
        ("decode",): ("expected", None),
        ("kv_write",): ("expected", None),
    }


def test_an_fp4_cache_is_read_through_a_workspace_in_prefill_and_natively_in_decode(tmp_path):
    rows = said_of(tmp_path, FILES, "sm100", "nvfp4", mla=False)
    kernels = {
        (c["backend"], said["stage"][0]): said.get("kernel")
        for said, c in rows
        if said["verdict"] == "expected" and "backend" in c
    }
    assert kernels[("flashinfer", "prefill")] == "dequant"
    assert kernels[("trtllm_mha", "decode")] == "native"


def test_a_prefill_backend_without_an_access_rule_is_unknown_and_not_expected(tmp_path):
    rows = said_of(tmp_path, FILES, "sm100", "nvfp4", backend="triton", mla=False)
    assert [(said["stage"], said["verdict"]) for said, _ in rows if said["verdict"] == "unknown"] == [
        (["prefill"], "unknown")
    ]


def test_pairs_that_a_check_refuses_name_both_backends(tmp_path):
    rows = said_of(tmp_path, FILES, "sm100", "nvfp4", mla=False)
    refused = [c for said, c in rows if said.get("reason") == "decode must be trtllm_mha"]
    assert refused == [
        {"prefill_backend": ["flashinfer", "triton"], "decode_backend": ["flashinfer", "triton"], "mla": False}
    ]


def test_an_architecture_that_is_refused_for_every_pair_is_said_once(tmp_path):
    rows = said_of(tmp_path, FILES, "sm90", "nvfp4", mla=False)
    assert {said["reason"] for said, _ in rows} == {"nvfp4 needs SM100", "no prefill with trtllm_mha"}


def test_a_flag_without_a_pool_class_is_a_silent_trap(tmp_path):
    files = {**FILES, "sglang/srt/mem_cache/memory_pool.py": "class Other: ..."}
    rows = said_of(tmp_path, files, None, "nvfp4", mla=False)
    assert [(said["verdict"], said["layer"]) for said, _ in rows] == [("trap", "silent")]


def test_a_release_that_moved_something_needed_is_named_with_what_to_map(tmp_path):
    tree_of(tmp_path, {**FILES, "sglang/srt/mem_cache/memory_pool.py": "class MHATokenToKVPoolFP4: ..."}, "sglang")
    with pytest.raises(ExtractError, match=r"a place for mla_fp4_pool\.format"):
        sglang.read_release(tmp_path, "1.0.0")


def test_a_word_that_the_flag_does_not_know_is_refused(tmp_path):
    rows = said_of(tmp_path, FILES, None, None, kv_cache_dtype={"not": ["auto", "fp8_e4m3", "nvfp4"]})
    assert [said["verdict"] for said, _ in rows] == ["refused"]


def test_pairs_are_covered_by_rectangles_and_a_whole_side_is_left_out():
    names = ["a", "b"]
    assert list(rectangles({("a", "a"), ("b", "a")}, names)) == [(None, ["a"])]
    assert list(rectangles({("a", "a"), ("b", "b")}, names)) == [(["a"], ["a"]), (["b"], ["b"])]


@pytest.mark.parametrize(
    ("backend", "arch", "stage", "path"),
    [
        ("trtllm_mha", "sm100", "prefill", "trtllm-gen"),
        ("trtllm_mha", "sm120", "decode", "xqa"),
        ("trtllm_mha", "sm120", "prefill", True),
        ("flashinfer", "sm120", "prefill", "fa2"),
        ("flashinfer", "sm90", "decode", True),
        ("triton", "sm120", "decode", None),
    ],
)
def test_each_backend_names_the_flashinfer_path_behind_it(backend, arch, stage, path):
    assert flashinfer_path(backend, arch, stage, mla=False) == path


def test_nvfp4_weights_run_weight_only_before_blackwell_and_natively_after():
    facts = [
        Fact("quant.modelopt_fp4.min_capability", 80, "q.py", 5),
        Fact(
            "quant.modelopt_fp4.auto_gemm",
            {"sm80-sm90": "marlin (weight only)", "sm100": "flashinfer_cutedsl", "sm120": "flashinfer_cutlass"},
            "sglang/srt/layers/quantization/fp4_utils.py",
            9,
        ),
    ]
    reading = Reading("1.0.0")
    read_weights(facts, reading)
    said = {atom.arch: {key: json.loads(value) for key, value in atom.said} for atom in reading.atoms}
    assert said["sm75"]["verdict"] == "refused"
    assert (said["sm90"]["path"], said["sm90"]["kernel"]) == ("marlin", "dequant")
    assert (said["sm100"]["path"], said["sm100"]["kernel"]) == ("flashinfer_cutedsl", "native")
    assert (said["sm121"]["path"], said["sm121"]["kernel"]) == ("flashinfer_cutlass", "native")
