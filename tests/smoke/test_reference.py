"""The reference engine against the independent path, and broken engines that have to be caught."""

import pytest
import torch

from nvdash.smoke import exercise, oracle, preview
from nvdash.smoke.attention import Shape
from nvdash.smoke.engines.reference import ReferenceEngine
from nvdash.smoke.pages import PageLayout
from nvdash.smoke.records import RECORDS, record

KERNEL = "relative L2, kernel to FP32 on the stored cache"
GQA = Shape(4, 2, 64, 64)


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def engine(dtype, shape=GQA, order="HND", swizzled=False, block_size=16, kind=ReferenceEngine):
    layout = PageLayout(record(dtype), block_size, shape.kv_heads, shape.key_size, order, swizzled, latent=shape.latent)
    return kind(layout, exercise.blocks_needed(block_size))


def failed(made, shape=GQA, data="gaussian"):
    checks = [check for _, stage in exercise.workload(made, shape, data, 1, "cpu") for check in stage]
    return {(check.name, check.phase) for check in checks if check.asserted and not check.passed}


@pytest.mark.parametrize(
    ("dtype", "order", "swizzled", "block_size"),
    [
        ("bf16", "NHD", False, 16),
        ("fp8", "HND", False, 64),
        ("fp8_per_token_head", "NHD", False, 16),
        ("int8_per_token_head", "HND", False, 16),
        ("nvfp4", "NHD", True, 16),
        ("nvfp4", "HND", True, 128),
        ("nvfp4_4over6", "HND", False, 32),
    ],
)
def test_every_format_and_page_layout_agrees_with_the_independent_path(dtype, order, swizzled, block_size):
    assert failed(engine(dtype, GQA, order, swizzled, block_size)) == set()


@pytest.mark.parametrize("window", [1, 15, 16, 100])
def test_a_sliding_window_hides_what_lies_behind_it(window):
    shape = Shape(4, 2, 64, 64, window=window)
    assert failed(engine("nvfp4", shape), shape) == set()


@pytest.mark.parametrize("heads", [Shape(4, 4, 64, 64), Shape(4, 1, 64, 64)], ids=["mha", "mqa"])
def test_head_groups_of_one_and_of_all(heads):
    assert failed(engine("fp8", heads), heads, "outlier") == set()


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp8_ds_mla", "nvfp4_ds_mla"])
def test_mla_records_hold_keys_and_values_at_once(dtype):
    shape = Shape(4, 1, 576, 512, latent=True)
    assert failed(engine(dtype, shape), shape) == set()


@pytest.mark.parametrize("order", ["NHD", "HND"])
@pytest.mark.parametrize("width", [64, 128, 256])
@pytest.mark.parametrize("swizzled", [False, True])
def test_blocks_of_distinct_powers_of_two_come_back_exactly(width, order, swizzled):
    shape = Shape(4, 2, width, width)
    assert exercise.probe(engine("nvfp4", shape, order, swizzled), shape, "cpu").value == 0.0


class ReadsLinearScales(ReferenceEngine):
    """Writes V scales swizzled and reads them as if they were linear: a page of one GPU read by another."""

    def read(self, blocks, length):
        keys, _ = super().read(blocks, length)
        *_, data, scales = (region[blocks] for region in self.regions())
        return keys, self._decode(data, scales, self.v_scale, swizzled=False)[:length]


class SwapsSides(ReferenceEngine):
    """Reads values where keys lie."""

    def read(self, blocks, length):
        keys, values = super().read(blocks, length)
        return values, keys


class ReadsTheNextPage(ReferenceEngine):
    """Reads one physical page too far."""

    def read(self, blocks, length):
        return super().read((blocks + 1) % len(self.memory), length)


class DropsTheLastPage(ReferenceEngine):
    """Treats a partial last page as whole, and attends to what was never written."""

    def attend(self, phase, shape, queries, counts, lengths, tables):
        size = self.layout.block_size
        longer = [-(-length // size) * size for length in lengths]
        return super().attend(phase, shape, queries, counts, longer, tables)


class WritesNeighboursScales(ReferenceEngine):
    """A writer that shifts every K scale by one block; its own reader agrees with it."""

    def append(self, keys, values, slots):
        super().append(keys, values, slots)
        scales = self._cells(self.regions()[1])
        block, token = slots // self.layout.block_size, slots % self.layout.block_size
        scales[block, token] = scales[block, token].roll(1, dims=-1)


@pytest.mark.parametrize("broken", [ReadsLinearScales, SwapsSides])
def test_permuted_scales_and_swapped_sides_fail_the_exact_probe_and_the_kernel_bar(broken):
    made = engine("nvfp4", swizzled=broken is ReadsLinearScales, kind=broken)
    assert exercise.probe(made, GQA, "cpu").passed is False
    made = engine("nvfp4", swizzled=broken is ReadsLinearScales, kind=broken)
    assert (KERNEL, "prefill") in failed(made)


@pytest.mark.parametrize("broken", [ReadsTheNextPage, DropsTheLastPage])
def test_pages_that_are_not_the_sequences_own_fail_the_kernel_bar(broken):
    assert {(KERNEL, "prefill"), (KERNEL, "decode")} <= failed(engine("nvfp4", kind=broken))


def test_a_writer_that_shifts_scales_fails_what_is_stored_although_its_reader_agrees():
    assert ("relative L2, stored K", "kv_write") in failed(engine("nvfp4", kind=WritesNeighboursScales))


def test_the_softmax_over_pages_is_the_dense_one_by_hand():
    # two keys with logits 0 and ln 3 after scaling: weights 1/4 and 3/4, values 4 and 8 -> 7
    shape = Shape(1, 1, 16, 16)
    made = engine("bf16", shape, block_size=4)
    keys = torch.zeros(2, 1, 16)
    keys[1, 0, 0] = 1.0
    values = torch.tensor([4.0, 8.0]).view(2, 1, 1).expand(2, 1, 16)
    made.append(keys, values, torch.tensor([0, 1]))
    queries = torch.zeros(1, 1, 16)
    queries[0, 0, 0] = 4 * torch.log(torch.tensor(3.0))
    got = made.attend("decode", shape, queries.bfloat16(), [1], [2], [torch.tensor([0])])
    torch.testing.assert_close(got.float(), torch.full((1, 1, 16), 7.0), rtol=1e-2, atol=0)
    torch.testing.assert_close(oracle.attention(shape, queries, keys, values), torch.full((1, 1, 16), 7.0))


def test_the_preview_orders_formats_as_the_study_does():
    shape = Shape(4, 2, 128, 128)
    drawn = {
        name: {check.name: check.value for check in preview.preview(RECORDS[name], shape, "gaussian", "cpu")}
        for name in ("bf16", "int8_per_token_head", "fp8_e4m3", "nvfp4_4over6", "nvfp4")
    }
    errors = [drawn[name]["relative L2 of the output"] for name in drawn]
    assert errors == sorted(errors)
    assert 0.085 < drawn["nvfp4"]["relative L2 of V"] < 0.105
    assert drawn["bf16"]["top-32 overlap"] == 1.0
    assert drawn["nvfp4"]["blocks stored as zero"] == 0.0
