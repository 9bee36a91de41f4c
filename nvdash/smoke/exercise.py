"""The workload every paged engine is put through, and the checks that come out of it.

Three sequences over scattered pages: a prompt in two chunks whose last page is partial, a shorter one, and a short
query over long KV; then decode steps. Then a probe whose blocks differ by powers of two, so that a permuted scale,
a swapped region or a neighbour's page changes the answer exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from nvdash.smoke import numbers, nvfp4, oracle
from nvdash.smoke.attention import Shape
from nvdash.smoke.numbers import Check
from nvdash.smoke.pages import PageLayout

if TYPE_CHECKING:
    from torch import Tensor

PROMPTS = (193, 70)
"""193 is no multiple of 16, 64 or 128: its last page is partial."""
CHUNK, LONG, SHORT_QUERY, DECODE_STEPS = 128, 700, 3, 8
OUTLIER_CHANNELS, OUTLIER_FACTOR = 6, 8.0


class Paged(Protocol):
    """What an engine offers: a cache it allocated, a writer, and attention over block tables."""

    layout: PageLayout
    k_scale: float
    v_scale: float
    query_dtype: str

    def regions(self) -> "tuple[Tensor, ...]":
        """Raw bytes of K data, K scales, V data, V scales, each uint8 [blocks, bytes]."""

    def append(self, keys: "Tensor", values: "Tensor | None", slots: "Tensor") -> None:
        """Store tokens at flat slots."""

    def attend(
        self, phase: str, shape: Shape, queries: "Tensor", counts: list[int], lengths: list[int], tables: "list[Tensor]"
    ) -> "Tensor":
        """Causal attention of the last `counts` positions of each sequence, [sum of counts, heads, value_size]."""


@dataclass(slots=True)
class Sequence:
    """One request: its pages, its unquantised history, and how much of it is in the cache."""

    table: "Tensor"
    keys: "Tensor"
    values: "Tensor"
    queries: "Tensor"
    length: int = 0


def blocks_needed(block_size: int) -> int:
    """Pages that the workload takes, and a few that stay poisoned."""
    tokens = [*(prompt + DECODE_STEPS for prompt in PROMPTS), LONG]
    return sum(-(-count // block_size) for count in tokens) + 5


def draw(shape: Shape, data: str, tokens: int, seed: int, device: str) -> "tuple[Tensor, Tensor, Tensor]":
    """Queries, keys and values of a sequence: Gaussian, or with a few key channels eight times as large."""
    import torch

    source = torch.Generator().manual_seed(seed)
    queries = torch.randn(tokens, shape.query_heads, shape.key_size, generator=source)
    keys = torch.randn(tokens, shape.kv_heads, shape.key_size, generator=source)
    values = torch.randn(tokens, shape.kv_heads, shape.value_size, generator=source)
    if data == "outlier":
        channels = torch.randperm(shape.key_size, generator=source)[:OUTLIER_CHANNELS]
        keys[..., channels] *= OUTLIER_FACTOR
    return queries.bfloat16().to(device), keys.bfloat16().to(device), values.bfloat16().to(device)


def sequences(shape: Shape, layout: PageLayout, data: str, seed: int, device: str) -> list[Sequence]:
    """The three requests on pages that are neither contiguous nor in order."""
    import torch

    spread = torch.randperm(blocks_needed(layout.block_size), generator=torch.Generator().manual_seed(seed))
    made, used = [], 0
    for place, tokens in enumerate([*(prompt + DECODE_STEPS for prompt in PROMPTS), LONG]):
        queries, keys, values = draw(shape, data, tokens, seed * 10 + place, device)
        pages = -(-tokens // layout.block_size)
        made.append(Sequence(spread[used : used + pages].to(device), keys, values, queries))
        used += pages
    return made


def workload(engine: Paged, shape: Shape, data: str, seed: int, device: str) -> "Iterator[tuple[str, list[Check]]]":
    """Write, prefill and decode; the checks of each stage as it ends."""
    import torch

    requests = sequences(shape, engine.layout, data, seed, device)
    everything = torch.cat([request.keys for request in requests]), torch.cat([r.values for r in requests])
    engine.k_scale, engine.v_scale = (engine.layout.record.scale_of(side) for side in everything)
    steps = [[(0, CHUNK), (1, PROMPTS[1]), (2, LONG - SHORT_QUERY)], [(0, PROMPTS[0] - CHUNK), (2, SHORT_QUERY)]]
    bar = numbers.KERNEL_REL_L2[engine.query_dtype]
    yield (
        "prefill",
        compared("prefill", data, [step(engine, shape, "prefill", requests, group) for group in steps], bar),
    )
    pair = [(0, 1), (1, 1)]
    decode = [step(engine, shape, "decode", requests, pair) for _ in range(DECODE_STEPS)]
    yield "decode", compared("decode", data, decode, bar)
    yield "kv_write", stored_checks(engine, requests, data)


def compared(phase: str, data: str, parts: "list[tuple[Tensor, Tensor, Tensor]]", bar: float) -> list[Check]:
    """The checks over all steps of one phase."""
    import torch

    got, stored, wide = (torch.cat(side) for side in zip(*parts, strict=True))
    return numbers.output_checks(phase, data, got, stored, wide, bar)


def step(
    engine: Paged, shape: Shape, phase: str, requests: list[Sequence], group: list[tuple[int, int]]
) -> "tuple[Tensor, Tensor, Tensor]":
    """One engine step for some requests: its output, and the FP32 path on the stored and the unquantised cache."""
    import torch

    size, chosen = engine.layout.block_size, [requests[index] for index, _ in group]
    counts = [count for _, count in group]
    fresh = [slice(r.length, r.length + count) for r, count in zip(chosen, counts, strict=True)]
    at = [torch.arange(part.start, part.stop, device=r.table.device) for r, part in zip(chosen, fresh, strict=True)]
    slots = torch.cat([r.table[where // size] * size + where % size for r, where in zip(chosen, at, strict=True)])
    keys, values, queries = (
        torch.cat([getattr(r, name)[part] for r, part in zip(chosen, fresh, strict=True)])
        for name in ("keys", "values", "queries")
    )
    engine.append(keys, None if engine.layout.latent else values, slots)
    for request, count in zip(chosen, counts, strict=True):
        request.length += count
    lengths = [request.length for request in chosen]
    got = engine.attend(phase, shape, queries, counts, lengths, [request.table for request in chosen])
    stored, wide = [], []
    for request, part in zip(chosen, fresh, strict=True):
        stored.append(oracle.attention(shape, request.queries[part], *decoded(engine, shape, request)))
        originals = request.keys[: request.length], request.values[: request.length]
        wide.append(oracle.attention(shape, request.queries[part], originals[0], latent_values(shape, *originals)))
    return got, torch.cat(stored), torch.cat(wide)


def latent_values(shape: Shape, keys: "Tensor", values: "Tensor") -> "Tensor":
    """An MLA layer's values are the first part of its keys."""
    return keys[..., : shape.value_size] if shape.latent else values


