"""Kernel names: what they prove, on real names from public profiles."""

import csv
from pathlib import Path

import pytest

from nvdash.smoke import kernels
from nvdash.smoke.kernels import classify


def table(path: Path) -> list[dict]:
    return list(csv.DictReader(path.read_text().splitlines()))


FOUND = table(Path(__file__).parent / "kernel_names_found.csv")


def right(name: str, family: str, kv_dtype: str) -> bool:
    got = classify(name)
    wanted = {{"fp8": "fp8_e4m3", "": "none"}.get(dtype, dtype) for dtype in kv_dtype.split("|")}
    return got.family in family.split("|") and (got.kv_dtype or "none") in wanted


@pytest.mark.parametrize("row", FOUND, ids=lambda row: row["name"][:60])
def test_names_found_in_public_profiles(row):
    assert right(row["name"], row["family"], row["kv_dtype"])


def test_enough_names_were_never_tuned_on():
    """Of 18 held out, 17 were right at the first try; the missed one was then put right and counts no more."""
    marks = [row["held_out"] for row in FOUND]
    assert (len(FOUND), marks.count("yes"), marks.count("missed")) == (40, 17, 1)
    assert all(row["source"] for row in FOUND)


def test_every_rule_has_a_source_a_known_role_and_its_own_id():
    rules = kernels.load().rules
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.source and rule.role in kernels.ROLES for rule in rules)


@pytest.mark.parametrize(
    ("name", "family", "dtype"),
    [
        ("bmm_E2m1_E2m1E2m1_Fp32_Ab16_Bb16_Cb16_t128x128x512u2_sm100f", "gemm_fp4", None),
        ("void vllm::reshape_and_cache_nvfp4_kernel", "kv_append", "nvfp4"),
        (
            "fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvDenseP16VarSeqQ8Kv128PersistentSwapsAbForGen",
            "trtllm_gen_fmha",
            "nvfp4",
        ),
        ("kernel_mha(unsigned int, float, float const*, ...)", "xqa", None),
    ],
)
def test_fp4_in_a_name_is_no_evidence_of_an_fp4_cache_unless_the_cache_carries_it(name, family, dtype):
    assert (classify(name).family, classify(name).kv_dtype) == (family, dtype)


def test_the_cache_type_is_the_second_of_flashinfers_three():
    name = "BatchPrefillWithPagedKVCacheKernel<..., __nv_fp8_e4m3, __nv_fp4x2_e2m1, __nv_bfloat16, ...>"
    assert classify(name).kv_dtype == "nvfp4"


def test_a_tile_of_16_hints_at_decode_although_the_name_says_prefill():
    name = "flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)0, 16u, 1u>"
    assert classify(name).phase_hint == "decode"
    assert classify(name.replace("16u", "128u")).phase_hint == "prefill"


@pytest.mark.parametrize(("number", "dtype"), [(0, "bf16"), (1, "fp8_e4m3"), (2, "fp8_e5m2")])
def test_vllms_writer_names_the_cache_by_an_enumerator(number, dtype):
    name = f"void vllm::reshape_and_cache_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType){number}>"
    assert classify(name).kv_dtype == dtype


def test_a_trtllm_gen_name_is_read_by_its_grammar():
    name = "fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512PagedKvDenseStaticTokenSparseP1VarSeqQ16Kv128PersistentForGen"
    got = classify(name)
    assert (got.query_dtype, got.kv_dtype, got.head_size, got.value_head_size) == ("fp8_e4m3", "fp8_e4m3", 576, 512)
    assert (got.page_size, got.phase_hint, got.role) == (1, "decode", "attention_decode")


def test_a_name_nobody_knows_stays_unknown():
    assert classify("zorblax_kernel_17").family == "unknown"


def test_mangled_names_are_spelled_out_with_or_without_a_tool(monkeypatch):
    mangled = (
        "_ZN10flashinfer33BatchDecodeWithPagedKVCacheKernelILNS_15PosEncodingModeE0ELj2ENS_17BatchDecodeParamsI"
        "13__nv_bfloat16S5_S5_iEEEEvT7_"
    )
    monkeypatch.setattr(kernels.shutil, "which", lambda tool: None)
    assert classify(mangled).family == "flashinfer_fa2"
    cut = "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupl..."
    assert "cutlass::device_kernel<gemm::kernel::GemmUniversal" in kernels.demangle([cut])[0]


def test_a_hostile_name_is_cut_and_answered():
    assert classify("_Z" + "9" * 50_000).family == "unknown"
    assert classify("a" * 100_000 + "nvfp4").family == "unknown"


def test_patterns_do_not_backtrack_without_end():
    import time

    for text in ("_" * 4000, "rope" * 1000, "gemm_" * 800, "E2m1" * 1000, "sm90::fwd::" * 360):
        began = time.monotonic()
        classify(text)
        assert time.monotonic() - began < 1.0, text[:20]


def test_the_shared_lists_are_met_in_full(shared):
    for file, columns in (
        ("vllm-cpu/kernel_names.csv", ("kernel_name", "family", "kv_dtype_evident")),
        ("kernel-names-more.csv", ("name", "family", "kv_dtype")),
    ):
        rows = table(shared / "samples" / file)
        wrong = [row[columns[0]] for row in rows if not right(*(row[column] for column in columns))]
        assert (len(rows), wrong) == ({"kernel_name": 67, "name": 38}[columns[0]], [])
