"""Turns the words of a memory question into a layout, a cache request and weights, with every default named."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nvdash.answers.memory_weights import WIDE_WEIGHTS, layout_of, weighed, weights_asked
from nvdash.errors import NvdashError, UsageError, did_you_mean
from nvdash.footprint.caches import Layout
from nvdash.footprint.formula import wide_flag
from nvdash.footprint.request import CacheRequest, Draft
from nvdash.footprint.weights import Weights
from nvdash.readers import catalogue
from nvdash.readers.config import text_tower
from nvdash.targets import GIB, Checkpoint, Gpu, Model, refuse_uneven_heads

FRAMEWORK_ALIASES = {"trtllm": "tensorrt-llm"}
WIDE_FLAGS = ("auto", "bfloat16", "float16", "bf16", "fp16", "half")
"""Cache flags that mean the model's own 16-bit type, whatever word a release uses for it."""
SOLVABLE = ("context", "concurrency", "gpus", "kv-cache-dtype")
FLAGS = frozenset(
    (
        *("model", "gpu", "tp", "pp", "dcp", "framework", "release", "weights", "checkpoint", "kv_cache_dtype"),
        *("max_model_len", "context", "concurrency", "gpu_memory_utilization", "layers", "pp_layers", "block_size"),
        *("max_num_batched_tokens", "draft_method", "draft_tokens", "draft_model", "prefix_caching", "solve"),
        *("kv_cache_dtype_skip_layers", "num_gpu_blocks_override", "available_kv_gib", "backend", "log"),
    )
)
COUNTS = (
    *("tp", "pp", "dcp", "max_model_len", "context", "concurrency", "layers", "block_size"),
    *("max_num_batched_tokens", "num_gpu_blocks_override"),
)


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A memory question with its names looked up."""

    model: Model
    layout: Layout
    request: CacheRequest
    """Without memory: `available_bytes` is filled in per end of the range."""
    gpu: Gpu | None
    weights: Weights | None
    weights_word: str | None
    checkpoint: Checkpoint | None
    context: int | None
    concurrency: int | None
    pools: tuple[int, ...] | None
    """Cache bytes given by the user, one for all ranks or one per rank."""
    utilisation: float | None
    solve: str | None
    config: Mapping[str, Any]
    echo: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def length(self) -> int | None:
        """The length a request may have: as asked, else the model's own."""
        return self.request.max_model_len or self.layout.max_position


def memory_question(question: Mapping[str, Any]) -> MemoryQuestion:
    """The layout, request and weights that a question stands for."""
    given = {key: value for key, value in question.items() if value is not None}
    _refuse_odd_values(given)
    notes: list[str] = []
    framework = FRAMEWORK_ALIASES.get(str(given.get("framework", "vllm")), str(given.get("framework", "vllm")))
    release = str(given["release"]) if "release" in given else newest_release(framework, notes)
    model = _model(given)
    if model.note:
        notes.append(f"{model.name}: {model.note}")
    config = with_layers(model.config, given["layers"]) if "layers" in given else model.config
    layers = layout_of(config)
    word, checkpoint = weights_asked(given, model, notes)
    flag = cache_flag(str(given.get("kv_cache_dtype", "auto")), checkpoint, layers, notes)
    request = _request(given, framework, known_numbers(framework, release, notes), flag)
    refuse_uneven_heads(layers.query_heads, request.tp)
    weights = weighed(given, config, word, checkpoint, request, notes)
    gpu = catalogue.load().gpu(str(given["gpu"]), **_alike(given)) if "gpu" in given else None
    if gpu is not None:
        request = replace(request, device_bytes=gpu.memory_high_bytes, device_name=gpu.name)
    length = request.max_model_len or layers.max_position
    _refuse_long_context(given.get("context"), length)
    return MemoryQuestion(
        model=model,
        layout=layers,
        request=request,
        gpu=gpu,
        weights=weights,
        weights_word=word,
        checkpoint=checkpoint,
        context=given.get("context"),
        concurrency=given.get("concurrency"),
        pools=_pools(given),
        utilisation=_fraction(given),
        solve=_solve(given),
        config=config,
        echo=_echo(given, framework, release, model, gpu, word, length),
        notes=tuple(notes),
    )


def _alike(given: Mapping[str, Any]) -> dict[str, Any]:
    """With the cache's memory given, a short name needs to be clear about kernels only."""
    return {"alike": catalogue.seen_by_kernels} if "available_kv_gib" in given else {}


