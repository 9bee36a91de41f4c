"""The shipped matrix answers the questions that issues 2 and 3 state with numbers."""

import pytest

from nvdash.answers.check import check, exit_code
from nvdash.answers.matrix import lint, timeline

ISSUE_2 = {
    "framework": "vllm",
    "gpu": "RTX 5090",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "weights": "bf16",
    "kv_cache_dtype": "nvfp4",
}


def test_nvfp4_on_an_rtx_5090_is_expected_through_flashinfer_in_0_33_0():
    answer = check({**ISSUE_2, "release": "0.33.0"})
    prefill = answer["stages"]["prefill"]
    assert (answer["verdict"], answer["resolved"]["backend"], exit_code(answer)) == ("expected", "FLASHINFER", 0)
    assert (prefill["kernel"], prefill["path"]) == ("dequant", "flashinfer_fa2")
    assert answer["stages"]["decode"]["path"] == "flashinfer_xqa"
    assert prefill["evidence"]["file"] == "vllm/v1/attention/backends/flashinfer.py"
    assert prefill["evidence"]["line"] >= 1


def test_nvfp4_on_an_rtx_5090_is_refused_by_the_selector_in_0_27_0():
    answer = check({**ISSUE_2, "release": "0.27.0"})
    assert (answer["verdict"], answer["layer"], exit_code(answer)) == ("refused", "selector", 1)
    evidence = answer["stages"]["decode"]["evidence"]
    assert (evidence["release"], evidence["line"]) == ("0.27.0", 447)
    assert evidence["file"] == "vllm/v1/attention/backends/flashinfer.py"


def test_nvfp4_on_an_rtx_5090_is_a_trap_of_the_constructor_in_0_24_0():
    answer = check({**ISSUE_2, "release": "0.24.0"})
    assert (answer["verdict"], answer["layer"], exit_code(answer)) == ("trap", "constructor", 1)


def test_a_release_that_nobody_read_is_unknown_with_the_nearest_one():
    answer = check({**ISSUE_2, "release": "0.34.0"})
    assert (answer["verdict"], exit_code(answer), answer["nearest_release"]) == ("unknown", 3, "0.33.0")


def test_unequal_key_and_value_sizes_are_not_expected_in_0_33_0():
    question = {key: value for key, value in ISSUE_2.items() if key != "model"}
    for layout in ("gqa:64/8x128/64", "gqa:64/8x192/128"):
        for dtype in ("nvfp4", "auto"):
            answer = check({**question, "release": "0.33.0", "head_layout": layout, "kv_cache_dtype": dtype})
            assert answer["verdict"] not in ("expected", "validated")


def test_the_nvfp4_timeline_of_sm120():
    question = {"gpu": "sm120", "head_layout": "gqa:32/8x128", "weights": "bf16", "kv_cache_dtype": "nvfp4"}
    by_release = {
        release: (stretch["verdict"], stretch["layer"])
        for stretch in timeline(question)["stretches"]
        for release in stretch["releases"]
    }
    expected = {
        ("refused", "config"): ["0.13.0", "0.14.0", "0.16.0", "0.17.0", "0.18.0", "0.19.0"],
        ("unknown", None): ["0.15.0"],
        ("refused", "selector"): ["0.20.0", *(f"0.{minor}.0" for minor in range(25, 32))],
        ("trap", "forward"): ["0.21.0", "0.22.0"],
        ("trap", "constructor"): ["0.23.0", "0.24.0"],
        ("expected", None): ["0.32.0", "0.33.0"],
    }
    assert {release: by_release[release] for names in expected.values() for release in names} == {
        release: said for said, names in expected.items() for release in names
    }


