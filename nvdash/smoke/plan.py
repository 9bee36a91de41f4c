"""From the words of a question to the spec of one case."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nvdash.errors import NvdashError, UnknownError, UsageError, did_you_mean
from nvdash.formats import cache_flags
from nvdash.smoke.judge import case_id
from nvdash.smoke.preflight import ENGINES
from nvdash.smoke.records import ALIASES, RECORDS
from nvdash.smoke.spec import LIMIT_S, CaseSpec, Layer
from nvdash.smoke.truncate import layers_of, layers_of_heads, llama_config, truncated
from nvdash.targets import HeadLayout, Model

DEFAULT_HEADS = "gqa:8/2x128"
SIZES = (128, 256)
"""Head sizes that the engines which need no model always cover."""
SECONDS = "NVDASH_SMOKE_SECONDS"
"""Raises the limit of every phase, for machines whose first kernel build takes longer."""


def case_of(question: Mapping[str, Any]) -> CaseSpec:
    """The one case that a question stands for; names that no catalogue knows are refused."""
    engine = str(question.get("engine") or "reference")
    if engine not in ENGINES:
        raise UsageError(
            f"--engine {engine}", f"one of {', '.join(ENGINES)}", "no such engine", did_you_mean(engine, ENGINES)
        )
    layers, config, whole, kind = shape(question, engine)
    dtype = str(question.get("kv_cache_dtype") or "auto")
    known = [*RECORDS, *ALIASES, *cache_flags()]
    if engine in ("reference", "flashinfer") and dtype not in known:
        hint = did_you_mean(dtype, known) or f"known: {', '.join(dict.fromkeys(known))}"
        raise UnknownError(f"--kv-cache-dtype {dtype}", "a cache format", "no such name", hint)
    backend = question.get("backend")
    spec = CaseSpec(
        case_id="",
        engine=engine,
        kv_cache_dtype=dtype,
        layers=layers,
        backend=None if backend in (None, "auto") else str(backend),
        weights=question.get("weights"),
        release=question.get("release"),
        arch=question.get("arch"),
        config=config,
        whole=whole,
        kind=kind,
        limits_s=limits(),
        question={name: value for name, value in question.items() if value is not None},
    )
    return replace(spec, case_id=case_id(spec))


def limits() -> dict[str, float]:
    """Seconds per phase, raised where the environment asks for more."""
    least = os.environ.get(SECONDS, "0")
    if not least.isdigit():
        raise UsageError(SECONDS, "whole seconds", f"got {least!r}")
    return {phase: max(seconds, float(least)) for phase, seconds in LIMIT_S.items()}


def shape(
    question: Mapping[str, Any], engine: str
) -> tuple[tuple[Layer, ...], Mapping[str, Any] | None, bool, str | None]:
    """Layers, config, whether the layers are all caches, and the head kind of the question."""
    model = model_of(question)
    if model is not None and "head_layout" not in {key for key, value in question.items() if value}:
        config, built = truncated(model.config)
        layers, whole = layers_of(built)
        heads = built.heads()
        if not layers:
            raise UnknownError(f"model {model.name}", "a layer that attends", "found none that a smoke test knows")
        if engine in ("vllm", "sglang") and "model_type" not in config:
            return stand_in(model, heads)
        return with_sizes(layers, engine), config, whole, heads.kind if heads else None
    heads = HeadLayout.parse(str(question.get("head_layout") or default_heads(question)))
    return with_sizes(layers_of_heads(heads), engine), llama_config(heads), True, heads.kind


def stand_in(
    model: Model, heads: HeadLayout | None
) -> tuple[tuple[Layer, ...], Mapping[str, Any] | None, bool, str | None]:
    """A plain model with the same heads, where only a geometry is known; other layouts need the config.json itself."""
    config = llama_config(heads) if heads else None
    if heads is None or config is None:
        hint = "save the model's config.json and give its path as --model"
        raise UsageError(f"--model {model.name}", "a config.json that an engine can build", "its geometry only", hint)
    return layers_of_heads(heads), config, True, heads.kind


def default_heads(question: Mapping[str, Any]) -> str:
    """A small layout where none was named: a latent one for formats that only store a latent record."""
    return "mla:16/1x576/512" if str(question.get("kv_cache_dtype", "")).endswith("_ds_mla") else DEFAULT_HEADS


def with_sizes(layers: tuple[Layer, ...], engine: str) -> tuple[Layer, ...]:
    """Layers that differ, once each; engines without a model also cover both head sizes."""
    if engine not in ("reference", "flashinfer"):
        return layers
    distinct = tuple(dict.fromkeys(layers))
    if any(layer.is_latent for layer in distinct):
        return distinct
    extra = [Layer("full", 8, 2, size, size) for size in SIZES if size not in {layer.key_size for layer in distinct}]
    return (*distinct, *extra)


def model_of(question: Mapping[str, Any]) -> Model | None:
    """The model, or the checkpoint that is served in its place."""
    from nvdash.readers import catalogue

    named = question.get("checkpoint") or question.get("model")
    if not named:
        return None
    try:
        return catalogue.load().model(str(named))
    except NvdashError:
        if not question.get("checkpoint") or not question.get("model"):
            raise
        return catalogue.load().model(str(question["model"]))
