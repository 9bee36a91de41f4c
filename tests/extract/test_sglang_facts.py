"""What the extractor reads literally out of an SGLang tree, in the shapes that releases have given it."""

import pytest

from nvdash.extract import sglang_facts
from tests.extract.trees import tree_of

COMMON = """
    is_blackwell_supported = is_blackwell = lru_cache(maxsize=1)(
        partial(check_version, device_capability_majors=[10, 12], cuda_version=(12, 8))
    )
"""


def facts(folder, files):
    found = sglang_facts.read(tree_of(folder, {"sglang/srt/utils/common.py": COMMON, **files}, "sglang"))
    return {fact.fact: (fact.value, fact.path, fact.line) for fact in found}


def test_choices_of_an_argparse_call_stand_at_the_flag(tmp_path):
    said = facts(
        tmp_path,
        {
            "sglang/srt/server_args.py": """
        class ServerArgs:
            def add_cli_args(parser):
                parser.add_argument(
                    "--kv-cache-dtype",
                    choices=["auto", "tiny4"],
                )
    """
        },
    )
    assert said["kv_cache_dtype.choices"] == (["auto", "tiny4"], "sglang/srt/server_args.py", 4)


def test_choices_of_an_annotated_field_stand_at_the_field(tmp_path):
    said = facts(
        tmp_path,
        {
            "sglang/srt/server_args.py": "class ServerArgs: ...",
            "sglang/srt/arg_groups/fields/model.py": """
            class ModelArgs:
                kv_cache_dtype: A[
                    str,
                    Arg(choices=["auto", "tiny4"]),
                ] = "auto"
        """,
        },
    )
    assert said["kv_cache_dtype.choices"] == (["auto", "tiny4"], "sglang/srt/arg_groups/fields/model.py", 2)


def test_choices_may_be_named_by_a_constant(tmp_path):
    said = facts(
        tmp_path,
        {
            "sglang/srt/server_args.py": """
        BACKENDS = ["one", "two"]
        class ServerArgs:
            def add_cli_args(parser):
                parser.add_argument("--attention-backend", choices=BACKENDS)
    """
        },
    )
    assert said["attention_backend.choices"] == (["one", "two"], "sglang/srt/server_args.py", 4)


def test_a_page_size_rule_is_read_from_the_test_above_its_warning(tmp_path):
    said = facts(
        tmp_path,
        {
            "sglang/srt/server_args.py": """
        class ServerArgs:
            def check(self):
                if self.page_size not in [32, 64]:
                    self.page_size = 64
                if self.page_size not in [8, 16]:
                    logger.warning(
                        f"TensorRT-LLM MHA only supports page_size of 8 or 16, changing it from {self.page_size} to 16."
                    )
    """
        },
    )
    assert said["trtllm_mha.page_size"] == (
        "8 or 16, anything else silently becomes 16",
        "sglang/srt/server_args.py",
        5,
    )


def test_prefill_and_decode_guards_name_their_own_architectures(tmp_path):
    said = facts(
        tmp_path,
        {
            "sglang/srt/server_args.py": """
        class ServerArgs:
            def check(self):
                if not is_sm100_supported():
                    raise ValueError("TRTLLM MHA backend for prefill is only supported on one")
                if not (is_sm90_supported() or is_sm100_supported()):
                    raise ValueError(
                        "TRTLLM MHA backend for decode is only supported on two"
                    )
    """
        },
    )
    assert said["trtllm_mha.sm"] == (
        {"prefill": ["sm100"], "decode": ["sm90", "sm100"]},
        "sglang/srt/server_args.py",
        7,
    )


def test_the_pool_line_is_told_with_our_names(tmp_path):
    said = facts(
        tmp_path,
        {
            "sglang/srt/server_args.py": "class ServerArgs: ...",
            "sglang/srt/mem_cache/memory_pool.py": """
            def show(self):
                logger.info(
                    f"KV Cache is allocated. dtype: {self.dtype}, #tokens: {num_tokens}, K size: {k_size_GB:.2f} GB"
                )
        """,
        },
    )
    assert said["log.pool"] == (
        "KV Cache is allocated. dtype: {dtype}, #tokens: {n}, K size: {k:.2f} GB",
        "sglang/srt/mem_cache/memory_pool.py",
        3,
    )


@pytest.mark.parametrize(
    ("requirement", "pin"),
    [
        ("flashinfer_python==0.6.12", "0.6.12"),
        ("flashinfer_python[cu13]==0.7.2", "0.7.2"),
        ('flashinfer_python==0.2.9rc2; extra == "srt"', "0.2.9rc2"),
    ],
)
def test_the_pinned_flashinfer_is_read_from_the_metadata(tmp_path, requirement, pin):
    files = {"METADATA": f"Name: sglang\nRequires-Dist: {requirement}\n", "sglang/srt/server_args.py": ""}
    assert sglang_facts.pinned_flashinfer(tree_of(tmp_path, files, "sglang")) == (pin, "METADATA", 2)


def test_a_capability_that_depends_on_mxfp8_is_two_facts(tmp_path):
    said = facts(
        tmp_path,
        {
            "sglang/srt/server_args.py": "class ServerArgs: ...",
            "sglang/srt/layers/quantization/fp8.py": """
            class Fp8Config:
                def get_name(self):
                    return "mxfp8" if self.use_mxfp8 else "fp8"
                def get_min_capability(self):
                    if _is_musa:
                        return 31
                    return 100 if self.use_mxfp8 else 80
        """,
        },
    )
    place = "sglang/srt/layers/quantization/fp8.py"
    assert said["quant.mxfp8.min_capability"] == (100, place, 7)
    assert said["quant.fp8.min_capability"] == (80, place, 7)


def test_a_release_without_the_flag_says_nothing_about_it(tmp_path):
    said = facts(tmp_path, {"sglang/srt/server_args.py": "class ServerArgs: ..."})
    assert not [name for name in said if name.startswith(("kv_cache_dtype", "nvfp4", "log"))]