@pytest.mark.parametrize(
    ("gpu", "layout", "dtype", "release", "verdict", "layer"),
    [
        ("sm90", "gqa:32/8x128", "nvfp4", "0.20.0", "trap", "forward"),
        ("sm90", "gqa:32/8x128", "nvfp4", "0.21.0", "trap", "forward"),
        ("sm100", "gqa:32/8x128", "nvfp4", "0.21.0", "expected", None),
        ("sm100", "gqa:32/8x512", "nvfp4", "0.25.0", "trap", "kernel"),
        ("sm100", "gqa:32/8x128", "nvfp4_ds_mla", "0.30.0", "trap", "silent"),
        ("sm120", "gqa:32/8x64", "nvfp4", "0.33.0", "refused", "selector"),
        ("sm120", "gqa:32/8x128,sinks", "nvfp4", "0.33.0", "refused", "selector"),
        ("sm100", "mla:128/1x576/512", "nvfp4", "0.33.0", "refused", "config"),
        ("cpu", "gqa:32/8x128", "nvfp4", "0.32.0", "trap", "silent"),
        ("cpu", "gqa:32/8x128", "int8_per_token_head", "0.32.0", "trap", "silent"),
        ("cpu", "gqa:32/8x128", "nvfp4", "0.33.0", "refused", "selector"),
        ("gfx942", "gqa:32/8x128", "fp8", "0.33.0", "conditional", None),
        ("sm80", "gqa:32/8x128", "nvfp4", "0.33.0", "expected", None),
        ("sm110", "gqa:32/8x128", "nvfp4", "0.33.0", "refused", "selector"),
    ],
)
def test_cells_that_a_simple_matrix_gets_wrong(gpu, layout, dtype, release, verdict, layer):
    question = {"gpu": gpu, "head_layout": layout, "weights": "bf16", "kv_cache_dtype": dtype, "release": release}
    answer = check(question)
    assert (answer["verdict"], answer["layer"]) == (verdict, layer)


def test_an_fp8_word_in_triton_below_sm89_raises_from_0_24_on():
    question = {"gpu": "sm86", "head_layout": "gqa:32/8x128", "weights": "bf16", "kv_cache_dtype": "fp8"}
    named = {**question, "backend": "TRITON_ATTN"}
    assert check({**named, "release": "0.33.0"})["layer"] == "constructor"
    assert check({**named, "release": "0.23.0"})["verdict"] == "unknown"


def test_dcp_with_nvfp4_raises_in_the_builder_outside_sm100():
    question = {
        "head_layout": "mqa:32/1x128",
        "weights": "bf16",
        "kv_cache_dtype": "nvfp4",
        "tp": 2,
        "dcp": 2,
        "release": "0.33.0",
    }
    answer = check({**question, "gpu": "sm120"})
    assert (answer["verdict"], answer["layer"]) == ("trap", "constructor")


@pytest.mark.parametrize(
    ("release", "gpu", "layout", "dtype", "decides", "layer"),
    [
        ("0.33.0", "sm100", "mqa:64/1x128", "nvfp4", "prefill", "forward"),
        ("0.14.1", "sm90", "mla:128/1x576/512", "fp8", "decode", "forward"),
        ("0.20.0", "sm90", "mla:128/1x576/512", "fp8", "decode", "forward"),
        ("0.33.0", "sm90", "mla:128/1x576/512", "fp8", None, None),
        ("0.33.0", "sm90", "mla_sparse:128/1x576/512", "auto", "decode", "constructor"),
    ],
)
def test_what_dcp_meets_behind_the_selector(release, gpu, layout, dtype, decides, layer):
    question = {"gpu": gpu, "head_layout": layout, "weights": "bf16", "kv_cache_dtype": dtype, "dcp": 8, "tp": 8}
    answer = check({**question, "release": release})
    assert answer["verdict"] == ("trap" if decides else "expected")
    assert answer["layer"] == layer
    assert not decides or answer["stages"][decides]["verdict"] == "trap"


@pytest.mark.parametrize(
    ("release", "layout", "tp", "dcp", "line"),
    [
        ("0.33.0", "gqa:64/4x128", 4, 2, 1581),
        ("0.33.0", "gqa:64/4x128", 8, 4, 1591),
        ("0.33.0", "gqa:12/4x128", 12, 2, 1601),
        ("0.33.0", "mla:128/1x576/512", 1, 2, 599),
        ("0.26.0", "gqa:64/4x128", 4, 2, 1252),
        ("0.14.1", "mla:128/1x576/512", 1, 2, 1392),
    ],
)
def test_sizes_that_dcp_cannot_have_are_refused_where_the_release_checks_them(release, layout, tp, dcp, line):
    question = {"gpu": "sm90", "head_layout": layout, "weights": "bf16", "tp": tp, "dcp": dcp, "release": release}
    answer = check(question, neighbours=False)
    assert (answer["verdict"], answer["layer"]) == ("refused", "config")
    assert answer["stages"]["decode"]["evidence"]["line"] == line


