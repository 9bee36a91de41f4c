"""FlashInfer without an engine: append, prefill and decode over a paged cache, held to the independent FP32 path.

The best test of whether a GPU really does it. Decode takes the tensor-core path, the only one that reads NVFP4.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.smoke import exercise, fp8_int8, steps
from nvdash.smoke.attention import Shape
from nvdash.smoke.case import Phases
from nvdash.smoke.engines import gpu_facts
from nvdash.smoke.engines.reference import heads, shape_of
from nvdash.smoke.numbers import Check
from nvdash.smoke.outcomes import NotHere, Refused
from nvdash.smoke.pages import POISON, PageLayout
from nvdash.smoke.records import record
from nvdash.smoke.spec import CaseSpec, Layer

if TYPE_CHECKING:
    from torch import Tensor

WORKSPACE_BYTES = 128 * 2**20
FORMATS = ("bf16", "fp8_e4m3", "nvfp4")
DATA = ("gaussian", "outlier")


class FlashInferPaged:
    """K, V and their scales as FlashInfer takes them, poisoned like its workspace so that a stray read shows."""

    query_dtype = "bf16"

    def __init__(self, layout: PageLayout, num_blocks: int, backend: str, device: str) -> None:
        import torch

        self.layout, self.backend, self.k_scale, self.v_scale = layout, backend, 1.0, 1.0
        self.workspace = torch.full((WORKSPACE_BYTES,), POISON, dtype=torch.uint8, device=device)
        cells = (layout.block_size, layout.kv_heads)
        cells = cells if layout.order == "NHD" else cells[::-1]
        self._bytes = [
            torch.full((num_blocks, *cells, size), POISON, dtype=torch.uint8, device=device)
            for size in (layout.record.data_bytes(layout.width), layout.record.scale_bytes(layout.width)) * 2
        ]

    def regions(self) -> "tuple[Tensor, ...]":
        """Raw bytes of K data, K scales, V data, V scales."""
        return tuple(part.flatten(1) for part in self._bytes)

    def views(self) -> "tuple[Tensor, Tensor]":
        """K and V in the type the kernels are told."""
        data = {"bf16": "bfloat16", "fp8_e4m3": "float8_e4m3fn", "nvfp4": "uint8"}[self.layout.record.name]
        import torch

        return self._bytes[0].view(getattr(torch, data)), self._bytes[2].view(getattr(torch, data))

    def scales(self) -> "tuple[Tensor, Tensor] | None":
        """Block scales of K and V; None for formats without."""
        import torch

        if not self._bytes[1].shape[-1]:
            return None
        return self._bytes[1].view(torch.float8_e4m3fn), self._bytes[3].view(torch.float8_e4m3fn)

    def append(self, keys: "Tensor", values: "Tensor | None", slots: "Tensor") -> None:
        """Store tokens with FlashInfer's writers: by slot for NVFP4, else every token as a request of one page."""
        import flashinfer
        import torch

        order = self.layout.order
        if self.layout.record.name == "nvfp4":
            write = flashinfer.nvfp4_quantize_append_paged_kv_cache_with_slot_mapping
            write(keys, values, slots, self.views(), self.scales(), self.k_scale, self.v_scale, order)
            return
        if self.layout.record.name == "fp8_e4m3":
            keys = fp8_int8.quantize_fp8(keys, self.k_scale).view(torch.float8_e4m3fn)
            values = (
                fp8_int8.quantize_fp8(values, self.v_scale).view(torch.float8_e4m3fn) if values is not None else None
            )
        size, count = self.layout.block_size, torch.arange(len(slots) + 1, dtype=torch.int32, device=slots.device)
        place = (slots % size).int()
        pages = (slots // size).int()
        flashinfer.append_paged_kv_cache(keys, values, count[:-1], place, self.views(), pages, count, place + 1, order)

    def attend(
        self, phase: str, shape: Shape, queries: "Tensor", counts: list[int], lengths: list[int], tables: "list[Tensor]"
    ) -> "Tensor":
        """One planned call over the batch, in a step mark of vLLM's form so that traces read alike."""
        import torch

        mark = (
            "execute_context_{}({})_generation_0(0)" if phase == "prefill" else "execute_context_0(0)_generation_{}({})"
        )
        with torch.profiler.record_function(mark.format(len(counts), sum(counts))):
            wrapper = self._planned(phase, shape, counts, lengths, tables)
            scales = self.scales()
            options = {} if scales is None else {"kv_cache_sf": scales}
            quantised = self.layout.record.name != "bf16"
            factors = {"k_scale": self.k_scale, "v_scale": self.v_scale} if quantised else {}
            out: Tensor = wrapper.run(queries, self.views(), **factors, **options)
        return out

    def _planned(self, phase: str, shape: Shape, counts: list[int], lengths: list[int], tables: "list[Tensor]") -> Any:
        """The wrapper of a phase, planned for these sequences."""
        import flashinfer
        import torch

        paging = page_plan(lengths, tables, self.layout.block_size)
        sizes = (shape.query_heads, shape.kv_heads, shape.key_size, self.layout.block_size)
        window = -1 if shape.window is None else shape.window - 1
        types = {"q_data_type": torch.bfloat16, "kv_data_type": self.views()[0].dtype, "window_left": window}
        if phase == "decode":
            wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
                self.workspace, self.layout.order, use_tensor_cores=True, backend=self.backend
            )
            wrapper.plan(*paging, *sizes, **types)
            return wrapper
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            self.workspace, self.layout.order, backend=self.backend
        )
        starts = torch.tensor([0, *counts], device=tables[0].device).cumsum(0).int()
        wrapper.plan(starts, *paging, *sizes, causal=True, **types)
        return wrapper


