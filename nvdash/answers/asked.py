"""Turns the words of a support question (flags of `check`) into combinations, with every default named.

Names are looked up in the catalogues; what they do not decide stays open and is never guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nvdash.errors import NvdashError, UnknownError, UsageError, did_you_mean
from nvdash.readers.matrix import Matrix
from nvdash.support.axes import WIDE, unnamed_dtype
from nvdash.targets import Checkpoint, Combination, Gpu, HeadLayout, Model, refuse_uneven_heads

DEFAULT_FRAMEWORK = "vllm"
FLAGS = frozenset(
    (
        *("framework", "release", "gpu", "model", "head_layout", "checkpoint", "weights", "kv_cache_dtype"),
        *("backend", "prefill_backend", "decode_backend", "tp", "pp", "dcp", "sinks", "require"),
        *("draft_method", "draft_model", "draft_tokens", "draft_kv_cache_dtype"),
    )
)
CPU = Gpu("cpu", "CPU", "cpu", "cpu")
"""The engine's CPU platform, which chooses backends by rules of its own."""
OWN_LAYERS_DRAFTERS = ("mtp", "nextn")
"""Drafters whose layers have the target's own attention shape."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its names looked up: one combination per attention shape of the model."""

    combinations: tuple[Combination, ...]
    gpu: Gpu
    model: Model | None
    checkpoint: Checkpoint | None
    drafter: Combination | None
    echo: Mapping[str, Any]
    notes: tuple[str, ...]


def asked(question: Mapping[str, Any], matrix: Matrix) -> Asked:
    """The combinations that a question stands for."""
    given = {key: value for key, value in question.items() if value is not None}
    _refuse_unknown_flags(given)
    framework = matrix.rules(str(given.get("framework", DEFAULT_FRAMEWORK))).framework
    gpu = _gpu(given)
    model = _model(given)
    notes: list[str] = []
    shapes = _shapes(given, model, notes)
    weights, method, checkpoint = _weights(given, model, framework, matrix, notes)
    tp = _count(given, "tp", 1)
    for shape in shapes:
        refuse_uneven_heads(shape.query_heads, tp)
    release = str(given.get("release") or _newest(matrix, framework))
    notes += _unknown_backends(given, framework, release, matrix)
    combination = Combination(
        framework=framework,
        release=release,
        arch=gpu.arch,
        weights=weights,
        backend=_backend(given),
        kv_cache_dtype=_cache_word(str(given.get("kv_cache_dtype", "auto")), matrix),
        dcp=_count(given, "dcp", 1),
        drafter=_draft_method(given),
        sinks=given.get("sinks"),
        checkpoint_kv=_scheme(checkpoint, weights),
        model_base=model.base if model else None,
        model_class=_model_class(model),
        method=method,
        prefill_backend=given.get("prefill_backend"),
        decode_backend=given.get("decode_backend"),
        experts=_has_experts(model),
        model_dtype=_model_dtype(model),
        tp=tp,
    )
    if combination.model_dtype is None and combination.kv_cache_dtype in WIDE:
        notes.append(f"no 16-bit type of a model is named: {unnamed_dtype(weights)} is taken")
    combinations = tuple(replace(combination, heads=shape) for shape in shapes) or (combination,)
    echo = _echo(given, combinations[0], gpu, model, [str(shape) for shape in shapes])
    drafter = _drafter(given, combinations[0], matrix)
    return Asked(combinations, gpu, model, checkpoint, drafter, echo, tuple(notes))