@pytest.mark.parametrize(("layout", "tp"), [("gqa:64/4x128", 8), ("mla:128/1x576/512", 2)])
def test_sizes_that_dcp_can_have_are_not_refused(layout, tp):
    answer = check({"gpu": "sm90", "head_layout": layout, "weights": "bf16", "tp": tp, "dcp": 2}, neighbours=False)
    assert answer["layer"] != "config"
    assert not any("dcp" in condition for condition in answer["unmet_conditions"])


@pytest.mark.parametrize("model", ["MiniMaxAI/MiniMax-M2.5", "moonshotai/Kimi-K2.5"])
def test_an_nvfp4_checkpoint_with_an_fp8_cache_scheme_turns_auto_into_fp8(model):
    answer = check({"gpu": "B200", "model": model, "weights": "nvfp4", "release": "0.33.0"})
    assert (answer["checkpoint"]["weights"], answer["checkpoint"]["kv_cache_scheme"]) == ("nvfp4", "fp8")
    assert answer["question"]["kv_cache_dtype"] == "auto"
    assert answer["resolved"]["kv_cache_dtype"] == "fp8_e4m3"


def test_what_auto_does_is_unknown_where_no_checkpoint_is_known():
    answer = check({**ISSUE_2, "model": "tiiuae/falcon-7b", "weights": "nvfp4", "kv_cache_dtype": "auto"})
    assert answer["resolved"]["kv_cache_dtype"] is None
    assert any("no nvfp4 checkpoint" in note for note in answer["notes"])


def test_a_compressed_tensors_cache_scheme_overrides_even_a_named_dtype_until_0_21():
    from nvdash.readers.matrix import current
    from nvdash.support.evaluate import verdict
    from nvdash.targets import Combination, HeadLayout

    def resolved(release: str) -> str | None:
        heads = HeadLayout.parse("gqa:32/8x128")
        item = Combination(
            "vllm", release, "sm90", "fp8", None, "bfloat16", heads, checkpoint_kv="fp8", method="compressed-tensors"
        )
        return verdict(current(), item).resolved["kv_cache_dtype"].resolved

    assert (resolved("0.21.0"), resolved("0.22.1")) == ("fp8", "bfloat16")


@pytest.mark.parametrize(
    ("gpu", "model", "dtype", "verdict", "backend", "stored"),
    [
        ("B200", "deepseek-ai/DeepSeek-V4-Pro", "auto", "unknown", "FLASHMLA_SPARSE_DSV4", "fp8_ds_mla"),
        ("B200", "deepseek-ai/DeepSeek-V4-Pro", "bfloat16", "trap", "FLASHMLA_SPARSE_DSV4", "bfloat16"),
        ("RTX 5090", "deepseek-ai/DeepSeek-V4-Flash", "fp8", "unknown", "FLASHINFER_MLA_SPARSE_DSV4", "fp8_ds_mla"),
        ("B200", "MiniMaxAI/MiniMax-M3", "auto", "unknown", "MINIMAX_M3_SPARSE", "bfloat16"),
        ("RTX 5090", "MiniMaxAI/MiniMax-M3", "nvfp4", "trap", "MINIMAX_M3_SPARSE", "nvfp4"),
    ],
)
def test_a_model_that_brings_its_own_attention_is_not_judged_by_the_list(gpu, model, dtype, verdict, backend, stored):
    answer = check({"release": "0.33.0", "gpu": gpu, "model": model, "kv_cache_dtype": dtype})
    assert (answer["verdict"], answer["resolved"]["backend"]) == (verdict, backend)
    assert answer["resolved"]["kv_cache_dtype"] == stored


@pytest.mark.parametrize(
    ("gpu", "dtype", "backend", "stored"),
    [
        ("H200 SXM", "fp8", "FLASHMLA_SPARSE", "fp8_ds_mla"),
        ("B200", "fp8", "FLASHINFER_MLA_SPARSE", "fp8"),
        ("RTX 5090", "auto", "FLASHINFER_MLA_SPARSE_SM120", "fp8_ds_mla"),
    ],
)
def test_one_cache_flag_is_another_record_per_gpu_in_sparse_mla(gpu, dtype, backend, stored):
    answer = check({"release": "0.33.0", "gpu": gpu, "model": "deepseek-ai/DeepSeek-V3.2", "kv_cache_dtype": dtype})
    assert answer["resolved"]["backend"] == backend
    assert answer["resolved"]["kv_cache_dtype"] == stored