def _refuse_odd_values(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if name not in FLAGS:
            raise UsageError(f"question {name!r}", "a flag of memory", "an unknown one", did_you_mean(name, FLAGS))
        if name in COUNTS and (not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**40):
            raise UsageError(f"--{name.replace('_', '-')}", "a whole number from 1", f"got {value!r}")
    if "model" not in given:
        hint = "for example --model meta-llama/Llama-3.1-8B-Instruct, or the path of a config.json"
        raise UsageError("--model", "a model", "none", hint)


def newest_release(framework: str, notes: list[str]) -> str | None:
    """The newest release that was read, named in a note; None where none was."""
    from nvdash.readers.matrix import Matrix

    try:
        newest = Matrix().rules(framework).newest
    except NvdashError:
        newest = None
    if newest is not None:
        notes.append(f"no release was named: {framework} {newest.name}, the newest one read, is used")
        return newest.name
    notes.append("no release was named and none was read: the newest allocator rules are used")
    return None


def _model(given: Mapping[str, Any]) -> Model:
    model = catalogue.load().model(str(given["model"]))
    if "checkpoint" not in given:
        return model
    named = catalogue.load().model_row(str(given["checkpoint"]))
    if named is None:
        return model
    return replace(model, asked=catalogue.model_of(named, str(given["checkpoint"])).asked or model.asked)


def with_layers(config: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """The config of the first layers of a model; every list or pattern with one entry per layer is cut with it."""
    tower = dict(text_tower(config))
    whole = tower.get("num_hidden_layers")
    if not isinstance(whole, int) or layers > whole:
        raise UsageError("--layers", f"at most the model's {whole} layers", f"got {layers}")
    cut = {name: value[:layers] for name, value in tower.items() if _is_per_layer(value, whole)}
    return {**tower, **cut, "num_hidden_layers": layers}


def _is_per_layer(value: Any, layers: int) -> bool:
    return isinstance(value, list | str) and len(value) == layers


def cache_flag(flag: str, checkpoint: Checkpoint | None, layers: Layout, notes: list[str]) -> str:
    """The cache flag as it resolves: `auto` follows the checkpoint, a 16-bit word means the model's own type."""
    if flag not in WIDE_FLAGS:
        return flag
    if flag != "auto":
        return wide_flag(layers)
    if checkpoint is None or checkpoint.weights in WIDE_WEIGHTS:
        return "auto"
    if checkpoint.kv_cache_scheme:
        notes.append(f"auto becomes {checkpoint.kv_cache_scheme}: the checkpoint's config asks for it")
        return checkpoint.kv_cache_scheme
    if not checkpoint.kv_cache_scheme_known:
        notes.append(
            f"what auto becomes is unknown: the config of {checkpoint.repository or 'the checkpoint'} was not read; "
            f"sized as {layers.dtype}"
        )
    return "auto"


def known_numbers(framework: str, release: str | None, notes: list[str]) -> str | None:
    """The release whose rules are used: outside vLLM a name without numbers stands for the newest rules, said so."""
    if framework == "vllm" or release is None or release[:1].isdigit() or release[:2].strip("v").isdigit():
        return release
    notes.append(f"{release} is no release whose rules were read: the nearest range is used")
    return None


def _request(given: Mapping[str, Any], framework: str, release: str | None, flag: str) -> CacheRequest:
    skipped = str(given.get("kv_cache_dtype_skip_layers", ""))
    return CacheRequest(
        framework=framework,
        release=release,
        kv_cache_dtype=flag,
        tp=given.get("tp", 1),
        pp=given.get("pp", 1),
        dcp=given.get("dcp", 1),
        pp_layers=_numbers("--pp-layers", given["pp_layers"]) if "pp_layers" in given else None,
        block_size=given.get("block_size"),
        max_model_len=given.get("max_model_len"),
        max_num_batched_tokens=given.get("max_num_batched_tokens"),
        prefix_caching=given.get("prefix_caching"),
        draft=_draft(given),
        num_gpu_blocks_override=given.get("num_gpu_blocks_override"),
        skip_layers=tuple(part.strip() for part in skipped.split(",") if part.strip()),
        backend=given.get("backend"),
    )


def _numbers(flag: str, text: Any) -> tuple[int, ...]:
    parts = str(text).split(",")
    if not all(part.strip().isdecimal() and len(part) < 8 for part in parts):
        raise UsageError(flag, "whole numbers with commas between", f"got {text!r}")
    return tuple(int(part) for part in parts)


def _draft(given: Mapping[str, Any]) -> Draft | None:
    method, named = given.get("draft_method"), given.get("draft_model")
    if method is None and named is None:
        return None
    drafter = layout_of(catalogue.load().model(str(named)).config) if named is not None else None
    tokens = given.get("draft_tokens")
    return Draft(str(method or "draft_model"), tokens, drafter)


def _pools(given: Mapping[str, Any]) -> tuple[int, ...] | None:
    if "available_kv_gib" not in given:
        return None
    parts = str(given["available_kv_gib"]).split(",")
    try:
        amounts = [float(part) for part in parts]
    except ValueError as error:
        raise UsageError("--available-kv-gib", "GiB, one number or one per rank", f"got {parts}") from error
    if not all(abs(amount) < 1e6 for amount in amounts):
        raise UsageError("--available-kv-gib", "GiB below a million", f"got {parts}")
    return tuple(int(amount * GIB) for amount in amounts)


def _fraction(given: Mapping[str, Any]) -> float | None:
    value = given.get("gpu_memory_utilization")
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
        raise UsageError("--gpu-memory-utilization", "a fraction above 0 and up to 1", f"got {value!r}")
    return float(value)


def _solve(given: Mapping[str, Any]) -> str | None:
    asked = given.get("solve")
    if asked is not None and asked not in SOLVABLE:
        raise UsageError("--solve", " or ".join(SOLVABLE), f"got {asked!r}")
    return asked


def _refuse_long_context(context: int | None, length: int | None) -> None:
    if context is not None and length is not None and context > length:
        found = f"got {context:,}"
        raise UsageError("--context", f"at most {length:,} tokens, the length served", found, "raise --max-model-len")


def _echo(
    given: Mapping[str, Any],
    framework: str,
    release: str | None,
    model: Model,
    gpu: Gpu | None,
    word: str | None,
    length: int | None,
) -> dict[str, Any]:
    """The question with its defaults, as the answer repeats it."""
    defaults = {"tp": 1, "pp": 1, "dcp": 1, "kv_cache_dtype": "auto", "max_model_len": length}
    named = {"framework": framework, "release": release, "model": model.name, "gpu": gpu.id if gpu else None}
    rest = {key: given.get(key) for key in sorted(FLAGS - {"log", *defaults, *named})}
    return {**named, **{key: given.get(key, value) for key, value in defaults.items()}, **rest, "weights": word}
