import pytest

from nvdash.errors import UnknownError
from nvdash.footprint.parameters import count_parts, total_values
from nvdash.footprint.request import CacheRequest, Draft
from nvdash.footprint.tensors import component_of, weights_of_tensors
from nvdash.footprint.weights import encoding_of, estimate, stays_wide
from nvdash.readers import catalogue
from nvdash.readers.safetensors import Tensor

LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"


def config(name):
    return catalogue.load().model(name).config


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # published checkpoint bytes / 2 (matrix/models.yaml)
        (LLAMA_70B, 70_553_706_496),
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        # module printout: 65024 x 4544 + 32 x (4544 x (4672 + 4544 + 2 x 18176) + 2 x 4544) + 2 x 4544, head tied
        ("tiiuae/falcon-7b", 6_921_720_704),
    ],
)
def test_parameters_are_counted_from_geometry(name, parameters):
    assert total_values(count_parts(config(name))) == pytest.approx(parameters, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "weights", "stored_bytes", "within"),
    [
        # bytes that public index files or Hub metadata state (matrix/models.yaml)
        (LLAMA_70B, "bf16", 141_107_412_992, 1e-9),
        ("openai/gpt-oss-20b", "mxfp4", 13_761_264_768, 1e-4),
        ("Qwen/Qwen3-8B", "nvfp4", 6_396_932_352, 1e-5),
    ],
)
def test_an_estimate_comes_near_the_known_checkpoint(name, weights, stored_bytes, within):
    model = catalogue.load().model(name)
    weighed = estimate(model.config, weights, model.checkpoint(weights))
    assert weighed.total_bytes == pytest.approx(stored_bytes, rel=within)
    assert weighed.source == "estimated"


@pytest.mark.parametrize(
    ("name", "weights", "tp", "loaded_gib"),
    [
        # "Model loading took" of public start-up logs (truth/vllm-logs.yaml)
        ("Qwen/Qwen3-14B", "bf16", 1, 27.58),
        ("Qwen/Qwen3-32B", "bf16", 2, 30.59),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8", 2, 33.88),
        ("TechxGenus/Meta-Llama-3-70B-Instruct-AWQ", "awq", 2, 18.55),
        ("moonshotai/Kimi-K2.5", "int4", 8, 73.58),
        ("zai-org/GLM-5.1", "fp8", 8, 89.39),
    ],
)
def test_a_rank_loads_what_public_logs_say(name, weights, tp, loaded_gib):
    model = catalogue.load().model(name)
    weighed = estimate(model.config, weights, model.checkpoint(weights), CacheRequest(tp=tp))
    assert weighed.rank_bytes / 2**30 == pytest.approx(loaded_gib, rel=0.011)


def test_the_lower_bound_of_seventy_billion_parameters_at_four_and_a_half_bits():
    weighed = estimate(config(LLAMA_70B), "nvfp4")
    assert weighed.lower_bound_bytes == 70_553_706_496 * 4.5 / 8
    assert 70_000_000_000 * 9 // 16 == 39_375_000_000
    assert weighed.rank_bytes > weighed.lower_bound_bytes


def test_what_stays_wide_is_a_range_where_nobody_listed_it():
    weighed = estimate(config("zai-org/GLM-5"), "nvfp4")
    assert weighed.low_bytes < weighed.rank_bytes <= weighed.high_bytes
    assert not weighed.wide_layers_known


def test_prediction_layers_count_only_when_they_are_loaded():
    # DeepSeek-V3: 671.03e9, and 256 experts x 3 x 7168 x 2048 + shared + attention + 2 x 7168^2 = 11.61e9 more
    without, loaded = (
        total_values(count_parts(config("deepseek-ai/DeepSeek-V3"), drafter)) for drafter in (False, True)
    )
    assert without == pytest.approx(671.03e9, rel=1e-4)
    assert loaded - without == pytest.approx(11.61e9, rel=1e-3)
    drafted = CacheRequest(draft=Draft("mtp", 1))
    assert estimate(config("deepseek-ai/DeepSeek-V3"), "fp8", request=drafted).by_component["drafter"] > 11e9


def test_pipeline_stages_split_the_layers_and_keep_the_ends_apart():
    one = estimate(config(LLAMA_70B), "bf16")
    four = estimate(config(LLAMA_70B), "bf16", request=CacheRequest(pp=4))
    # 80 layers in four stages of 20; the embedding is on the first, the head and the last norm on the last
    assert sum(four.by_stage) == one.rank_bytes
    assert four.by_stage[1] == four.by_stage[2] < four.by_stage[0] < four.by_stage[3]


def test_kv_projections_are_copied_once_there_are_more_ranks_than_heads():
    eight, sixteen = (estimate(config(LLAMA_70B), "bf16", request=CacheRequest(tp=tp)) for tp in (8, 16))
    # 80 layers x 2 x 8192 x 128 values x 2 bytes stay on every rank from eight ranks on
    kept = 80 * 2 * 8192 * 128 * 2
    other = eight.by_component["attention"] - kept
    assert sixteen.by_component["attention"] == pytest.approx(kept + other / 2, abs=2000)