@pytest.mark.parametrize("gpu", ["gfx1100", "MI355X", "V100-SXM2-32GB", "sm87", "sm107"])
@pytest.mark.parametrize("weights", ["nvfp4", "fp8"])
def test_what_was_evaluated_for_other_gpus_is_never_expected_here(gpu, weights):
    question = {"release": "0.33.0", "gpu": gpu, "head_layout": "gqa:32/8x128", "kv_cache_dtype": "bfloat16"}
    answer = check({**question, "weights": weights, "backend": "FLASH_ATTN"})
    assert answer["stages"]["weights"]["verdict"] == "unknown"
    assert answer["stages"]["decode"]["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("backend", "release", "gpu", "layout", "dtype", "verdict"),
    [
        ("FLASH_ATTN_DIFFKV", "0.33.0", "sm90", "gqa:32/8x128", "auto", "conditional"),
        ("FLASH_ATTN_DIFFKV", "0.16.0", "sm90", "gqa:32/8x128", "auto", "conditional"),
        ("FLASH_ATTN_DIFFKV", "0.33.0", "sm90", "gqa:32/8x64", "auto", "unknown"),
        ("FLASH_ATTN_DIFFKV", "0.33.0", "sm120", "gqa:64/4x192/128", "auto", "trap"),
        ("TRITON_ATTN_DIFFKV", "0.33.0", "sm120", "gqa:64/4x192/128", "auto", "conditional"),
        ("HPC_ATTN", "0.33.0", "sm90", "gqa:32/8x128", "fp8_e4m3", "conditional"),
        ("HPC_ATTN", "0.33.0", "sm90", "mha:32/32x128", "auto", "trap"),
        ("HPC_ATTN", "0.27.0", "sm120", "gqa:32/8x128", "auto", "unknown"),
    ],
)
def test_a_backend_that_no_list_names_is_never_simply_expected(backend, release, gpu, layout, dtype, verdict):
    question = {"release": release, "gpu": gpu, "head_layout": layout, "kv_cache_dtype": dtype, "backend": backend}
    decode = check({**question, "weights": "bf16"})["stages"]["decode"]
    assert decode["verdict"] == verdict
    assert decode["evidence"]["release"] == release


def test_mimo_v2_chooses_by_the_flash_attention_that_the_gpu_runs():
    def chosen(gpu: str) -> str:
        question = {"release": "0.33.0", "gpu": gpu, "model": "XiaomiMiMo/MiMo-V2-Flash", "kv_cache_dtype": "auto"}
        return check(question)["resolved"]["backend"]

    assert [chosen("H200 SXM"), chosen("RTX 5090")] == ["FLASH_ATTN_DIFFKV", "TRITON_ATTN_DIFFKV"]


@pytest.mark.parametrize(("gpu", "kernel"), [("sm100", "native"), ("sm120", "dequant")])
def test_one_kernel_has_one_kind_whichever_framework_calls_it(gpu, kernel):
    question = {"gpu": gpu, "head_layout": "gqa:32/8x128", "weights": "bf16", "kv_cache_dtype": "nvfp4"}
    for framework, release in (("vllm", "0.33.0"), ("sglang", "0.5.23")):
        decode = check({**question, "framework": framework, "release": release})["stages"]["decode"]
        assert (framework, decode["kernel"]) == (framework, kernel)


def test_an_assumption_that_the_model_s_config_contradicts_makes_it_conditional():
    question = {"gpu": "B200", "kv_cache_dtype": "fp8", "tp": 8, "release": "0.33.0"}
    glm = check({**question, "model": "zai-org/GLM-5"})
    assert "deepseek_mla_dimensions" in glm["assumes"]
    dims = "qk_nope_head_dim is 192, not 128, v_head_dim is 256, not 128"
    told = f"deepseek_mla_dimensions does not hold for zai-org/GLM-5: {dims}; check the cited line"
    assert (glm["verdict"], glm["reason"], glm["unmet_conditions"]) == ("conditional", told, [told])
    assert not any("does not hold" in note for note in glm["notes"])
    deepseek = check({**question, "model": "deepseek-ai/DeepSeek-V3.2"})
    assert (deepseek["verdict"], deepseek["unmet_conditions"]) == ("expected", [])


