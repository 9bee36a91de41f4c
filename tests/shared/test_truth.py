"""The allocator against start-up logs: every entry of the truth file that can be replayed, to the printed number."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from nvdash.footprint.allocator import CacheRequest, Draft, replay
from nvdash.footprint.caches import Layout
from nvdash.footprint.layers import layout
from nvdash.targets import GIB

SHARED = Path(__file__).parents[3] / "shared"
TRUTH = SHARED / "truth" / "vllm-logs.yaml"
pytestmark = pytest.mark.skipif(not TRUTH.exists(), reason="the start-up logs of ../shared are not here")


@cache
def entries() -> list[dict[str, Any]]:
    return yaml.load(TRUTH.read_text(), Loader=yaml.CSafeLoader)["entries"] if TRUTH.exists() else []


def replayable() -> list[dict[str, Any]]:
    return [entry for entry in entries() if entry["replay"]["exact"] or entry["replay"]["tolerance_pct"] is not None]


def layout_of(name: str) -> Layout:
    return layout(json.loads((SHARED / "model-configs" / name).read_text()))


def drafter(stated: dict[str, Any] | None) -> Draft | None:
    if stated is None:
        return None
    config = stated.get("model_config")
    return Draft(stated["method"], stated.get("tokens"), layout_of(config) if config else None)


def request(asked: dict[str, Any]) -> CacheRequest:
    same = ("framework", "release", "kv_cache_dtype", "tp", "pp", "dcp", "block_size", "max_model_len")
    also = ("max_num_batched_tokens", "prefix_caching", "num_gpu_blocks_override")
    return CacheRequest(
        **{name: asked[name] for name in same + also},
        available_bytes=(int(asked["available_kv_gib_replay"] * GIB),),
        draft=drafter(asked["draft"]),
    )


@pytest.mark.parametrize("entry", replayable(), ids=lambda entry: entry["id"])
def test_the_replay_gives_the_numbers_that_the_engine_printed(entry):
    asked = entry["replay"]
    allocation = replay(layout_of(asked["model_config"]), request(asked))
    expected = asked["expect"]
    if not asked["exact"]:
        assert allocation.kv_tokens == pytest.approx(expected["kv_tokens"], rel=asked["tolerance_pct"] / 100)
        return
    for key in ("kv_tokens", "num_blocks", "block_size"):
        if expected[key] is not None:
            assert getattr(allocation, key) == expected[key], (key, allocation.explain)
    if expected["max_concurrency"] is not None:
        assert f"{allocation.max_concurrency:.2f}" == f"{expected['max_concurrency']:.2f}"


def test_every_replayable_entry_is_counted():
    exact = sum(entry["replay"]["exact"] for entry in entries())
    assert (len(entries()), exact, len(replayable()) - exact) == (73, 58, 5)


@pytest.mark.parametrize(("gib", "tokens"), [(64.68, 626_949), (103.92, 1_007_303)])
def test_gemma_4_31b_at_full_length_reaches_the_known_pools(gib, tokens):
    asked = CacheRequest(
        release="0.24.0",
        kv_cache_dtype="bfloat16",
        available_bytes=(int(gib * GIB),),
        block_size=16,
        max_model_len=262_144,
        max_num_batched_tokens=8192,
    )
    found = replay(layout_of("nvidia--Gemma-4-31B-IT-NVFP4.json"), asked).kv_tokens
    assert found == pytest.approx(tokens, rel=1e-4)
