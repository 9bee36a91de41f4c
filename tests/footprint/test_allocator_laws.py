"""Laws that no layout, release or format may break."""

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nvdash.errors import NvdashError
from nvdash.footprint.allocator import Allocation, CacheRequest, replay
from nvdash.footprint.caches import Layout
from nvdash.footprint.layers import layout

GIB = 2**30
RELEASES = ("0.6.4", "0.9.2", "0.11.0", "0.13.0", "0.16.0", "0.19.0", "0.21.0", "0.24.0", "0.27.0", "0.30.0", "0.33.0")
NARROWING = ("bfloat16", "fp8", "nvfp4")


@st.composite
def layouts(draw) -> Layout:
    """Plain, sliding, latent and recurrent layouts of a few layers."""
    config = {
        "num_hidden_layers": draw(st.integers(1, 24)),
        "num_attention_heads": 32,
        "num_key_value_heads": draw(st.sampled_from([1, 2, 4, 8, 16])),
        "head_dim": draw(st.sampled_from([64, 128, 256])),
    }
    kind = draw(st.sampled_from(["plain", "sliding", "latent", "gdn"]))
    if kind == "sliding":
        config |= {
            "sliding_window": draw(st.sampled_from([128, 1024])),
            "sliding_window_pattern": draw(st.integers(2, 6)),
        }
    if kind == "latent":
        config |= {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
    if kind == "gdn":
        config |= {"full_attention_interval": draw(st.integers(1, 4)), "linear_conv_kernel_dim": 4}
        config |= {"linear_num_key_heads": 16, "linear_num_value_heads": draw(st.sampled_from([16, 32, 48]))}
        config |= {"linear_key_head_dim": 128, "linear_value_head_dim": 128}
    return layout(config)


@st.composite
def requests(draw) -> CacheRequest:
    return CacheRequest(
        release=draw(st.sampled_from(RELEASES)),
        kv_cache_dtype="bfloat16",
        available_bytes=(draw(st.integers(0, 64 * GIB)),),
        tp=draw(st.sampled_from([1, 2, 4])),
        block_size=draw(st.sampled_from([None, 16, 64])),
        max_model_len=draw(st.integers(1, 300_000)),
        max_num_batched_tokens=draw(st.sampled_from([2048, 8192])),
        prefix_caching=draw(st.sampled_from([None, True, False])),
    )


def ask(shape: Layout, request: CacheRequest) -> Allocation:
    try:
        return replay(shape, request)
    except NvdashError:
        assume(False)
        raise


@settings(max_examples=200, deadline=None)
@given(layouts(), requests(), st.integers(1, 100_000))
def test_a_longer_request_never_takes_fewer_blocks(shape, request, more):
    short, long = ask(shape, request), ask(shape, replace(request, max_model_len=request.max_model_len + more))
    assert short.blocks_per_request <= long.blocks_per_request
    assert short.max_concurrency >= long.max_concurrency


@settings(max_examples=200, deadline=None)
@given(layouts(), requests(), st.integers(1, 16 * GIB))
def test_more_memory_never_holds_fewer_tokens(shape, request, more):
    poor = ask(shape, request)
    rich = ask(shape, replace(request, available_bytes=(request.available_bytes[0] + more,)))
    assert poor.num_blocks <= rich.num_blocks
    assert poor.kv_tokens <= rich.kv_tokens


@settings(max_examples=200, deadline=None)
@given(layouts(), requests(), st.sampled_from(["vllm", "sglang", "tensorrt-llm"]))
def test_more_ranks_never_raise_the_bytes_of_one(shape, request, framework):
    asked = replace(request, framework=framework, release=None, tp=1)
    sizes = [ask(shape, replace(asked, tp=tp)).bytes_per_token for tp in (1, 2, 4, 8)]
    assert sizes == sorted(sizes, reverse=True)


@settings(max_examples=300, deadline=None)
@given(layouts(), requests(), st.sampled_from([(0, 1), (1, 2), (0, 2)]))
def test_a_narrower_format_never_holds_fewer_tokens_but_for_the_rounding_of_state_pages(shape, request, pair):
    assume(not shape.family and any(cache.kind != "state" for cache in shape.caches))
    wide, narrow = (ask(shape, replace(request, kv_cache_dtype=NARROWING[index])) for index in pair)
    assert narrow.bytes_per_token < wide.bytes_per_token
    if not shape.has_state:
        assert narrow.kv_tokens >= wide.kv_tokens
        return
    # A state page is the attention page that holds it, so a narrower format can round it up a little further:
    # at most one alignment of attention tokens more, and never by more blocks than that costs.
    grown = max(narrow.bytes_per_block - wide.bytes_per_block, 0) / wide.bytes_per_block
    assert narrow.num_blocks >= int(wide.num_blocks * (1 - grown)) - 1
    assert narrow.block_size >= wide.block_size
    assert narrow.blocks_per_request <= wide.blocks_per_request


@settings(max_examples=200, deadline=None)
@given(layouts(), requests())
def test_blocks_never_take_more_than_the_memory_and_padding_is_what_the_layers_do_not_use(shape, request):
    found = ask(shape, request)
    assert found.allocated_bytes <= request.available_bytes[0]
    assert all(0 <= group.padding_bytes < found.bytes_per_block for group in found.groups)


@settings(max_examples=100, deadline=None)
@given(layouts(), requests())
def test_every_cache_of_the_model_is_in_exactly_one_group(shape, request):
    assume(request.release != "0.6.4")
    found = ask(shape, request)
    assert sum(group.layers for group in found.groups) == len(shape.caches)