def page_plan(lengths: list[int], tables: "list[Tensor]", block_size: int) -> "tuple[Tensor, Tensor, Tensor]":
    """Page starts per sequence, page numbers, and how much of each last page is filled."""
    import torch

    device = tables[0].device
    counts = [-(-length // block_size) for length in lengths]
    starts = torch.tensor([0, *counts], device=device).cumsum(0).int()
    pages = torch.cat([table[:count] for table, count in zip(tables, counts, strict=True)]).int()
    last = torch.tensor([(length - 1) % block_size + 1 for length in lengths], dtype=torch.int32, device=device)
    return starts, pages, last


def run(spec: CaseSpec, phases: Phases) -> dict[str, Any]:
    """Warm up (which builds kernels), then profile the same workload for every layer and both kinds of data."""
    import torch

    if not torch.cuda.is_available() and spec.device != "cpu":
        raise NotHere("no CUDA device here", "run it where one is")
    import flashinfer  # noqa: F401

    torch.set_num_threads(1)
    chosen = record(spec.kv_cache_dtype)
    if chosen is None or chosen.name not in FORMATS:
        raise NotHere(f"the flashinfer adapter covers {', '.join(FORMATS)}, not {spec.kv_cache_dtype}")
    layers = [layer for layer in spec.layers if not layer.is_latent and layer.key_size == layer.value_size]
    if not layers:
        raise NotHere("the flashinfer adapter covers key and value heads of one size")
    device = "cpu" if spec.device == "cpu" else "cuda"
    phases.enter("allocate")
    engines = {(layer, data): engine_for(spec, layer, device) for layer in layers for data in DATA}
    phases.enter("build")
    with refusals():
        for (layer, data), engine in engines.items():
            list(exercise.workload(engine, shape_of(layer), data, spec.seed, device))
    numbers: list[Check] = []
    with profiled(device) as trace, refusals():
        works = [
            (layer, exercise.workload(engine, shape_of(layer), data, spec.seed, device))
            for (layer, data), engine in engines.items()
        ]
        for phase in ("prefill", "decode", "compare"):
            phases.enter(phase)
            for layer, work in works:
                numbers += [replace(check, heads=heads(layer)) for check in next(work)[1]]
    if chosen.name != "fp8_e4m3":
        numbers += [
            replace(exercise.probe(engines[layer, DATA[0]], shape_of(layer), device), heads=heads(layer))
            for layer in layers
        ]
    return {
        "environment": environment(),
        "resolved": {"kv_cache_dtype": chosen.name, "backend": spec.backend or "auto"},
        "cache": cache_facts([engines[layer, DATA[0]] for layer in layers]),
        "trace": trace,
        "layers": 1,
        "numbers": [check.as_dict() for check in numbers],
        "exercised": ["kv_write", "prefill", "decode"],
        "not_tested": ["split KV: FlashInfer switches it off for NVFP4"] if chosen.name == "nvfp4" else [],
    }


def engine_for(spec: CaseSpec, layer: Layer, device: str) -> FlashInferPaged:
    """A cache for one layer with pages enough for the workload."""
    chosen = record(spec.kv_cache_dtype)
    if chosen is None:
        raise Refused("config", f"no record of {spec.kv_cache_dtype}")
    layout = PageLayout(chosen, spec.block_size, layer.kv_heads, layer.key_size, spec.order)
    return FlashInferPaged(layout, exercise.blocks_needed(spec.block_size), spec.backend or "auto", device)


def cache_facts(engines: list[FlashInferPaged]) -> dict[str, Any]:
    """Bytes as torch allocated them."""
    data, scales = 0, 0
    for engine in engines:
        sizes = [part.numel() // (part.shape[0] * engine.layout.block_size) for part in engine.regions()]
        data, scales = data + sizes[0] + sizes[2], scales + sizes[1] + sizes[3]
    return {
        "block_size": engines[0].layout.block_size,
        "num_blocks": engines[0].regions()[0].shape[0],
        "bytes_per_token": data + scales,
        "data_bytes_per_token": data,
        "scale_bytes_per_token": scales,
        "workspace_bytes": WORKSPACE_BYTES,
    }


@contextlib.contextmanager
def profiled(device: str) -> Iterator[dict[str, Any]]:
    """Profile what happens inside; the dictionary holds kernels and steps afterwards."""
    import torch

    trace: dict[str, Any] = {}
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else []
    with torch.profiler.profile(activities=kinds, record_shapes=True) as profiler:
        yield trace
    with tempfile.TemporaryDirectory(prefix="nvdash-trace-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace |= steps.kernels(steps.read_events(path))


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """FlashInfer's own words that a combination is not there, told apart from a crash."""
    try:
        yield
    except (NotImplementedError, ValueError) as error:
        raise Refused("kernel", f"{type(error).__name__}: {error}") from error
    except RuntimeError as error:
        if any(words in str(error) for words in ("Missing TRTLLM-GEN kernel", "not supported", "Unsupported")):
            raise Refused("kernel", str(error)) from error
        raise


def environment() -> dict[str, Any]:
    """Versions and device."""
    return {**gpu_facts(), "release": flashinfer_version(), "flashinfer": flashinfer_version()}


def flashinfer_version() -> str | None:
    """The installed version, which is the release of FlashInfer's own matrix rows."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("flashinfer-python").partition("+")[0]
    return None
