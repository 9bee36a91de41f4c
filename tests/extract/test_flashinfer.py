"""FlashInfer's paths and kernel files, on small trees and on file names."""

import zipfile

import pytest

from nvdash.errors import NvdashError
from nvdash.extract import flashinfer, flashinfer_cubin, flashinfer_facts
from tests.extract.trees import tree_of

PAGE = """
    def append_paged_mla_kv_cache(x): ...
    def append_paged_kv_cache(x): ...
"""
NVFP4_PAGE = PAGE + "    def nvfp4_quantize_append_paged_kv_cache(x): ...\n"
XQA = """
    def xqa(q):
        if k_cache.dtype == torch.uint8:
            assert get_compute_capability(device)[0] in [12], (
                "XQA NVFP4 KV is only supported on SM12x GPUs"
            )
        if get_compute_capability(device)[0] not in [9, 10, 12]:
            raise RuntimeError("XQA is only supported on some GPUs")
"""
JIT = """
    if head_dim % 16 != 0 or head_dim > 256 or head_dim < 16:
        raise ValueError("no")
"""


def facts(folder, files):
    found = flashinfer_facts.read(tree_of(folder, files, "flashinfer"))
    return {fact.fact: (fact.value, fact.line) for fact in found}


def test_an_absent_append_stands_beside_the_append_that_is_there(tmp_path):
    assert facts(tmp_path, {"flashinfer/page.py": PAGE})["append.nvfp4.gqa"] == ("absent", 2)


def test_a_present_append_stands_at_its_definition(tmp_path):
    value, line = facts(tmp_path, {"flashinfer/page.py": NVFP4_PAGE})["append.nvfp4.gqa"]
    assert value.startswith("present")
    assert line == 3


def test_capabilities_are_the_decorators_literal(tmp_path):
    said = facts(
        tmp_path,
        {
            "flashinfer/quantization/fp4_quantization.py": """
        @supported_compute_capability([100, 120])
        def _nvfp4_kv_quant_check(x):
            return True
    """
        },
    )
    assert said["nvfp4_kv_quantize.sm"] == ([100, 120], 2)


def test_xqa_guards_are_read_one_by_one(tmp_path):
    said = facts(tmp_path, {"flashinfer/xqa.py": XQA, "flashinfer/jit/xqa.py": JIT})
    assert said["xqa.nvfp4_kv.sm"] == ("major 12 only", 4)
    assert said["xqa.sm_majors"] == ([9, 10, 12], 7)
    assert said["xqa.head_dim"] == ("16 to 256, multiple of 16", 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("_NVFP4_SPLIT_KV_BROKEN_ARCHS = ((12, 0), (12, 1))", ["12.0", "12.1"]),
        ("def _nvfp4_kv_requires_disabled_split_kv(dtype): ...", "every SM"),
    ],
)
def test_split_kv_is_off_where_the_release_says(tmp_path, text, value):
    assert facts(tmp_path, {"flashinfer/prefill.py": text})["fa2.nvfp4_kv.split_kv_disabled_sm"] == (value, 1)


def test_xqa_reads_an_nvfp4_cache_on_sm120_and_refuses_it_on_sm90(tmp_path):
    tree_of(tmp_path, {"flashinfer/xqa.py": XQA, "flashinfer/jit/xqa.py": JIT}, "flashinfer")
    atoms = flashinfer.read_release(tmp_path, "1.0.0").atoms
    said = {
        a.arch: dict(a.said)["verdict"]
        for a in atoms
        if a.kv_cache_dtype == "nvfp4" and '"xqa"' in dict(a.when)["backend"]
    }
    assert (said["sm120"], said["sm121"], said["sm90"], said["sm80"]) == (
        '"expected"',
        '"expected"',
        '"refused"',
        '"refused"',
    )


NAMES = [
    "x/cubins/1/fmha/trtllm-gen/fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvCausalP16VarSeqQ128Kv128StaticContext.cubin",
    "x/cubins/1/fmha/trtllm-gen/fmhaSm103aKernel_QE4m3KvE2m1OE4m3H64PagedKvDenseP16VarSeqQ8Kv128StaticSwapsAbForGen.cubin",
    "x/cubins/1/fmha/trtllm-gen/fmhaSm100fKernel_QkvBfloat16OBfloat16H256PagedKvCausalP16VarSeqQ128Kv128StaticContext.cubin",
    "x/cubins/1/fmha/trtllm-gen/fmhaSm100fKernel_QkvE4m3OBfloat16H80PackedQkvCausalVarSeqQ128Kv128StaticContext.cubin",
    "x/cubins/1/fmha/trtllm-gen/fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512PagedKvDenseP32VarSeqQ16Kv128Static.cubin",
    "x/cubins/1/gemm/other.cubin",
]


def test_kernel_files_tell_types_sizes_and_phases():
    said = {fact.fact: fact.value for fact in flashinfer_cubin.read(NAMES)}
    assert said["trtllm_gen.paged.QE4m3_KvE2m1"] == {
        "sm": ["100a", "103a"],
        "head_dims": [64, 128],
        "phases": ["context", "generation"],
        "output": ["E4m3"],
    }
    assert said["trtllm_gen.paged.head_dims.bf16_context"] == [256]
    assert said["trtllm_gen.paged.QE4m3_KvE4m3"] == {"phases": ["generation"], "head_dims": []}


def test_every_attention_kernel_name_is_understood():
    assert len(list(flashinfer_cubin.kernels(NAMES))) == 5


def test_a_missing_head_size_is_a_kernel_trap():
    atoms = flashinfer_cubin.read_release(NAMES, "1.0.0").atoms
    traps = [a for a in atoms if dict(a.said)["verdict"] == '"trap"' and a.kv_cache_dtype == "nvfp4"]
    assert {(a.arch, dict(a.when)["head_size"]) for a in traps} == {
        ("sm100", '{"not": [128]}'),
        ("sm103", '{"not": [64]}'),
    }


def test_a_truncated_wheel_is_named(tmp_path):
    wheel = tmp_path / "cut.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(NAMES[0], b"")
    wheel.write_bytes(wheel.read_bytes()[:40])
    with pytest.raises(NvdashError, match=r"cut\.whl: expected a wheel of flashinfer-cubin"):
        flashinfer_cubin.names_in(wheel)