def decoded(engine: Paged, shape: Shape, request: Sequence) -> "tuple[Tensor, Tensor]":
    """Keys and values of a request by the independent path over the engine's raw bytes."""
    layout = engine.layout
    data, scales, *value_regions = engine.regions()
    keys = oracle.gather(layout, data, scales, request.table, request.length, engine.k_scale, False)
    if layout.latent:
        return keys, keys[..., : shape.value_size]
    data, scales = value_regions
    return keys, oracle.gather(layout, data, scales, request.table, request.length, engine.v_scale, True)


def stored_checks(engine: Paged, requests: list[Sequence], data: str) -> list[Check]:
    """What the pages hold against what was written: mean and worst block, keys and values apart."""
    import torch

    shape = Shape(0, engine.layout.kv_heads, engine.layout.width, engine.layout.width)
    held = [decoded(engine, shape, request) for request in requests]
    checks = []
    for name, side in (("K", 0), ("V", 1)):
        if name == "V" and engine.layout.latent:
            continue
        got = torch.cat([pair[side] for pair in held])
        want = torch.cat([(request.keys, request.values)[side][: request.length] for request in requests])
        bar = numbers.STORED_REL_L2[engine.layout.record.name]
        checks += [
            Check(f"relative L2, stored {name}", "kv_write", numbers.rel_l2(got, want), bar, data=data),
            Check(f"worst block, stored {name}", "kv_write", numbers.worst_block(got, want), asserted=False, data=data),
        ]
        if engine.layout.record.name == "nvfp4":
            scale = engine.k_scale if name == "K" else engine.v_scale
            ours = nvfp4.dequantize(*nvfp4.quantize(want.flatten(0, 1), scale), scale).view(want.shape)
            apart = numbers.share_apart(got, ours)
            label = f"share of stored {name} values that our codec rounds otherwise"
            checks.append(Check(label, "kv_write", apart, numbers.OTHER_VALUES, asserted=False, data=data))
    return checks


def probe_rows(shape: Shape, tokens: int) -> "tuple[Tensor, Tensor]":
    """Keys and values whose every block has its own power of two among 17 tokens, on the FP4 grid exactly."""
    import torch

    token, head, block, place = torch.meshgrid(
        *(torch.arange(n) for n in (tokens, shape.kv_heads, shape.key_size // nvfp4.BLOCK, nvfp4.BLOCK)), indexing="ij"
    )
    power = torch.exp2(((5 * token + 3 * block + 7 * head) % 17 - 8).float())
    grid = torch.tensor(nvfp4.E2M1)
    codes = torch.where(place == 0, 7, (token + 3 * block + 5 * head + place) % 8)
    rows = (grid[codes] * power).flatten(-2)
    return rows.bfloat16(), (rows * torch.where(place % 2 == 1, -1.0, 1.0).flatten(-2)).bfloat16()


def probe(engine: Paged, shape: Shape, device: str) -> Check:
    """Attend to one token at a time through one key block at a time and compare values exactly."""
    import torch

    tokens, blocks = 17, shape.key_size // nvfp4.BLOCK
    plain = replace(shape, window=None)
    keys, values = (side.to(device) for side in probe_rows(plain, tokens))
    engine.k_scale = engine.v_scale = 1.0
    pages = -(-tokens // engine.layout.block_size)
    table = torch.arange(pages, device=device).flip(0)
    at = torch.arange(tokens, device=device)
    engine.append(
        keys, values, table[at // engine.layout.block_size] * engine.layout.block_size + at % engine.layout.block_size
    )
    queries = torch.zeros(blocks, plain.query_heads, plain.key_size, dtype=torch.bfloat16, device=device)
    queries[torch.arange(blocks), :, torch.arange(blocks) * nvfp4.BLOCK] = 4.0
    got = engine.attend("decode", plain, queries, [1] * blocks, [tokens] * blocks, [table] * blocks)
    head = torch.arange(plain.kv_heads).repeat_interleave(plain.query_heads // plain.kv_heads)
    block = torch.arange(blocks).unsqueeze(1)
    winner = (16 - 3 * block - 7 * head) * 7 % 17  # 7 is the inverse of 5 modulo 17
    want = values[winner.to(device), head.to(device)]
    wrong = float((got.float() != want.float()).float().mean())
    return Check("values wrong, blocks of distinct powers of two", "decode", wrong, 0.0, data="powers of two")
