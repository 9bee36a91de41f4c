"""Bytes per token with a release's own formula: 80 layers, 8 KV heads of 128, one rank."""

from nvdash.extract import sglang_sizes
from tests.extract.trees import tree_of

FORMULA = """
    def cell_size(model_config, kv_size):
        heads = model_config.get_num_kv_heads(1)
        cell_size = heads * (model_config.head_dim + model_config.v_head_dim) * num_layers * kv_size
        if is_float4_e2m1fn_x2(dtype):
            scale_block_size = 16
            n = model_config.get_num_kv_heads(1)
            k = model_config.head_dim
            cell_size = (cell_size // 2) + (
                (n * k * num_layers * 2 * kv_size) // scale_block_size
            )
        elif dtype_str == "mxfp8":
            scale_block_size = 32
            cell_size += (n_heads * 2) // scale_block_size
        return cell_size
"""


def test_fp4_is_half_a_byte_and_a_scale_byte_per_sixteen_values(tmp_path):
    tree = tree_of(tmp_path, {"sglang/srt/model_executor/pool_configurator.py": FORMULA}, "sglang")
    said = {f.fact: (f.value, f.line) for f in sglang_sizes.read(tree, ("auto", "bf16", "fp8_e4m3", "fp4_e2m1"))}
    # 2 x 8 x 128 x 80 = 163,840 values: 2 bytes, 1 byte, and 0.5 + 1/16 bytes each
    assert said["bytes_per_token.bf16"] == (327_680, 3)
    assert said["bytes_per_token.fp8_e4m3"] == (163_840, 3)
    assert said["bytes_per_token.fp4_e2m1"] == (92_160, 9)


def test_a_formula_that_needs_an_unknown_name_gives_no_answer(tmp_path):
    tree = tree_of(tmp_path, {"sglang/srt/model_executor/pool_configurator.py": FORMULA}, "sglang")
    assert not [f for f in sglang_sizes.read(tree, ("mxfp8",)) if f.fact == "bytes_per_token.mxfp8"]