def _refuse_unknown_flags(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in FLAGS:
            raise UsageError(f"question {name!r}", "a flag of check", "an unknown one", did_you_mean(name, FLAGS))


def _gpu(given: Mapping[str, Any]) -> Gpu:
    from nvdash.readers import catalogue

    if "gpu" not in given:
        raise UsageError("--gpu", "a product or a capability", "none", 'for example --gpu "RTX 5090" or --gpu sm120')
    if str(given["gpu"]).casefold() == CPU.id:
        return CPU
    return catalogue.load().gpu(str(given["gpu"]), alike=catalogue.seen_by_kernels)


def _model(given: Mapping[str, Any]) -> Model | None:
    from nvdash.readers import catalogue

    if "model" not in given:
        return None
    model = catalogue.load().model(str(given["model"]))
    if "checkpoint" not in given:
        return model
    named = catalogue.load().model(str(given["checkpoint"]))
    return replace(model, asked=named.asked or model.asked)


def _newest(matrix: Matrix, framework: str) -> str:
    newest = matrix.rules(framework).newest
    if newest is None:
        raise UnknownError(f"framework {framework!r}", "at least one read release", "none was read")
    return newest.name


def _shapes(given: Mapping[str, Any], model: Model | None, notes: list[str]) -> list[HeadLayout]:
    """Every attention shape of the model, once; none when neither model nor layout tells."""
    if "head_layout" in given:
        return [HeadLayout.parse(str(given["head_layout"]))]
    if model is None:
        notes.append("no model and no head layout was named: head sizes are left open")
        return []
    from nvdash.footprint.layers import layout

    try:
        built = layout(model.config)
    except NvdashError as refusal:
        notes.append(f"the head layout is unknown: {refusal.where}: expected {refusal.expected}, {refusal.found}")
        return []
    whole = built.heads()
    if whole is None:
        notes.append("the head layout is unknown: the config names no query heads")
        return []
    is_hybrid = whole.kind.startswith("hybrid")
    shapes = [replace(shape, kind=whole.kind) if is_hybrid else shape for shape in built.shapes()]
    return list(dict.fromkeys(shapes))


def _weights(
    given: Mapping[str, Any], model: Model | None, framework: str, matrix: Matrix, notes: list[str]
) -> tuple[str | None, str | None, Checkpoint | None]:
    """Format, method and checkpoint behind `--weights`; a flag word names its format."""
    word = given.get("weights") or (model.asked.weights if model and model.asked else None)
    if word is None:
        notes.append("no weight format was named: the weights stage is left open")
        return None, None, None
    word = str(word)
    flags = matrix.axes().get("weight_flags", {})
    formats = matrix.axes().get("weights", {})
    wide = "bf16" if word == "bfloat16" else "fp16" if word == "float16" else word
    if wide not in formats and word not in flags:
        hint = did_you_mean(word, [*formats, *flags])
        raise UnknownError(f"weights {word!r}", "a weight format or a quantisation flag", "no such name", hint)
    checkpoint = (model.checkpoint(wide) or model.checkpoint(str(flags.get(word)))) if model else None
    format_ = flags.get(word, wide) or (checkpoint.weights if checkpoint else None)
    if model and checkpoint is None and wide not in WIDE:
        notes.append(f"no {word} checkpoint of {model.name} is known; a checkpoint does not become {word} by a flag")
    if checkpoint is not None and checkpoint.method:
        notes.append(_checkpoint_note(checkpoint))
    method = word if word in flags else _method(checkpoint, format_, framework, matrix)
    return format_, method, checkpoint


def _checkpoint_note(checkpoint: Checkpoint) -> str:
    """Which checkpoint the weights stand for, and what its config asks of a cache of `auto`."""
    asks = f"its kv_cache_scheme asks auto for {checkpoint.kv_cache_scheme}"
    if not checkpoint.kv_cache_scheme_known:
        asks = "its kv_cache_scheme was not read"
    elif checkpoint.kv_cache_scheme is None:
        asks = "it asks nothing of the cache"
    made = ", ".join(filter(None, (checkpoint.method, checkpoint.activations)))
    return f"the {checkpoint.weights} weights are those of {checkpoint.repository} ({made}); {asks}"


def _method(checkpoint: Checkpoint | None, format_: str | None, framework: str, matrix: Matrix) -> str | None:
    """What this framework calls the method that wrote the checkpoint; None where that is not known."""
    if checkpoint is None or not checkpoint.method:
        return None
    named = matrix.axes().get("methods", {}).get(framework, {}).get(checkpoint.method)
    return named.get(format_) if isinstance(named, Mapping) else named


def _scheme(checkpoint: Checkpoint | None, weights: str | None) -> str | None:
    """What the checkpoint's config asks of the cache; a wide checkpoint asks nothing."""
    if checkpoint is not None and checkpoint.kv_cache_scheme_known:
        return checkpoint.kv_cache_scheme or "none"
    if weights in WIDE and (checkpoint is None or not checkpoint.method):
        return "none"
    return None


def _backend(given: Mapping[str, Any]) -> str | None:
    backend = given.get("backend")
    return None if backend in (None, "auto") else str(backend)


def _unknown_backends(given: Mapping[str, Any], framework: str, release: str, matrix: Matrix) -> list[str]:
    """A note on every named backend that no statement of the release speaks of, with the nearest ones."""
    from nvdash.support.view import view

    named = [given[flag] for flag in ("backend", "prefill_backend", "decode_backend") if given.get(flag)]
    rules = matrix.rules(framework)
    found = rules.release(release)
    if not named or found is None or not found.is_read:
        return []
    known = view(rules, release).backends
    unknown = [str(word) for word in named if word not in (*known, "auto")]
    said = f"of {framework} {release} that was read names this backend"
    return [f"{word}: nothing {said}; {did_you_mean(word, known)}".removesuffix("; ") for word in unknown]


def _cache_word(word: str, matrix: Matrix) -> str:
    """A cache dtype by its flag word; one that no framework ever took is a slip of the pen, not a refusal."""
    known = matrix.axes().get("kv_cache_dtype", {})
    if word not in known:
        raise UnknownError(f"KV cache dtype {word!r}", "a flag word", "no such name", did_you_mean(word, known))
    return word


def _count(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"--{name}", "a whole number from 1", f"got {value!r}")
    return value


def _has_experts(model: Model | None) -> bool | None:
    if model is None:
        return None
    config = model.config.get("text_config") or model.config
    keys = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
    return any(config.get(key) for key in keys)


def _model_class(model: Model | None) -> str | None:
    """The first class of `architectures`, where the config names one as text."""
    named = model.config.get("architectures") if model else None
    return named[0] if isinstance(named, list) and named and isinstance(named[0], str) else None


def _model_dtype(model: Model | None) -> str | None:
    if model is None:
        return None
    config = model.config.get("text_config") or {}
    named = (
        config.get("torch_dtype") or config.get("dtype") or model.config.get("torch_dtype") or model.config.get("dtype")
    )
    return str(named).removeprefix("torch.") if named else None


def _draft_method(given: Mapping[str, Any]) -> str | None:
    """The method as asked; a drafter that is only named is a model of its own."""
    return given.get("draft_method") or ("draft_model" if "draft_model" in given else None)


def _drafter(given: Mapping[str, Any], target: Combination, matrix: Matrix) -> Combination | None:
    """The drafter's own combination: its cache dtype, and the target's shape only where it shares its layers."""
    from nvdash.footprint.layers import layout
    from nvdash.footprint.ranks import NO_CACHE_METHODS
    from nvdash.readers import catalogue

    method = _draft_method(given)
    if method is None or method in NO_CACHE_METHODS:
        return None
    word = given.get("draft_kv_cache_dtype")
    dtype = _cache_word(str(word), matrix) if word else target.kv_cache_dtype
    if "draft_model" in given:
        own = catalogue.load().model(str(given["draft_model"]))
        shape = layout(own.config).heads()
        return replace(target, kv_cache_dtype=dtype, heads=shape, model_base=own.base, model_class=_model_class(own))
    shares = any(name in str(method) for name in OWN_LAYERS_DRAFTERS)
    return replace(target, kv_cache_dtype=dtype, heads=target.heads if shares else None)


def _echo(
    given: Mapping[str, Any], combination: Combination, gpu: Gpu, model: Model | None, shapes: list[str]
) -> dict[str, Any]:
    """The question with its defaults, as every answer repeats it."""
    return {
        "framework": combination.framework,
        "release": combination.release,
        "gpu": gpu.id,
        "arch": gpu.arch,
        "model": model.name if model else None,
        "head_layout": shapes[0] if len(shapes) == 1 else shapes or None,
        "checkpoint": given.get("checkpoint"),
        "weights": given.get("weights") or combination.weights,
        "kv_cache_dtype": given.get("kv_cache_dtype", "auto"),
        "backend": given.get("backend") or "auto",
        "prefill_backend": combination.prefill_backend,
        "decode_backend": combination.decode_backend,
        "tp": combination.tp,
        "pp": _count(given, "pp", 1),
        "dcp": combination.dcp,
        "draft_method": combination.drafter,
        "draft_model": given.get("draft_model"),
        "draft_tokens": given.get("draft_tokens"),
        "draft_kv_cache_dtype": given.get("draft_kv_cache_dtype"),
        "sinks": combination.sinks if combination.sinks is not None else _sinks(combination),
        "activations": "bf16",
        "attention": "decoder",
        "graphs": "default",
        "require": given.get("require", "conditional"),
    }


def _sinks(combination: Combination) -> bool | None:
    return combination.heads.sinks if combination.heads else None
