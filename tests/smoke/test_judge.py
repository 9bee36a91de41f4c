"""From facts to a verdict, one question at a time."""

import pytest

from nvdash.smoke import judge
from nvdash.smoke.judge import report
from nvdash.smoke.runner import Attempt
from nvdash.smoke.spec import CaseSpec, Layer
from nvdash.store.observations import observed

ONE_LAYER = (Layer("full", 8, 2, 128, 128),)
NVFP4_BYTES, FP8_BYTES = 2 * 2 * 72, 2 * 2 * 128  # 288 and 512 per token
DECODE = "fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvDenseP16VarSeqQ8Kv128PersistentSwapsAbForGen"
PREFILL = "fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvCausalP32VarSeqQ128Kv128PersistentContext"
WRITE = "void vllm::reshape_and_cache_nvfp4_kernel"


def rows(*kernels):
    return [{"name": name, "phase": phase, "calls": calls, "time_us": 1.0} for name, phase, calls in kernels]


NATIVE = rows((PREFILL, "prefill", 1), (WRITE, "prefill", 1), (DECODE, "decode", 8), (WRITE, "decode", 8))


def facts(kernels=NATIVE, bytes_per_token=NVFP4_BYTES, **changes):
    return {
        "outcome": "done",
        "environment": {
            "release": "0.33.0",
            "device": "cuda",
            "arch": "sm100",
            "gpu": "NVIDIA B200",
            "flashinfer": "1",
        },
        "resolved": {"backend": "FLASHINFER"},
        "cache": {"bytes_per_token": bytes_per_token},
        "trace": {"rows": kernels, "steps": {"prefill": 1, "decode": 8}, "device": True},
        "layers": 1,
        "graphs": ["eager", "default"],
        "timings": {"prefill_s": 0.1},
        **changes,
    }


def judged(found=None, ended="facts", log=(), attempts=None, shared=None, **changes):
    spec = CaseSpec("0a1b2c3d", "vllm", "nvfp4", ONE_LAYER, **{"backend": "FLASHINFER", **changes})
    attempts = attempts or [Attempt(ended, "decode", 1.0, facts=facts() if found is None else found)]
    return report(spec, attempts, log, shared)


def stored(found):
    return list(observed({**found.as_dict(), "smoke_id": found.case_id}))


def test_native_kernels_that_carry_the_format_pass():
    found = judged()
    assert (found.verdict, found.layer) == ("pass", None)
    assert found.stages["decode"]["families"] == ["trtllm_gen_fmha"]
    assert found.stages["decode"]["compute"] == {"q": "fp8_e4m3"}
    assert found.is_cuda and found.validates


def test_a_pass_validates_exactly_what_ran():
    seen = stored(judged())
    assert {(item.verdict, item.level, item.graphs) for item in seen} == {
        ("validated", "traced", "eager"),
        ("validated", "traced", "default"),
    }
    assert {(item.framework, item.release, item.arch, item.head_size, item.kind) for item in seen} == {
        ("vllm", "0.33.0", "sm100", 128, "gqa")
    }
    assert set(seen[0].stages) == {"kv_write", "prefill", "decode"}


def test_a_decode_kernel_without_a_type_in_its_name_leaves_the_dtype_unproven():
    xqa = [*NATIVE[:2], *rows(("kernel_mha", "decode", 8), (WRITE, "decode", 8))]
    found = judged(facts(xqa))
    assert found.verdict == "pass_dtype_unproven"
    assert "decode" in found.reason
    assert {item.level for item in stored(found)} == {"served"}


def test_the_size_of_another_format_is_a_silent_fallback():
    found = judged(facts(bytes_per_token=FP8_BYTES))
    assert (found.verdict, found.layer) == ("fallback", "silent")
    assert "288 bytes per token by the formula, 512 allocated, the size of fp8_e4m3" in found.reason
    assert {(item.verdict, item.layer) for item in stored(found)} == {("trap", "silent")}