@pytest.mark.parametrize(
    ("release", "gpu", "model", "dtype", "backend"),
    [
        ("0.5.23", "B200", "deepseek-ai/DeepSeek-V3", "fp8_e4m3", "trtllm_mla"),
        ("0.5.3.post1", "B200", "deepseek-ai/DeepSeek-V3", "auto", "flashinfer"),
        ("0.5.23", "H200 SXM", "deepseek-ai/DeepSeek-V3", "fp8_e4m3", "fa3"),
        ("0.5.12", "B200", "deepseek-ai/DeepSeek-V4-Pro", "auto", "dsv4"),
        ("0.5.23", "RTX 5090", "openai/gpt-oss-120b", "fp8_e4m3", "triton"),
        ("0.5.23", "H200 SXM", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "auto", "fa3"),
    ],
)
def test_an_sglang_model_family_chooses_its_own_backend(release, gpu, model, dtype, backend):
    question = {"framework": "sglang", "release": release, "gpu": gpu, "model": model, "kv_cache_dtype": dtype}
    assert check(question, neighbours=False)["resolved"]["backend"] == backend


def test_a_family_s_choice_by_server_settings_is_unknown_until_a_backend_is_named():
    question = {"framework": "sglang", "release": "0.5.23", "gpu": "B200", "weights": "bf16", "kv_cache_dtype": "auto"}
    asked = {**question, "model": "Qwen/Qwen3-Next-80B-A3B-Instruct"}
    found = check(asked, neighbours=False)
    assert (found["verdict"], found["resolved"]["backend"]) == ("unknown", None)
    assert "the Mamba cache strategy" in found["reason"]
    assert found["stages"]["decode"]["evidence"]["file"].endswith("model_overrides/qwen3_5.py")
    assert check({**asked, "backend": "trtllm_mha"}, neighbours=False)["resolved"]["backend"] == "trtllm_mha"


@pytest.mark.parametrize(("heads", "backend"), [(128, "FLASH_ATTN_MLA_SPARSE_FA4"), (96, None)])
def test_the_query_heads_of_a_rank_decide_what_the_extractor_left_open(heads, backend):
    layout = f"mla_sparse:{heads}/1x576/512"
    question = {"release": "0.33.0", "gpu": "sm100", "head_layout": layout, "tp": 8, "weights": "bf16"}
    answer = check(question, neighbours=False)
    skipped = {row["backend"]: row["reason"] for row in answer["skipped_backends"]}
    assert answer["verdict"] == "expected"
    assert (answer["resolved"]["backend"] == backend) if backend else "FLASH_ATTN_MLA_SPARSE_FA4" in skipped


def test_every_check_of_the_matrix_passes():
    assert lint()["findings"] == []


LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("release", "line"), [("0.9.2", 3328), ("0.11.0", 1690), ("0.14.1", 1824), ("0.24.0", 2017), ("0.33.0", 2464)]
)
def test_a_bfloat16_model_runs_in_float16_on_turing(release, line):
    answer = check({"gpu": "sm75", "model": LLAMA, "weights": "bf16", "release": release})
    cache = answer["resolution"]["kv_cache_dtype"]
    assert (answer["resolved"]["kv_cache_dtype"], answer["resolved"]["weights"]) == ("float16", "fp16")
    assert (cache["evidence"]["release"], cache["evidence"]["line"]) == (release, line)


def test_a_model_that_refuses_float16_runs_in_float32_on_turing():
    answer = check({"gpu": "sm75", "model": "google/gemma-3-1b-it", "weights": "bf16", "release": "0.22.0"})
    assert (answer["resolved"]["kv_cache_dtype"], answer["resolved"]["backend"]) == ("float32", "TRITON_ATTN")


