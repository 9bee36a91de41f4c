"""One combination, stage by stage."""

from dataclasses import replace

from nvdash.readers.matrix import Release
from nvdash.support.evaluate import verdict
from nvdash.support.observations import Observation
from nvdash.targets import HeadLayout
from tests.support.conftest import priority, row

FLASHINFER_ROW = row("fi", {"backend": "FLASHINFER", "kv_cache_dtype": "nvfp4"}, kernel="dequant", path="fa2")
FLASH_ATTN_NO = row("fa", {"backend": "FLASH_ATTN", "kv_cache_dtype": {"not": ["auto", "fp8"]}}, "refused")


def test_the_first_backend_that_the_selector_accepts_is_chosen(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([priority(["FLASH_ATTN", "FLASHINFER"]), FLASH_ATTN_NO, FLASHINFER_ROW])
    found = verdict(matrix, nvfp4_on_sm120)
    assert (found.verdict, found.backend) == ("expected", "FLASHINFER")
    assert found.stages["prefill"].kernel == "dequant"
    assert found.stages["prefill"].evidence == {
        "framework": "vllm",
        "release": "0.33.0",
        "file": "a.py",
        "line": 7,
        "level": "source",
    }
    assert [refusal.backend for refusal in found.skipped] == ["FLASH_ATTN"]


def test_a_constructor_trap_is_chosen_and_stays_a_trap(make_matrix, nvfp4_on_sm120):
    trap = row("t", {"backend": "FLASHINFER"}, "trap", layer="constructor", reason="raises")
    rows = [priority(["FLASHINFER", "TRITON_ATTN"]), FLASHINFER_ROW, trap, row("tr", {"backend": "TRITON_ATTN"})]
    found = verdict(make_matrix(rows), nvfp4_on_sm120)
    assert (found.verdict, found.layer, found.backend) == ("trap", "constructor", "FLASHINFER")


def test_when_every_backend_refuses_the_selector_refuses_with_each_reason(make_matrix, nvfp4_on_sm120):
    specific = row(
        "fi-no",
        {"backend": "FLASHINFER", "kv_cache_dtype": "nvfp4", "arch": ["sm90", "sm120"]},
        "refused",
        evidence={"release": "0.33.0", "file": "flashinfer.py", "line": 447},
    )
    found = verdict(make_matrix([priority(["FLASH_ATTN", "FLASHINFER"]), FLASH_ATTN_NO, specific]), nvfp4_on_sm120)
    assert (found.verdict, found.layer, found.backend) == ("refused", "selector", None)
    assert found.deciding.evidence["line"] == 447
    assert found.deciding.reason == "no backend of the release's list accepts it; FLASHINFER: fi-no says no"
    assert [(item.backend, item.reason) for item in found.skipped] == [
        ("FLASH_ATTN", "fa says no"),
        ("FLASHINFER", "fi-no says no"),
    ]


def test_an_unknown_backend_before_the_winner_hides_it(make_matrix, nvfp4_on_sm120):
    found = verdict(make_matrix([priority(["MYSTERY", "FLASHINFER"]), FLASHINFER_ROW]), nvfp4_on_sm120)
    assert found.verdict == "unknown"
    assert "MYSTERY is tried first" in found.deciding.reason


def test_a_named_backend_is_asked_alone(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([priority(["FLASHINFER", "FLASH_ATTN"]), FLASHINFER_ROW, FLASH_ATTN_NO])
    found = verdict(matrix, replace(nvfp4_on_sm120, backend="FLASH_ATTN"))
    assert (found.verdict, found.layer, found.backend) == ("refused", "selector", "FLASH_ATTN")


def test_a_flag_word_that_the_release_lacks_is_refused_by_the_config_whatever_the_backend(make_matrix, nvfp4_on_sm120):
    words = row(
        "words", {"kv_cache_dtype": {"not": ["auto", "fp8"]}}, "refused", layer="config", reason="no such value"
    )
    found = verdict(make_matrix([words, priority(["FLASHINFER"]), FLASHINFER_ROW]), nvfp4_on_sm120)
    assert (found.verdict, found.layer, found.deciding.reason) == ("refused", "config", "no such value")


def test_an_unread_release_is_unknown_and_names_the_nearest_read_one(make_matrix, nvfp4_on_sm120):
    releases = (Release("0.32.0", source="sdist"), Release("0.32.1", source="none"), Release("0.33.0", source="sdist"))
    matrix = make_matrix([priority(["FLASHINFER"]), FLASHINFER_ROW], releases)
    for asked, nearest in (("0.34.0", "0.33.0"), ("0.32.1", "0.32.0"), ("0.1.0", "0.32.0"), ("main", "0.33.0")):
        found = verdict(matrix, replace(nvfp4_on_sm120, release=asked))
        assert (found.verdict, found.nearest_release) == ("unknown", nearest)


def test_prefill_and_decode_choose_their_backends_apart(make_matrix, nvfp4_on_sm120):
    rows = [
        priority(["flashinfer"], stage=["prefill"]),
        priority(["trtllm_mha"], stage=["decode"]),
        row("p", {"backend": "flashinfer"}, stage=["kv_write", "prefill"], kernel="dequant"),
        row("d", {"backend": "trtllm_mha"}, stage=["kv_write", "decode"], kernel="native"),
    ]
    found = verdict(make_matrix(rows), nvfp4_on_sm120)
    assert (found.verdict, found.backend) == ("expected", "flashinfer + trtllm_mha")
    assert (found.stages["prefill"].kernel, found.stages["decode"].kernel) == ("dequant", "native")


def test_a_refused_pair_is_refused_though_each_half_is_accepted(make_matrix, nvfp4_on_sm120):
    rows = [
        row("p", {"backend": ["a", "b"]}),
        row("pair", {"prefill_backend": "a", "decode_backend": "b"}, "refused", layer="config", reason="not together"),
    ]
    matrix = make_matrix(rows)
    assert verdict(matrix, replace(nvfp4_on_sm120, prefill_backend="a", decode_backend="b")).verdict == "refused"
    assert verdict(matrix, replace(nvfp4_on_sm120, prefill_backend="b", decode_backend="b")).verdict == "expected"


def test_open_head_sizes_make_a_limited_backend_conditional(make_matrix, nvfp4_on_sm120):
    no_64 = row("no64", {"backend": "FLASHINFER", "head_size": 64}, "refused")
    found = verdict(make_matrix([priority(["FLASHINFER"]), FLASHINFER_ROW, no_64]), replace(nvfp4_on_sm120, heads=None))
    assert (found.verdict, found.conditions()) == ("conditional", ["head_size not 64"])


def test_a_tag_adds_kernel_and_compute_and_never_a_verdict(make_matrix, nvfp4_on_sm120):
    tag = {
        "id": "tag",
        "kind": "tag",
        "when": {"backend": "FLASHINFER", "arch": "sm120"},
        "since": "0.32.0",
        "stage": ["decode"],
        "kernel": "dequant",
        "path": "flashinfer_xqa",
        "compute": {"q": "bfloat16"},
    }
    matrix = make_matrix([priority(["FLASHINFER"]), row("fi", {"backend": "FLASHINFER"}), tag])
    found = verdict(matrix, nvfp4_on_sm120)
    assert found.stages["decode"].path == "flashinfer_xqa"
    assert found.stages["decode"].compute == {"q": "bfloat16"}
    assert found.stages["prefill"].path is None
    assert verdict(make_matrix([priority(["FLASHINFER"]), tag]), nvfp4_on_sm120).verdict == "unknown"


def test_a_list_of_particular_models_does_not_count_while_no_model_is_named(make_matrix, nvfp4_on_sm120):
    general = {**priority(["FLASHINFER"], {"mla": False}), "generated": True}
    own = priority(["OWN"], {"model_base": "a/b", "mla": False})
    matrix = make_matrix([general, own, FLASHINFER_ROW])
    open_shape = replace(nvfp4_on_sm120, heads=None)
    assert verdict(matrix, open_shape).resolved["backend"].resolved == "FLASHINFER"
    named = verdict(matrix, replace(nvfp4_on_sm120, model_base="a/b"))
    assert named.resolved["backend"].resolved == "OWN"


# --- what auto becomes ---------------------------------------------------------------------------------------------

RESOLVE = [
    {
        "id": "auto-nvfp4",
        "kind": "resolve",
        "when": {"kv_cache_dtype": "auto", "checkpoint_kv": "nvfp4"},
        "since": "0.32.0",
        "becomes": "nvfp4",
    }
]
AUTO_ROW = row("wide", {"backend": "FLASHINFER", "kv_cache_dtype": ["auto", "bfloat16"]}, kernel="native")


def test_auto_follows_a_checkpoint_with_a_4_bit_cache_scheme(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([*RESOLVE, priority(["FLASHINFER"]), FLASHINFER_ROW, AUTO_ROW])
    found = verdict(matrix, replace(nvfp4_on_sm120, kv_cache_dtype="auto", checkpoint_kv="nvfp4"))
    assert (found.resolved["kv_cache_dtype"].requested, found.resolved["kv_cache_dtype"].resolved) == ("auto", "nvfp4")
    assert found.stages["prefill"].kernel == "dequant"


def test_auto_is_the_models_own_type_when_the_checkpoint_asks_nothing(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([*RESOLVE, priority(["FLASHINFER"]), FLASHINFER_ROW, AUTO_ROW])
    found = verdict(matrix, replace(nvfp4_on_sm120, kv_cache_dtype="auto", model_dtype="float16"))
    assert found.resolved["kv_cache_dtype"].resolved == "float16"
    assert found.stages["prefill"].kernel == "native"


def test_auto_is_unknown_when_the_checkpoints_scheme_was_not_read(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([*RESOLVE, priority(["FLASHINFER"]), FLASHINFER_ROW, AUTO_ROW])
    found = verdict(matrix, replace(nvfp4_on_sm120, kv_cache_dtype="auto", checkpoint_kv=None))
    assert (found.verdict, found.resolved["kv_cache_dtype"].resolved) == ("unknown", None)
    assert "kv_cache_scheme was not read" in found.stages["decode"].reason


def becomes(name: str, when: dict, to: str, line: int, **more) -> dict:
    evidence = {"release": "0.33.0", "file": "config.py", "line": line}
    return {
        "id": name,
        "kind": "resolve",
        "when": when,
        "since": "0.32.0",
        "becomes": to,
        "evidence": evidence,
        **more,
    }


def test_a_gpu_without_the_models_type_stores_what_it_runs_in(make_matrix, nvfp4_on_sm120):
    falls_back = becomes("old", {"arch": "sm75", "model_dtype": "bfloat16"}, "float16", 7, axis="model_dtype")
    matrix = make_matrix([falls_back, priority(["FLASHINFER"]), AUTO_ROW])
    asked = replace(nvfp4_on_sm120, arch="sm75", kv_cache_dtype="auto", weights="bf16")
    for model_dtype in ("bfloat16", None):
        found = verdict(matrix, replace(asked, model_dtype=model_dtype))
        cache, weights = found.resolved["kv_cache_dtype"], found.resolved["weights"]
        assert (cache.resolved, cache.evidence["line"], weights.resolved) == ("float16", 7, "fp16")
        assert found.stages["prefill"].kernel == "native"
    elsewhere = verdict(matrix, replace(asked, arch="sm80", model_dtype="bfloat16"))
    assert (elsewhere.resolved["kv_cache_dtype"].resolved, elsewhere.resolved["weights"].resolved) == (
        "bfloat16",
        "bf16",
    )


def test_rules_of_the_cache_dtype_follow_one_another_while_the_word_changes(make_matrix, nvfp4_on_sm120):
    follows = becomes("checkpoint", {"kv_cache_dtype": "auto", "checkpoint_kv": "fp8"}, "fp8_e4m3", 1)
    packs = becomes("hook", {"kv_cache_dtype": ["fp8", "fp8_e4m3"], "model_class": "V32"}, "fp8_ds_mla", 2)
    words = row("words", {"kv_cache_dtype": {"not": ["auto", "fp8"]}}, "refused", layer="config", reason="no such word")
    packed = row("packed", {"backend": "FLASHINFER", "kv_cache_dtype": "fp8_ds_mla"})
    matrix = make_matrix([follows, packs, words, priority(["FLASHINFER"]), packed])
    asked = replace(nvfp4_on_sm120, kv_cache_dtype="auto", checkpoint_kv="fp8", model_class="V32")
    found = verdict(matrix, asked)
    assert (found.verdict, found.resolved["kv_cache_dtype"].resolved) == ("expected", "fp8_ds_mla")
    assert verdict(matrix, replace(asked, kv_cache_dtype="fp8_ds_mla")).stages["decode"].reason == "no such word"
    other = verdict(matrix, replace(asked, model_class=None))
    assert other.resolved["kv_cache_dtype"].resolved == "fp8_e4m3"


def test_a_statement_about_some_models_is_silent_where_no_model_is_named(make_matrix, nvfp4_on_sm120):
    images = row("images", {"backend": "FLASHINFER", "model_class": ["Gemma3"]}, "refused", reason="images")
    matrix = make_matrix([images, priority(["FLASHINFER", "TRITON"]), FLASHINFER_ROW])
    assert verdict(matrix, nvfp4_on_sm120).verdict == "expected"
    assert verdict(matrix, replace(nvfp4_on_sm120, model_class="Gemma3")).resolved["backend"].resolved is None


def test_the_backend_nearest_to_accepting_gives_the_reason(make_matrix, nvfp4_on_sm120):
    rows = [
        row("kind", {"backend": "SPARSE"}, "refused", reason="skipped: non-sparse not supported"),
        row("foreign", {"backend": "TRITON"}, "refused", reason="skipped: kv_cache_dtype not supported"),
        row("two", {"backend": "FLASH"}, "refused", reason="skipped: sinks"),
        row("more", {"backend": "FLASH"}, "refused", reason="skipped: kv_cache_dtype not supported"),
        row("gpu", {"backend": "FLASHINFER"}, "refused", reason="skipped: compute capability not supported"),
    ]
    found = verdict(make_matrix([*rows, priority(["SPARSE", "TRITON", "FLASH", "FLASHINFER"])]), nvfp4_on_sm120)
    assert found.stages["prefill"].reason.endswith("FLASHINFER: skipped: compute capability not supported")


def test_a_backend_may_store_another_record_than_the_flag_says(make_matrix, nvfp4_on_sm120):
    packed = {
        "id": "packed",
        "kind": "resolve",
        "when": {"backend": "FLASHINFER", "kv_cache_dtype": "nvfp4"},
        "since": "0.32.0",
        "becomes": "nvfp4_ds_mla",
        "evidence": {"release": "0.33.0", "file": "mla.py", "line": 3},
    }
    found = verdict(make_matrix([packed, priority(["FLASHINFER"]), FLASHINFER_ROW]), nvfp4_on_sm120)
    cache = found.resolved["kv_cache_dtype"]
    assert (cache.requested, cache.resolved, cache.evidence["line"]) == ("nvfp4", "nvfp4_ds_mla", 3)
    assert found.verdict == "expected"
    other = verdict(make_matrix([packed, priority(["TRITON"]), FLASHINFER_ROW]), nvfp4_on_sm120)
    assert other.resolved["kv_cache_dtype"].resolved == "nvfp4"


# --- weights -------------------------------------------------------------------------------------------------------


FORMATS = {"weight_flags": {"modelopt_fp4": "nvfp4", "petit_nvfp4": "nvfp4", "awq_marlin": "awq", "quark": None}}


def quant(id_, when, verdict_="expected", **more):
    return {**row(id_, when, verdict_), "kind": "quant", **more}


def test_unquantised_weights_need_no_rule_and_say_so(make_matrix, nvfp4_on_sm120):
    stage = verdict(make_matrix([]), nvfp4_on_sm120).stages["weights"]
    assert (stage.verdict, stage.reason) == ("expected", "no quantisation method is involved")
    assert stage.evidence == {"level": "none"}


def test_quantised_weights_without_a_rule_are_unknown(make_matrix, nvfp4_on_sm120):
    assert verdict(make_matrix([]), replace(nvfp4_on_sm120, weights="nvfp4")).stages["weights"].verdict == "unknown"


def test_an_open_method_makes_weights_conditional(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([quant("m", {"method": "modelopt_fp4", "arch": "sm120"})], axes=FORMATS)
    stage = verdict(matrix, replace(nvfp4_on_sm120, weights="nvfp4")).stages["weights"]
    assert (stage.verdict, stage.conditions) == ("conditional", ("method modelopt_fp4",))
    named = replace(nvfp4_on_sm120, weights="nvfp4", method="modelopt_fp4")
    assert verdict(matrix, named).stages["weights"].verdict == "expected"


def test_expert_layers_count_only_for_a_model_that_has_them(make_matrix, nvfp4_on_sm120):
    rows = [
        quant("linear", {"weights": "nvfp4"}, part="linear", kernel="native"),
        quant("experts", {"weights": "nvfp4"}, "refused", layer="kernel", reason="no expert kernel", part="experts"),
    ]
    matrix = make_matrix(rows)
    dense = verdict(matrix, replace(nvfp4_on_sm120, weights="nvfp4", experts=False)).stages["weights"]
    sparse = verdict(matrix, replace(nvfp4_on_sm120, weights="nvfp4", experts=True)).stages["weights"]
    assert (dense.verdict, list(dense.parts)) == ("expected", ["linear"])
    assert (sparse.verdict, sparse.parts["experts"].verdict, sparse.parts["linear"].kernel) == (
        "refused",
        "refused",
        "native",
    )


# --- the FlashInfer join -------------------------------------------------------------------------------------------

PINNED = (Release("0.32.0", source="sdist"), Release("0.33.0", source="sdist", flashinfer="0.7.2"))
FLASHINFER_RELEASES = (Release("0.7.2", source="wheel"),)
NEEDS = row("fi", {"backend": "FLASHINFER"}, requires_flashinfer="fa2")


def library(verdict_, **more):
    base = row("lib", {"backend": "fa2", "kv_cache_dtype": "nvfp4"}, verdict_, since="0.7.2", **more)
    return {"flashinfer": ([base], FLASHINFER_RELEASES)}


def test_a_flashinfer_refusal_lowers_the_verdict(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([priority(["FLASHINFER"]), NEEDS], PINNED, **library("refused", layer="kernel", reason="gone"))
    found = verdict(matrix, nvfp4_on_sm120)
    assert (found.verdict, found.layer, found.deciding.reason) == ("refused", "kernel", "flashinfer 0.7.2: gone")


def test_a_flashinfer_unknown_is_only_assumed(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([priority(["FLASHINFER"]), NEEDS], PINNED, flashinfer=([], FLASHINFER_RELEASES))
    found = verdict(matrix, nvfp4_on_sm120)
    assert (found.verdict, found.assumes()) == ("expected", ["flashinfer_path_unread"])


def test_a_flashinfer_yes_assumes_nothing(make_matrix, nvfp4_on_sm120):
    matrix = make_matrix([priority(["FLASHINFER"]), NEEDS], PINNED, **library("expected"))
    found = verdict(matrix, nvfp4_on_sm120)
    assert (found.verdict, found.assumes()) == ("expected", [])


# --- observations --------------------------------------------------------------------------------------------------

RAN = Observation(
    run="7c1e09ab",
    framework="vllm",
    release="0.33.0",
    arch="sm120",
    verdict="validated",
    stages=("kv_write", "prefill", "decode"),
    level="traced",
    backend="FLASHINFER",
    kv_cache_dtype="nvfp4",
    kind="gqa",
    head_size=128,
    value_head_size=128,
    graphs="default",
)
ONE_BACKEND = [priority(["FLASHINFER"]), FLASHINFER_ROW]


def test_an_exact_run_validates_the_stages_it_exercised(make_matrix, nvfp4_on_sm120):
    found = verdict(make_matrix(ONE_BACKEND), nvfp4_on_sm120, [replace(RAN, stages=("decode",))])
    assert (found.stages["decode"].verdict, found.stages["prefill"].verdict) == ("validated", "expected")
    assert found.stages["decode"].evidence["run"] == "7c1e09ab"


def test_a_run_elsewhere_leaves_expected_and_says_where_it_ran(make_matrix, nvfp4_on_sm120):
    for other in (
        replace(RAN, release="0.32.0"),
        replace(RAN, head_size=256, value_head_size=256),
        replace(RAN, kind="mha"),
        replace(RAN, graphs="eager"),
        replace(RAN, flashinfer="0.1"),
    ):
        stage = verdict(make_matrix(ONE_BACKEND), nvfp4_on_sm120, [other]).stages["decode"]
        assert (stage.verdict, stage.note) == ("expected", f"ran on {other.release}")


def test_a_run_on_another_architecture_says_nothing(make_matrix, nvfp4_on_sm120):
    stage = verdict(make_matrix(ONE_BACKEND), nvfp4_on_sm120, [replace(RAN, arch="sm90")]).stages["decode"]
    assert (stage.verdict, stage.note) == ("expected", None)


def test_a_run_that_fell_back_turns_expected_into_a_trap_and_flags_the_conflict(make_matrix, nvfp4_on_sm120):
    fell = replace(RAN, verdict="trap", layer="silent", reason="stored as FP8")
    found = verdict(make_matrix(ONE_BACKEND), nvfp4_on_sm120, [fell])
    assert (found.verdict, found.layer) == ("trap", "silent")
    assert found.conflicts() == ["source says expected, run 7c1e09ab showed trap"]


def test_a_run_that_worked_where_source_refuses_is_a_conflict_and_stays_refused(make_matrix, nvfp4_on_sm120):
    no = row("no", {"backend": "FLASHINFER", "kv_cache_dtype": "nvfp4"}, "refused")
    found = verdict(make_matrix([priority(["FLASHINFER"]), no]), nvfp4_on_sm120, [RAN])
    assert found.verdict == "refused"
    assert found.conflicts() == ["source says refused, run 7c1e09ab worked as requested"]


def test_reports_stand_beside_a_verdict_and_do_not_lower_it(make_matrix, nvfp4_on_sm120):
    report = {"url": "https://github.com/vllm-project/vllm/issues/50416", "claim": "wrong output", "level": "report"}
    rows = [priority(["FLASHINFER"]), row("fi", {"backend": "FLASHINFER"}, reports=[report])]
    found = verdict(make_matrix(rows), nvfp4_on_sm120)
    assert (found.verdict, found.reports()) == ("expected", [report])


def test_mla_is_asked_with_its_latent_record(make_matrix, nvfp4_on_sm120):
    no_mla = row(
        "mla", {"mla": True, "kv_cache_dtype": "nvfp4"}, "refused", layer="config", reason="plain nvfp4 with MLA"
    )
    matrix = make_matrix([priority(["FLASHINFER"]), FLASHINFER_ROW, no_mla])
    latent = replace(nvfp4_on_sm120, heads=HeadLayout.parse("mla:128/1x576/512"))
    assert (verdict(matrix, latent).verdict, verdict(matrix, latent).layer) == ("refused", "config")
    assert verdict(matrix, nvfp4_on_sm120).verdict == "expected"


def test_a_tag_may_say_that_a_stage_runs_no_flashinfer_kernel(make_matrix, nvfp4_on_sm120):
    unknown_path = row("fi", {"backend": "FLASHINFER"}, requires_flashinfer=True)
    own = {
        "id": "own",
        "kind": "tag",
        "when": {},
        "since": "0.32.0",
        "stage": ["kv_write"],
        "requires_flashinfer": False,
    }
    matrix = make_matrix([priority(["FLASHINFER"]), unknown_path, own], PINNED, flashinfer=([], FLASHINFER_RELEASES))
    found = verdict(matrix, nvfp4_on_sm120)
    assert found.stages["kv_write"].assumes == ()
    assert found.stages["decode"].assumes == ("flashinfer_path_unread",)


def test_a_method_of_another_format_says_nothing_about_these_weights(make_matrix, nvfp4_on_sm120):
    rows = [quant("mine", {"method": "modelopt_fp4"}), quant("other", {"method": "awq_marlin"}, "refused")]
    stage = verdict(make_matrix(rows, axes=FORMATS), replace(nvfp4_on_sm120, weights="nvfp4")).stages["weights"]
    assert (stage.verdict, stage.conditions) == ("conditional", ("method modelopt_fp4",))


def test_an_unquantised_model_is_not_asked_about_methods(make_matrix, nvfp4_on_sm120):
    rows = [quant("any", {"method": ["modelopt_fp4", "quark"]}, "refused")]
    assert verdict(make_matrix(rows, axes=FORMATS), nvfp4_on_sm120).stages["weights"].verdict == "expected"


def test_experts_whose_kernels_were_not_read_are_unknown(make_matrix, nvfp4_on_sm120):
    rows = [quant("method", {"method": "modelopt_fp4"}), quant("linear", {"weights": "nvfp4"}, part="linear")]
    item = replace(nvfp4_on_sm120, weights="nvfp4", method="modelopt_fp4")
    matrix = make_matrix(rows, axes=FORMATS)
    assert verdict(matrix, replace(item, experts=False)).stages["weights"].verdict == "expected"
    found = verdict(matrix, replace(item, experts=True)).stages["weights"]
    assert (found.verdict, found.parts["linear"].verdict) == ("unknown", "expected")
    assert "experts layers was not read" in found.reason


def test_without_a_list_what_is_said_of_every_backend_holds(make_matrix, nvfp4_on_sm120):
    said = row("all", {"kv_cache_dtype": {"not": ["auto"]}}, "unknown", needs=["a run"], reason="decided elsewhere")
    stage = verdict(make_matrix([said]), nvfp4_on_sm120).stages["decode"]
    assert (stage.verdict, stage.statement, stage.reason) == ("unknown", "all", "decided elsewhere")
    assert "was not read" in verdict(make_matrix([]), nvfp4_on_sm120).stages["decode"].reason


def test_what_is_undecided_behind_the_selector_is_chosen_and_stays_unknown(make_matrix, nvfp4_on_sm120):
    doubt = {"needs": ["a run"], "stage": ["decode"]}
    ahead = row("ahead", {"backend": "FLASHINFER"}, "unknown", **doubt)
    matrix = make_matrix([priority(["FLASHINFER", "TRITON"]), FLASHINFER_ROW, ahead])
    assert verdict(matrix, nvfp4_on_sm120).resolved["backend"].resolved is None
    behind = row("behind", {"backend": "FLASHINFER"}, "unknown", layer="forward", **doubt)
    found = verdict(make_matrix([priority(["FLASHINFER", "TRITON"]), FLASHINFER_ROW, behind]), nvfp4_on_sm120)
    assert found.resolved["backend"].resolved == "FLASHINFER"
    assert [found.stages[name].verdict for name in ("prefill", "decode")] == ["expected", "unknown"]
    assert (found.stages["decode"].layer, found.stages["decode"].reason) == (None, "undecided: it needs a run")
