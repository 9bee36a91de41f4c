"""The reference engine: our own paged cache and attention in torch, on a CPU or a GPU.

It proves the arithmetic of a format and the bytes it takes. It proves no kernel of any framework.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nvdash.smoke import exercise
from nvdash.smoke.attention import Shape, attend
from nvdash.smoke.case import Phases
from nvdash.smoke.engines import gpu_facts
from nvdash.smoke.numbers import Check
from nvdash.smoke.outcomes import Refused
from nvdash.smoke.pages import PagedCache, PageLayout
from nvdash.smoke.preview import preview
from nvdash.smoke.records import RECORDS, Record, record
from nvdash.smoke.spec import CaseSpec, Layer

if TYPE_CHECKING:
    from torch import Tensor

DATA = ("gaussian", "outlier")
MAX_WINDOW = 256
"""A longer window would never hide a token of the workload."""


class ReferenceEngine(PagedCache):
    """A cache with attention over it, as `exercise` wants an engine."""

    query_dtype = "bf16"

    def attend(
        self, phase: str, shape: Shape, queries: "Tensor", counts: list[int], lengths: list[int], tables: "list[Tensor]"
    ) -> "Tensor":
        """Causal attention of the last `counts` positions of each sequence."""
        import torch

        parts = zip(queries.split(counts), tables, lengths, strict=True)
        return torch.cat([attend(self, shape, part, table, length) for part, table, length in parts])


def shape_of(layer: Layer) -> Shape:
    """The attention shape of a layer of the case."""
    window = min(layer.window, MAX_WINDOW) if layer.window else None
    sizes = (layer.query_heads, layer.kv_heads, layer.key_size, layer.value_size)
    return Shape(*sizes, window, layer.is_latent)


def run(spec: CaseSpec, phases: Phases) -> dict[str, Any]:
    """Allocate, write, prefill, decode and compare, for every layer and both kinds of data."""
    import torch

    torch.set_num_threads(1)
    chosen = record(spec.kv_cache_dtype)
    if chosen is None:
        raise Refused("config", f"the reference engine has no record of {spec.kv_cache_dtype}: {', '.join(RECORDS)}")
    device = "cuda" if spec.device in ("auto", "cuda") and torch.cuda.is_available() else "cpu"
    phases.enter("allocate")
    engines = {(layer, data): engine_for(chosen, layer, spec, device) for layer in spec.layers for data in DATA}
    numbers: list[Check] = []
    works = [
        (heads(layer), exercise.workload(engine, shape_of(layer), data, spec.seed, device))
        for (layer, data), engine in engines.items()
    ]
    for phase in ("prefill", "decode", "compare"):
        phases.enter(phase)
        for name, work in works:
            numbers += [named(check, name) for check in next(work)[1]]
    for (layer, data), engine in engines.items():
        numbers += [named(check, heads(layer)) for check in extra(engine, shape_of(layer), data, device)]
    caches = [engines[layer, DATA[0]] for layer in spec.layers]
    return {
        "environment": {**gpu_facts(), "device": device},
        "resolved": {"kv_cache_dtype": chosen.name, "backend": "reference"},
        "cache": cache_facts(caches),
        "numbers": [check.as_dict() for check in numbers],
        "exercised": ["kv_write", "prefill", "decode"],
    }


def engine_for(chosen: Record, layer: Layer, spec: CaseSpec, device: str) -> ReferenceEngine:
    """A cache for one layer, with pages enough for the workload."""
    swizzled = spec.swizzled_v_scales and chosen.name in ("nvfp4", "nvfp4_4over6") and not layer.is_latent
    if chosen.name.endswith("_ds_mla") and not layer.is_latent:
        raise Refused("config", f"{chosen.name} stores an MLA record; the layer is {heads(layer)}")
    parts = (chosen, spec.block_size, layer.kv_heads, layer.key_size, spec.order, swizzled, layer.is_latent)
    return ReferenceEngine(PageLayout(*parts), exercise.blocks_needed(spec.block_size), device)


def extra(engine: ReferenceEngine, shape: Shape, data: str, device: str) -> Iterator[Check]:
    """The exact probe where the format holds powers of two exactly, and the preview."""
    held = engine.layout.record
    if held.name in ("bf16", "nvfp4", "nvfp4_4over6") and not shape.latent and data == DATA[0]:
        yield exercise.probe(engine, shape, device)
    yield from preview(held, shape, data, device)


def heads(layer: Layer) -> str:
    """How a report calls a layer."""
    value = f"/{layer.value_size}" if layer.value_size != layer.key_size else ""
    window = f", window {layer.window}" if layer.window else ""
    return f"{layer.kind} {layer.query_heads}/{layer.kv_heads} x {layer.key_size}{value}{window}"


def named(check: Check, name: str) -> Check:
    """The check with the layer it was made on."""
    return replace(check, heads=name)


def cache_facts(caches: list[ReferenceEngine]) -> Mapping[str, Any]:
    """Bytes as torch allocated them, data and scales apart."""
    pools = [cache.memory.untyped_storage().nbytes() for cache in caches]
    tokens = [len(cache.memory) * cache.layout.block_size for cache in caches]
    halves = [cache.layout.region_bytes for cache in caches]
    sizes = [cache.layout.block_size for cache in caches]
    return {
        "pool_bytes": sum(pools),
        "num_blocks": len(caches[0].memory),
        "block_size": sizes[0],
        "bytes_per_token": sum(pool // count for pool, count in zip(pools, tokens, strict=True)),
        "data_bytes_per_token": sum(sum(half[::2]) // size for half, size in zip(halves, sizes, strict=True)),
        "scale_bytes_per_token": sum(sum(half[1::2]) // size for half, size in zip(halves, sizes, strict=True)),
        "tensor_dtype": "uint8",
        "tensor_shape": [list(cache.memory.shape) for cache in caches],
    }