@pytest.mark.parametrize(
    ("release", "gpu", "word", "backend", "said"),
    [
        ("0.16.0", "sm90", "bfloat16", None, ("trap", "forward")),
        ("0.19.0", "sm100", "float16", None, ("trap", "forward")),
        ("0.19.0", "sm90", "bfloat16", "TRITON_ATTN", ("trap", "forward")),
        ("0.22.0", "sm90", "bfloat16", "TRITON_ATTN", ("trap", "forward")),
        ("0.22.0", "sm90", "bfloat16", None, ("expected", None)),
        ("0.24.0", "sm90", "float16", None, ("trap", "silent")),
        ("0.24.0", "sm90", "float16", "TRITON_ATTN", ("expected", None)),
        ("0.23.0", "sm75", "bfloat16", None, ("trap", "silent")),
        ("0.33.0", "sm90", "bfloat16", None, ("expected", None)),
        ("0.33.0", "sm90", "float16", None, ("refused", "config")),
        ("0.33.0", "sm75", "bfloat16", None, ("refused", "config")),
        ("0.33.0", "sm75", "float16", None, ("expected", None)),
    ],
)
def test_a_16_bit_word_that_is_written_out(release, gpu, word, backend, said):
    question = {"gpu": gpu, "model": LLAMA, "weights": "bf16", "release": release, "kv_cache_dtype": word}
    answer = check({**question, "backend": backend})
    assert (answer["verdict"], answer["layer"]) == said


@pytest.mark.parametrize(
    ("release", "word", "stored", "verdict"),
    [
        ("0.11.0", "auto", "fp8_ds_mla", "unknown"),
        ("0.12.0", "fp8", "fp8_ds_mla", "expected"),
        ("0.17.0", "fp8", "fp8_ds_mla", "expected"),
        ("0.17.0", "auto", "bfloat16", "expected"),
        ("0.17.0", "bfloat16", "bfloat16", "expected"),
        ("0.18.0", "fp8", "fp8_ds_mla", "expected"),
    ],
)
def test_deepseek_v32_packs_its_fp8_cache_in_every_release(release, word, stored, verdict):
    question = {"gpu": "sm90", "model": "deepseek-ai/DeepSeek-V3.2", "weights": "fp8", "release": release}
    answer = check({**question, "kv_cache_dtype": word})
    assert (answer["resolved"]["kv_cache_dtype"], answer["verdict"]) == (stored, verdict)


@pytest.mark.parametrize(
    ("release", "gpu", "model", "backend"),
    [
        ("0.12.0", "sm90", "google/gemma-3-27b-it", "FLASH_ATTN"),
        ("0.14.0", "sm90", "google/gemma-3-27b-it", "TRITON_ATTN"),
        ("0.23.0", "sm100", "google/gemma-3-27b-it", "TRITON_ATTN"),
        ("0.24.0", "sm90", "google/gemma-3-27b-it", "FLASH_ATTN"),
        ("0.24.0", "sm89", "google/gemma-3-27b-it", "TRITON_ATTN"),
        ("0.33.0", "sm90", "google/gemma-3-27b-it", None),
        ("0.33.0", "sm90", "google/gemma-3-1b-it", "FLASH_ATTN"),
        ("0.22.0", "sm90", "google/gemma-4-26B-A4B", "TRITON_ATTN"),
        ("0.33.0", "sm120", "google/gemma-4-26B-A4B", "TRITON_ATTN"),
    ],
)
def test_image_tokens_and_two_head_sizes_choose_the_backend(release, gpu, model, backend):
    answer = check({"gpu": gpu, "model": model, "weights": "bf16", "release": release})
    assert answer["resolved"]["backend"] == backend


def test_glm_5_stores_fp8_for_auto_on_sm100_from_0_32_on():
    question = {"gpu": "sm100", "model": "zai-org/GLM-5", "weights": "bf16"}
    releases = ("0.31.0", "0.32.0", "0.33.0")
    stored = [check({**question, "release": release})["resolved"]["kv_cache_dtype"] for release in releases]
    assert stored == ["the model's 16-bit type", "fp8_e4m3", "fp8_e4m3"]


@pytest.mark.parametrize(("release", "line"), [("0.4.9.post6", 604), ("0.5.9", 908), ("0.5.23", 83)])
def test_sglang_runs_every_model_in_float16_on_turing(release, line):
    answer = check({"framework": "sglang", "gpu": "sm75", "model": LLAMA, "weights": "bf16", "release": release})
    cache = answer["resolution"]["kv_cache_dtype"]
    assert (cache["resolved"], cache["evidence"]["line"], answer["resolved"]["weights"]) == ("float16", line, "fp16")


