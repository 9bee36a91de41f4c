"""Pages: sizes by hand, bytes by vector, placement by an independent address formula."""

import pytest
import torch

from nvdash.smoke import oracle
from nvdash.smoke.pages import PagedCache, PageLayout, v_scale_order
from nvdash.smoke.records import RECORDS, record
from tests.smoke.codec_vectors import bf16, cases, octets, single

LINEAR, SWIZZLED = "v_scales_linear", "v_scales_swizzled"


@pytest.mark.parametrize(
    ("dtype", "width", "expected"),
    [
        ("bf16", 128, 512),
        ("fp8", 128, 256),
        ("fp8_per_token_head", 128, 264),
        ("int8_per_token_head", 256, 520),
        ("nvfp4", 64, 72),
        ("nvfp4", 128, 144),
        ("nvfp4_4over6", 256, 288),
    ],
)
def test_one_token_of_one_head_takes_keys_and_values_together(dtype, width, expected):
    assert PageLayout(record(dtype), 16, 1, width).bytes_per_token == expected


@pytest.mark.parametrize(
    ("dtype", "expected"), [("bf16", 1152), ("fp8", 576), ("fp8_ds_mla", 656), ("nvfp4_ds_mla", 352)]
)
def test_an_mla_record_is_stored_once_per_token(dtype, expected):
    assert PageLayout(record(dtype), 64, 1, 576, latent=True).bytes_per_token == expected


@pytest.mark.parametrize(("width", "expected"), [(64, 1152), (128, 2304), (256, 4608), (512, 9216)])
def test_an_nvfp4_page_of_16_tokens_and_one_head(width, expected):
    assert PageLayout(record("nvfp4"), 16, 1, width).page_bytes == expected


@pytest.mark.parametrize("swizzled", [False, True], ids=[LINEAR, SWIZZLED])
@pytest.mark.parametrize("order", ["HND", "NHD"])
@pytest.mark.parametrize("case", cases("nvfp4_page.json"), ids=lambda case: case["name"])
def test_page_bytes_meet_the_vectors(case, order, swizzled):
    tokens, heads, width = case["page_size"], case["num_kv_heads"], case["head_dim"]
    cache = PagedCache(PageLayout(record("nvfp4"), tokens, heads, width, order, swizzled), 3)
    cache.k_scale, cache.v_scale = (single(case[f"{side}_decode_scale_f32"]) for side in "kv")
    keys, values = (bf16(case[f"{side}_bf16_thd"], tokens, heads, width) for side in ("key", "value"))
    for half in (slice(0, tokens // 2), slice(tokens // 2, tokens)):  # written in two steps into one page
        cache.append(keys[half], values[half], torch.arange(tokens)[half] + tokens)
    (name,) = [n for n in case["pages"][order] if n.startswith(SWIZZLED if swizzled else LINEAR)]
    assert torch.equal(cache.memory[1], octets(case["pages"][order][name])[0])
    assert bool((cache.memory[0] == 0x7F).all()), "a page nobody wrote to stays poisoned"


def test_v_scales_interleave_over_four_tokens():
    # S = 8: (t=1, s=5) moves to row 4*0 + 5/2 = 2, column 4*(5 % 2) + 1 = 5
    order = v_scale_order(4, 8)
    assert order[2 * 8 + 5] == 1 * 8 + 5
    assert sorted(order) == list(range(32))


def test_scales_that_do_not_divide_by_four_are_not_interleaved():
    with pytest.raises(ValueError, match="6 x 4"):
        v_scale_order(6, 4)


def same(cache_says, oracle_says):
    """Equal but for the two FP32 roundings of the codec, where the independent path rounds once."""
    torch.testing.assert_close(cache_says, oracle_says, rtol=2**-22, atol=0)


@pytest.mark.parametrize("swizzled", [False, True])
@pytest.mark.parametrize("order", ["HND", "NHD"])
@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3", "fp8_per_token_head", "int8_per_token_head", "nvfp4"])
def test_the_independent_path_finds_the_same_values(dtype, order, swizzled):
    layout = PageLayout(record(dtype), 8, 2, 64, order, swizzled and dtype == "nvfp4")
    cache = PagedCache(layout, 6)
    rows = torch.randn(2, 19, 2, 64, generator=torch.Generator().manual_seed(3))
    cache.k_scale, cache.v_scale = (layout.record.scale_of(side) for side in rows)
    blocks = torch.tensor([4, 0, 2])
    slots = blocks[torch.arange(19) // 8] * 8 + torch.arange(19) % 8
    cache.append(rows[0], rows[1], slots)
    keys, values = cache.read(blocks, 19)
    k_data, k_scales, v_data, v_scales = cache.regions()
    same(keys, oracle.gather(layout, k_data, k_scales, blocks, 19, cache.k_scale, False))
    same(values, oracle.gather(layout, v_data, v_scales, blocks, 19, cache.v_scale, True))


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3", "fp8_ds_mla", "nvfp4_ds_mla"])
def test_the_independent_path_reads_mla_records(dtype):
    layout = PageLayout(record(dtype), 4, 1, 576, latent=True)
    cache = PagedCache(layout, 3)
    latent = torch.randn(10, 1, 576, generator=torch.Generator().manual_seed(4))
    latent[3, 0, :16] = 1e-4  # a block below the smallest scale of the FP4 record
    cache.k_scale = layout.record.scale_of(latent)
    blocks = torch.tensor([2, 1, 0])
    cache.append(latent, None, blocks[torch.arange(10) // 4] * 4 + torch.arange(10) % 4)
    keys, values = cache.read(blocks, 10)
    assert values is None
    same(keys, oracle.gather(layout, *cache.regions(), blocks, 10, cache.k_scale, False))
    assert float((keys - latent).norm() / latent.norm()) < 0.1


def test_an_nvfp4_mla_record_interleaves_its_scales_by_lane():
    encoded, scales = RECORDS["nvfp4_ds_mla"].encode(torch.arange(1, 577).float().unsqueeze(0), 1.0)
    # block s = 5 (values 81..96, scale 96/6 = 16 = 0x58) lies at 8*(5 & 3) + (5 >> 2) = 9
    assert int(scales[0, 9]) == 0x58
    assert encoded.shape[1] + scales.shape[1] == 352


def test_bit_fields_decode_every_fp8_and_fp4_code():
    codes = torch.arange(256, dtype=torch.uint8)
    torch.testing.assert_close(
        oracle.e4m3(codes.long()).float(), codes.view(torch.float8_e4m3fn).float(), equal_nan=True, rtol=0, atol=0
    )
    assert oracle.e2m1(torch.arange(8)).tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