def test_kernels_of_another_format_are_a_silent_fallback():
    wide = [{**row, "name": row["name"].replace("KvE2m1", "KvE4m3")} for row in NATIVE]
    found = judged(facts(wide))
    assert (found.verdict, found.layer) == ("fallback", "silent")
    assert "hold fp8_e4m3" in found.reason


def test_kernels_of_another_backend_are_a_silent_fallback():
    triton = rows(("kernel_unified_attention", "prefill", 1), ("kernel_unified_attention", "decode", 8))
    assert "triton_unified" in judged(facts(triton, resolved={})).reason
    assert judged(facts(resolved={"backend": "TRITON_ATTN"})).reason == (
        "asked for the backend FLASHINFER, TRITON_ATTN ran"
    )


def test_a_dequantising_prefill_is_no_contradiction():
    widened = rows(
        ("nvfp4_paged_dequant_kernel", "prefill", 1),
        ("BatchPrefillWithPagedKVCacheKernel<..., __nv_bfloat16, __nv_fp8_e4m3, __nv_bfloat16, ...>", "prefill", 1),
        (DECODE, "decode", 8),
        (WRITE, "decode", 8),
    )
    found = judged(facts(widened))
    assert found.verdict == "pass_dtype_unproven"
    assert found.stages["prefill"]["kernel"] == "dequant"


def test_attention_over_fresh_keys_and_values_says_nothing_of_the_cache():
    ragged = "flashinfer::BatchPrefillWithRaggedKVCacheKernel<..., __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, ...>"
    found = judged(facts([*rows((ragged, "prefill", 1)), *NATIVE[1:]]))
    assert (found.verdict, found.stages["prefill"]["kv_dtypes"]) == ("pass_dtype_unproven", [])


def test_a_latent_layer_may_prefill_on_unpacked_keys():
    layer = (Layer("mla", 128, 1, 576, 512),)
    decode = "fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512PagedKvDenseP32VarSeqQ16Kv128PersistentSwapsAbForGen"
    write = "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1>"
    prefill = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<192, 64, 64, 4, false, false, cutlass::bfloat16_t>>"
    kernels = rows((prefill, "prefill", 1), (write, "prefill", 1), (decode, "decode", 8), (write, "decode", 8))
    spec = CaseSpec("0a1b2c3d", "vllm", "fp8", layer, "FLASHINFER_MLA")
    done = facts(kernels, 576, resolved={"backend": "FLASHINFER_MLA"})
    found = report(spec, [Attempt("facts", "decode", 1.0, facts=done)], [])
    assert found.verdict == "pass_dtype_unproven"
    assert (found.stages["decode"]["proven"], found.stages["prefill"]["proven"]) == (True, False)


def test_a_trace_without_attention_is_no_trace_and_never_a_pass():
    assert judged(facts([])).verdict == "no_trace"
    assert stored(judged(facts([]))) == []


def test_fewer_launches_than_steps_times_layers_are_no_trace():
    found = judged(facts(layers=2))
    assert found.verdict == "no_trace"
    assert found.reason == "1 attention launches in prefill, 2 expected (1 steps x 2 layers)"


def test_an_asserted_number_over_its_bar_is_a_wrong_result():
    number = {"name": "relative L2", "phase": "decode", "value": 0.4, "bar": 0.02, "asserted": True, "passed": False}
    found = judged(facts(numbers=[number]))
    assert (found.verdict, found.layer) == ("wrong_result", "forward")
    preview = {**number, "asserted": False}
    assert judged(facts(numbers=[preview])).verdict == "pass"