@pytest.mark.parametrize(
    ("release", "gpu", "model", "dtype", "backend", "verdict"),
    [
        ("0.5.11", "sm100", "google/gemma-4-26B-A4B", "auto", "triton", "expected"),
        ("0.5.13", "sm100", "google/gemma-4-26B-A4B", "auto", None, "unknown"),
        ("0.5.16", "sm90", "google/gemma-4-26B-A4B", "auto", "triton", "expected"),
        ("0.5.9", "sm120", "LGAI-EXAONE/EXAONE-4.0-32B", "auto", None, "unknown"),
        ("0.5.8", "sm100", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "auto", None, "unknown"),
    ],
)
def test_sglang_families_choose_before_the_default(release, gpu, model, dtype, backend, verdict):
    question = {"framework": "sglang", "gpu": gpu, "model": model, "weights": "bf16", "release": release}
    answer = check({**question, "kv_cache_dtype": dtype})
    assert (answer["resolved"]["backend"], answer["verdict"]) == (backend, verdict)


def test_sglang_refuses_a_named_backend_that_gemma_4_does_not_take():
    question = {"framework": "sglang", "gpu": "sm90", "model": "google/gemma-4-26B-A4B", "weights": "bf16"}
    answer = check({**question, "release": "0.5.16", "backend": "fa3"})
    assert (answer["verdict"], answer["layer"]) == ("refused", "config")


@pytest.mark.parametrize(
    ("release", "gpu", "layout", "backend", "chosen", "verdict"),
    [
        ("0.9.2", "sm75", "gqa:32/8x128", None, None, "unknown"),
        ("0.10.2", "sm75", "gqa:32/8x128", None, "FLEX_ATTENTION", "expected"),
        ("0.10.2", "sm89", "gqa:64/8x64,sinks", None, "TRITON_ATTN", "expected"),
        ("0.11.0", "sm90", "gqa:64/8x64,sinks", None, "FLASH_ATTN", "expected"),
        ("0.11.0", "sm120", "gqa:64/8x64,sinks", "FLASH_ATTN", "FLASH_ATTN", "trap"),
        ("0.11.0", "sm100", "gqa:64/8x64,sinks", None, "FLASHINFER", "expected"),
        ("0.11.0", "sm90", "gqa:32/8x80", None, "FLEX_ATTENTION", "expected"),
        ("0.11.0", "sm100", "gqa:32/8x96", None, "FLASH_ATTN", "expected"),
        ("0.11.0", "sm100", "gqa:32/8x96", "FLASHINFER", "FLASHINFER", "trap"),
    ],
)
def test_the_choice_before_the_registry_looks_at_sinks_and_head_sizes(release, gpu, layout, backend, chosen, verdict):
    question = {"gpu": gpu, "head_layout": layout, "weights": "bf16", "release": release}
    answer = check({**question, "backend": backend})
    assert (answer["resolved"]["backend"], answer["verdict"]) == (chosen, verdict)


@pytest.mark.parametrize(
    ("release", "weights", "line"), [("0.12.0", "fp8", 152), ("0.19.0", "fp8", 166), ("0.33.0", "fp8", 219)]
)
def test_an_e5m2_cache_of_an_fp8_checkpoint_raises_in_the_layer(release, weights, line):
    question = {"gpu": "sm89", "model": LLAMA, "kv_cache_dtype": "fp8_e5m2", "release": release}
    answer = check({**question, "weights": weights})
    assert (answer["verdict"], answer["layer"]) == ("trap", "constructor")
    assert answer["stages"]["prefill"]["evidence"]["line"] == line
    assert check({**question, "weights": "bf16"})["verdict"] == "expected"