@pytest.mark.parametrize(
    ("name", "patterns", "wide"),
    [
        ("model.layers.3.self_attn.q_proj", ["re:.*self_attn.*"], True),
        ("model.layers.3.self_attn.q_proj", ["model.layers.*.self_attn"], True),
        ("model.layers.3.self_attn.q_proj", ["*.attn.*"], True),
        ("model.layers.3.mlp.experts", ["model.layers.*.self_attn", "lm_head"], False),
        ("lm_head", ["lm_head"], True),
        ("lm_head", ["head"], True),
        ("model.layers.3.mlp", ["re:("], False),
        ("model.layers.3.mlp", ["re:(?=a+)+$"], False),
        ("model.layers.3.self_attn.q_proj", [r"re:(\w+\.?)+!"], False),
        ("model.layers.3.self_attn.q_proj", ["re:" + ".*" * 40 + "!"], False),
        ("model.layers.3.mlp", [r"re:.*mlp\.?(gate|up|down)?.*"], False),
        ("model.layers.3.mlp.gate", [r"re:.*mlp\.(gate|up|gate_up|down).*"], True),
    ],
)
def test_patterns_that_a_checkpoint_leaves_wide(name, patterns, wide):
    assert stays_wide(name, patterns) is wide


def test_integer_weights_carry_a_scale_and_a_zero_per_group():
    # 128 values x 4 bits + 16 bits + 4 bits = 532 bits
    assert encoding_of("awq", None).stored_bytes(256) == 2 * 532 // 8
    assert encoding_of("int4", 32).stored_bytes(64) == 2 * (32 * 4 + 16 + 4) // 8


def test_a_format_whose_bytes_nobody_derived_is_unknown():
    with pytest.raises(UnknownError, match="nvfp4"):
        encoding_of("nvfp5", None)


TINY = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 128,
    "vocab_size": 1000,
}


def test_listed_tensors_are_weighed_by_component_and_rank():
    tensors = [
        Tensor("model.embed_tokens.weight", "BF16", (1000, 64), 128_000),
        Tensor("lm_head.weight", "BF16", (1000, 64), 128_000),
        Tensor("model.layers.0.self_attn.q_proj.weight", "BF16", (64, 64), 8192),
        Tensor("model.layers.0.self_attn.k_proj.weight", "BF16", (32, 64), 4096),
        Tensor("model.layers.1.mlp.up_proj.weight", "U8", (128, 32), 4096),
        Tensor("model.layers.1.mlp.up_proj.weight_scale", "F8_E4M3", (128, 4), 512),
        Tensor("model.layers.1.input_layernorm.weight", "BF16", (64,), 128),
        Tensor("model.layers.2.mlp.up_proj.weight", "BF16", (128, 64), 16_384),
    ]
    weighed = weights_of_tensors(tensors, TINY, CacheRequest(tp=4))
    assert weighed.source == "checkpoint"
    # embedding and head over 4; q over 4; k in two heads, so half; packed weights and scales over 4; the norm whole;
    # layer 2 is a drafter's, it is not loaded
    assert weighed.by_component == {
        "embedding": 32_000,
        "lm_head": 32_000,
        "attention": 2048 + 2048,
        "mlp": 1024,
        "scales": 128,
        "norms": 128,
    }
    assert weighed.parameters == 64_000 * 2 + 4096 + 2048 + 128 * 64 + 64
    assert weights_of_tensors(tensors, TINY, CacheRequest(), with_drafter=True).by_component["drafter"] == 16_384


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("model.layers.3.mlp.experts.7.down_proj.weight", "experts"),
        ("model.layers.3.mlp.shared_experts.down_proj.weight", "mlp"),
        ("model.layers.3.mlp.gate.weight", "router"),
        ("model.layers.3.mlp.gate_proj.weight", "mlp"),
        ("model.language_model.layers.3.linear_attn.in_proj_qkvz.weight", "state"),
        ("backbone.layers.3.mixer.A_log", "state"),
        ("backbone.layers.3.mixer.q_proj.weight", "attention"),
        ("transformer.h.3.self_attention.query_key_value.weight", "attention"),
        ("transformer.word_embeddings.weight", "embedding"),
        ("visual.blocks.3.attn.qkv.weight", "vision"),
        ("mtp.layers.0.mlp.up_proj.weight", "drafter"),
        ("model.layers.3.post_attention_layernorm.weight", "norms"),
        ("model.layers.3.self_attn.q_norm.weight", "norms"),
        ("output.weight", "lm_head"),
        ("something.else", "other"),
    ],
)
def test_the_component_of_a_tensor_name(name, component):
    assert component_of(name) == component
