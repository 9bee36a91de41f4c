"""Which weights a memory question is about, and what they take: listed, estimated, or unknown with the reason."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError, UnknownError, did_you_mean
from nvdash.footprint.caches import Layout
from nvdash.footprint.layers import layout
from nvdash.footprint.request import CacheRequest
from nvdash.footprint.weights import SIZED, Weights, estimate
from nvdash.readers import catalogue
from nvdash.targets import Checkpoint, Model

WIDE_WEIGHTS = ("bf16", "fp16", "fp32")


def weights_asked(given: Mapping[str, Any], model: Model, notes: list[str]) -> tuple[str | None, Checkpoint | None]:
    """The weight format and the checkpoint that holds it; said where no such checkpoint is known."""
    word = given.get("weights")
    if word is None and model.asked is not None and model.asked.weights != "unknown":
        word = model.asked.weights
    if word is None and model.asked is None and model.checkpoints and "available_kv_gib" not in given:
        word = model.checkpoints[0].weights
        notes.append(f"no weight format was named: {word}, that of {model.checkpoints[0].repository}, is used")
    if word is None:
        return None, model.asked
    format_ = weight_format(str(word), model)
    checkpoint = model.checkpoint(format_) or model.checkpoint(str(word))
    if checkpoint is None and format_ not in WIDE_WEIGHTS:
        notes.append(f"no {format_} checkpoint of {model.name} is known; a checkpoint does not become {word} by a flag")
    return format_, checkpoint


def weight_format(word: str, model: Model) -> str:
    """The stored format that a format, a 16-bit word or a quantisation flag names, by the axes of the matrix."""
    named = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(word, word)
    if named in SIZED:
        return named
    from nvdash.readers.matrix import read_axes

    axes = read_axes()
    formats, flags = axes.get("weights", {}), axes.get("weight_flags", {})
    if named in formats:
        return named
    if named not in flags:
        hint = did_you_mean(word, [*formats, *flags])
        raise UnknownError(f"weights {word!r}", "a weight format or a quantisation flag", "no such name", hint)
    checkpoint = model.checkpoint(word)
    return str(flags[named] or (checkpoint.weights if checkpoint else word))


def weighed(
    given: Mapping[str, Any],
    config: Mapping[str, Any],
    word: str | None,
    checkpoint: Checkpoint | None,
    request: CacheRequest,
    notes: list[str],
) -> Weights | None:
    """Exact where a checkpoint's tensors can be listed, else an estimate, else None with the reason."""
    listed = listed_weights(given, config, request)
    if listed is not None:
        return listed
    if request.draft is not None and request.draft.layout is not None:
        notes.append("the weights of the separate drafter are not counted")
    if word is None:
        return None
    try:
        return estimated(config, word, checkpoint, request)
    except NvdashError as refusal:
        notes.append(f"the weights are unknown: {refusal.where}: expected {refusal.expected}, {refusal.found}")
        return None


def listed_weights(given: Mapping[str, Any], config: Mapping[str, Any], request: CacheRequest) -> Weights | None:
    """Weights from the headers of `--checkpoint`, or of a model that is a folder with tensors."""
    named = str(given.get("checkpoint", ""))
    folder = Path(str(given["model"]))
    if not named and not (folder.is_dir() and any(folder.glob("*.safetensors*"))):
        return None
    if named and not Path(named).exists() and catalogue.load().model_row(named) is not None:
        return None
    from nvdash.footprint.tensors import weights_of_tensors
    from nvdash.readers.checkpoint import list_tensors

    tensors = list_tensors(named or str(folder)).tensors
    return weights_of_tensors(tensors, config, request, with_drafter=request.draft is not None)


def layout_of(config: Mapping[str, Any]) -> Layout:
    """The layout of a config; one process reads the same config once."""
    return _layout(json.dumps(config, sort_keys=True, default=str))


@lru_cache(maxsize=128)
def _layout(text: str) -> Layout:
    return layout(json.loads(text))


def estimated(config: Mapping[str, Any], weights: str, checkpoint: Checkpoint | None, request: CacheRequest) -> Weights:
    """The estimate of the weights; one process counts the same model once per format and split."""
    split = CacheRequest(tp=request.tp, pp=request.pp, pp_layers=request.pp_layers, draft=request.draft)
    return _estimate(json.dumps(config, sort_keys=True, default=str), weights, checkpoint, split)


@lru_cache(maxsize=256)
def _estimate(text: str, weights: str, checkpoint: Checkpoint | None, split: CacheRequest) -> Weights:
    return estimate(json.loads(text), weights, checkpoint, split, _layout(text))