@pytest.mark.parametrize(
    ("release", "gpu", "layout", "dtype", "backend", "said"),
    [
        ("0.5.13", "sm89", "gqa:32/8x128", "fp8_e4m3", "fa3", ("trap", "kernel")),
        ("0.5.13", "sm90", "gqa:32/8x128", "fp8_e4m3", "fa3", ("expected", None)),
        ("0.5.13", "sm89", "gqa:32/8x128", "auto", "fa3", ("expected", None)),
        ("0.5.21", "sm120", "gqa:32/8x128", "mxfp8", None, ("trap", "silent")),
        ("0.5.7", "sm100", "gqa:32/8x128", "fp8_e5m2", None, ("trap", "kernel")),
        ("0.5.14", "sm100", "gqa:64/4x192/128", "auto", None, ("trap", "forward")),
        ("0.5.17", "sm100", "gqa:64/4x192/128", "auto", None, ("expected", None)),
        ("0.5.17", "sm120", "gqa:64/4x192/128", "auto", None, ("unknown", None)),
        ("0.5.21", "sm100", "mla:128/1x576/512", "mxfp8", None, ("trap", "silent")),
    ],
)
def test_what_sglang_accepts_and_its_kernels_do_not_read(release, gpu, layout, dtype, backend, said):
    question = {"framework": "sglang", "gpu": gpu, "head_layout": layout, "weights": "bf16", "release": release}
    answer = check({**question, "kv_cache_dtype": dtype, "backend": backend})
    assert (answer["verdict"], answer["layer"]) == said


def test_turboquant_met_hybrids_in_0_21():
    question = {"gpu": "sm90", "model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "weights": "bf16"}
    asked = {**question, "kv_cache_dtype": "turboquant_k8v4"}
    said = [check({**asked, "release": release})["verdict"] for release in ("0.20.0", "0.20.2", "0.21.0")]
    assert said == ["refused", "refused", "expected"]


@pytest.mark.parametrize(
    ("release", "gpu", "question", "said"),
    [
        ("0.13.0", "sm75", {"model": "deepseek-ai/DeepSeek-V2-Lite"}, ("unknown", None)),
        ("0.24.0", "sm75", {"model": "deepseek-ai/DeepSeek-V2-Lite"}, ("trap", "forward")),
        ("0.24.0", "sm80", {"model": "deepseek-ai/DeepSeek-V2-Lite"}, ("expected", None)),
        ("0.19.0", "sm80", {"head_layout": "gqa:32/8x80", "kv_cache_dtype": "fp8"}, ("unknown", None)),
        ("0.14.0", "sm86", {"head_layout": "gqa:64/8x64,sinks", "kv_cache_dtype": "fp8_e4m3"}, ("unknown", None)),
        ("0.22.0", "sm80", {"head_layout": "gqa:32/8x128", "kv_cache_dtype": "fp8_per_token_head"}, ("unknown", None)),
        ("0.22.0", "sm89", {"head_layout": "gqa:32/8x128", "kv_cache_dtype": "fp8_per_token_head"}, ("expected", None)),
        ("0.18.0", "sm80", {"head_layout": "mla:16/1x576/512", "kv_cache_dtype": "fp8"}, ("unknown", None)),
        ("0.18.0", "sm89", {"head_layout": "mla:16/1x576/512", "kv_cache_dtype": "fp8"}, ("expected", None)),
        ("0.26.0", "sm80", {"head_layout": "mla:16/1x576/512", "kv_cache_dtype": "fp8"}, ("trap", "constructor")),
    ],
)
def test_kernels_behind_the_selector_that_old_gpus_lack(release, gpu, question, said):
    answer = check({"gpu": gpu, "weights": "bf16", "release": release, **question})
    assert (answer["verdict"], answer["layer"]) == said


@pytest.mark.parametrize(
    ("release", "gpu", "layout", "backend", "said"),
    [
        ("0.13.0", "sm90", "gqa:32/8x128", "TRITON_ATTN", ("trap", "forward")),
        ("0.33.0", "sm120", "gqa:32/8x80", None, ("trap", "forward")),
        ("0.19.0", "sm100", "gqa:32/8x128", None, ("trap", "forward")),
        ("0.12.0", "sm103", "gqa:32/8x128", None, ("expected", None)),
        ("0.33.0", "sm89", "gqa:32/8x128", None, ("expected", None)),
        ("0.27.0", "sm90", "gqa:32/8x128", None, ("expected", None)),
        ("0.28.0", "sm90", "gqa:32/8x128", None, ("trap", "kernel")),
    ],
)
def test_an_e5m2_cache_meets_queries_and_kernels_of_e4m3(release, gpu, layout, backend, said):
    question = {"gpu": gpu, "head_layout": layout, "weights": "bf16", "release": release}
    answer = check({**question, "kv_cache_dtype": "fp8_e5m2", "backend": backend})
    assert (answer["verdict"], answer["layer"]) == said