@pytest.mark.parametrize(
    ("weights", "gemm", "verdict", "kernel"),
    [
        ("nvfp4", "bmm_Bfloat16_E2m1E2m1_Fp32_t128x16_sm100f", "pass", "native"),
        ("nvfp4", "void marlin::Marlin<...>(int4 const*, ...)", "pass", "dequant"),
        ("nvfp4", "nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNT", "fallback", None),
    ],
)
def test_the_weight_stage_is_judged_by_its_gemms(weights, gemm, verdict, kernel):
    found = judged(facts([*NATIVE, *rows((gemm, "decode", 8))]), weights=weights)
    assert found.verdict == verdict
    assert kernel in (None, found.stages["weights"].get("kernel"))


@pytest.mark.parametrize(
    ("ended", "verdict"), [("timeout", "timeout"), ("killed", "oom"), ("signal", "crash"), ("half a report", "crash")]
)
def test_how_a_process_ended_decides_before_any_fact(ended, verdict):
    assert judged({}, ended).verdict == verdict


def test_only_a_crash_that_happened_twice_says_something_of_the_matrix():
    boom = {"outcome": "crash", "error": "illegal memory access", "environment": facts()["environment"]}
    boom |= {"trace": facts()["trace"]}
    once = judged(
        attempts=[Attempt("facts", "decode", 1.0, facts=boom), Attempt("facts", "decode", 1.0, facts=facts())]
    )
    twice = judged(attempts=[Attempt("facts", "decode", 1.0, facts=boom)] * 2)
    assert (once.verdict, twice.verdict) == ("crash", "crash")
    assert "synchronous launches ran through" in once.reason
    assert (stored(once), once.stages) == ([], {})
    assert {(item.verdict, item.layer) for item in stored(twice)} == {("trap", "forward")}


@pytest.mark.parametrize(
    ("line", "verdict", "layer"),
    [
        (
            "ValueError: Selected backend FLASHINFER is not valid for this configuration. Reason: ['x']",
            "refused",
            "selector",
        ),
        ("ValueError: No valid attention backend found for cuda with ...", "refused", "selector"),
        ("RuntimeError: Missing TRTLLM-GEN kernel: qkvLayout=2", "refused", "kernel"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "oom", None),
        ("RuntimeError: Could not find nvcc and default cuda_home", "environment", None),
    ],
)
def test_a_workers_last_words_decide_where_the_engine_only_says_that_it_failed(line, verdict, layer):
    failed = {"outcome": "crash", "error": "Engine core initialization failed. See root cause above."}
    found = judged(attempts=[Attempt("facts", "allocate", 1.0, facts=failed)] * 2, log=["INFO start", line])
    assert (found.verdict, found.layer) == (verdict, layer)


def test_times_on_a_shared_gpu_are_not_kept():
    assert judged(shared=True).timings == {}
    assert judged(shared=False).timings == {"prefill_s": 0.1}


def test_the_reference_engine_changes_nothing_in_the_matrix():
    spec = CaseSpec("0a1b2c3d", "reference", "nvfp4", ONE_LAYER)
    done = {"outcome": "done", "cache": {"bytes_per_token": NVFP4_BYTES}, "exercised": ["decode"], "environment": {}}
    found = report(spec, [Attempt("facts", "compare", 1.0, facts=done)], [])
    assert found.verdict == "pass"
    assert found.not_tested[0].startswith("any kernel of any framework")
    assert stored(found) == []


def test_a_pool_printed_with_two_decimals_is_compared_within_two_percent():
    log = ["KV Cache is allocated. dtype: torch.uint8, #tokens: 100000, K size: 0.013 GB, V size: 0.013 GB"]
    rounded = facts(cache={"bytes_per_token": 290, "bytes_source": "pool printed with two decimals"})
    assert judged(rounded, log=log).verdict == "pass"
    assert judged(facts(bytes_per_token=290)).verdict == "fallback"


def test_equal_questions_have_equal_ids():
    one, other = (CaseSpec("", "vllm", dtype, ONE_LAYER) for dtype in ("nvfp4", "fp8"))
    assert judge.case_id(one) == judge.case_id(CaseSpec("", "vllm", "nvfp4", ONE_LAYER))
    assert judge.case_id(one) != judge.case_id(other)
