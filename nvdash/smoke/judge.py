"""From the facts a case left to its verdict: requested, resolved and observed apart, and what was not tested.

A flag that was accepted proves nothing. The order of the questions is that of harm: did it end at all, did it store
what was asked for, did the right kernels run, are the numbers right, and do the kernels prove the format.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nvdash import __version__
from nvdash.readers.smoke_report import SmokeReport, from_dict, plain
from nvdash.smoke import evidence, kernels
from nvdash.smoke.evidence import Seen
from nvdash.smoke.log_lines import read_lines, said_to_end
from nvdash.smoke.runner import Attempt
from nvdash.smoke.spec import CaseSpec, Layer

NOT_TESTED = ("quality of any model", "long context", "more than one GPU", "speculative decoding", "prefix caching")
FACT_PARTS = ("environment", "resolved", "cache", "timings")
MAX_KERNELS = 400
SPREAD = {
    "pool printed with two decimals": 0.02,
    "available memory": 0.02,
    "explicit pool": 0.001,
    "kv_cache_memory_bytes": 0.001,
}
"""How far the bytes of a token may be from the formula, by what was divided: printed sizes, pools cut into blocks."""
ENDED = {
    "timeout": ("timeout", "no end within the limit of the phase {phase}"),
    "killed": ("oom", "killed from outside during {phase}, as the system does when memory runs out"),
    "signal": ("crash", "ended by {signal} during {phase}"),
    "exit": ("crash", "ended with exit code {exit_code} during {phase} and left no report"),
    "half a report": ("crash", "left half a report, last seen in {phase}"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with its layer and reason."""

    verdict: str
    reason: str
    layer: str | None = None


def report(
    spec: CaseSpec, attempts: Sequence[Attempt], log: Sequence[str], gpu_shared: bool | None = None
) -> SmokeReport:
    """The report of a case that was run."""
    last = attempts[-1]
    facts = dict(next((item.facts for item in attempts if item.facts), {}))
    case = Case(spec, facts, read_lines(log), kernels.load())
    ended = ending(attempts, log)
    finding = ended or case.finding()
    parts = {name: dict(facts.get(name) or {}) for name in FACT_PARTS}
    if gpu_shared:
        parts["timings"] = {}
    content = {
        "schema": "nvdash.smoke/1",
        "nvdash_version": __version__,
        "case_id": spec.case_id,
        "ran_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "engine": spec.engine,
        "framework": spec.engine,
        "release": parts["environment"].get("release"),
        "arch": parts["environment"].get("arch") or spec.arch,
        "gpu": parts["environment"].get("gpu"),
        "verdict": finding.verdict,
        "layer": finding.layer,
        "reason": finding.reason,
        "question": dict(spec.question),
        "environment": {**parts["environment"], "gpu_shared": gpu_shared},
        "requested": case.requested(),
        "resolved": case.resolved,
        "observed": case.observed(),
        "cache": case.cache,
        "stages": case.stages() if reproduced(attempts, finding) else {},
        "scope": case.scope(),
        "kernels": [item.as_dict() for item in case.seen[:MAX_KERNELS]],
        "launches": case.launches,
        "numbers": list(facts.get("numbers") or []),
        "timings": parts["timings"],
        "phases": list(facts.get("phases") or [{"phase": last.phase, "seconds": round(last.seconds, 3)}]),
        "attempts": [{**item.summary(), "verdict": "crash" if item.crashed else None} for item in attempts],
        "not_tested": case.not_tested(),
        "log": list(log)[-200:],
    }
    return from_dict(plain(content, "report"), "report")


def ending(attempts: Sequence[Attempt], log: Sequence[str] = ()) -> Finding | None:
    """The finding where the process itself decides; None where a case ended with facts to judge.

    An engine whose worker fails says only that it failed; the worker's own words in the log decide then.
    """
    first, last = attempts[0], attempts[-1]
    decisive = last if last.crashed or not first.crashed else first
    outcome = decisive.facts.get("outcome")
    if decisive.ended in ENDED:
        verdict, words = ENDED[decisive.ended]
        reason = words.format(phase=decisive.phase, signal=decisive.signal, exit_code=decisive.exit_code)
    elif outcome in ("crash", "oom", "environment", "refused"):
        verdict, reason = outcome, f"{decisive.facts.get('error') or 'no reason given'}"
    else:
        return None
    if verdict == "crash" and (said := said_to_end([str(decisive.facts.get("error") or ""), *log])):
        return Finding(*said)
    if verdict == "crash" and not last.crashed:
        reason += "; a second try with synchronous launches ran through"
    layer = decisive.facts.get("layer") if verdict == "refused" else "forward" if verdict == "crash" else None
    return Finding(verdict, reason, layer)


def reproduced(attempts: Sequence[Attempt], finding: Finding) -> bool:
    """Whether what was found may be said of the stages: a crash counts only when it happened twice."""
    return finding.verdict != "crash" or (len(attempts) > 1 and all(item.crashed for item in attempts))


class Case:
    """The facts of one case with everything that can be concluded from them."""

    def __init__(
        self, spec: CaseSpec, facts: Mapping[str, Any], lines: Mapping[str, Any], rules: kernels.Rules
    ) -> None:
        self.spec, self.facts, self.rules = spec, facts, rules
        self.resolved = {**lines, **{k: v for k, v in (facts.get("resolved") or {}).items() if v is not None}}
        trace = facts.get("trace") or {}
        self.is_traced = "trace" in facts
        self.seen: list[Seen] = evidence.classified(trace.get("rows") or [], rules)
        self.launches = evidence.launches(self.seen, trace.get("steps") or {}, int(facts.get("layers") or 0))
        self.dtype = self._dtype()
        self.element = evidence.element_evidence(self.seen)
        self.cache = self._cache()

    def _dtype(self) -> str:
        """The dtype to hold the case to: what was asked for, or what `auto` became."""
        asked = self.spec.kv_cache_dtype
        return str(self.resolved.get("kv_cache_dtype") or asked) if asked == "auto" else asked

    def _cache(self) -> dict[str, Any]:
        told = dict(self.facts.get("cache") or {})
        printed = self.resolved.pop("observed", None) or {}
        if told.get("bytes_per_token") is None and printed.get("kv_bytes_per_token"):
            told |= {"bytes_per_token": printed["kv_bytes_per_token"], "bytes_source": printed.get("pool_source")}
        framework = "sglang" if self.spec.engine == "sglang" else "vllm"
        formula = evidence.token_bytes(self.spec.layers, self.dtype, framework) if self.spec.whole else None
        return {**told, "formula_bytes_per_token": formula}

    def requested(self) -> dict[str, Any]:
        """What was asked for."""
        spec = self.spec
        asked = {"kv_cache_dtype": spec.kv_cache_dtype, "backend": spec.backend, "weights": spec.weights}
        return {**asked, "engine": spec.engine, "release": spec.release}

    def observed(self) -> dict[str, Any]:
        """What was seen: bytes, tensor, kernels."""
        found = self.cache.get("bytes_per_token")
        return {
            "kv_bytes_per_token": found,
            "same_bytes_as": self._same_bytes(),
            "tensor_dtype": (self.element or {}).get("tensor_dtype") or self.cache.get("tensor_dtype"),
            "tensor_shape": (self.element or {}).get("tensor_shape") or self.cache.get("tensor_shape"),
            "families": sorted({item.kernel.family for item in self.seen if item.kernel.is_attention}),
            "kv_dtypes": sorted({item.kernel.kv_dtype for item in self.seen if item.kernel.kv_dtype}),
            "stored_as_requested": self.stored_as_requested(),
        }

    def stored_as_requested(self) -> bool | None:
        """Whether the allocated bytes are those of the format; None where either is unknown."""
        found, formula = self.cache.get("bytes_per_token"), self.cache.get("formula_bytes_per_token")
        if found is None or formula is None:
            return None
        return bool(abs(found - formula) <= self._spread() * formula)

    def _spread(self) -> float:
        return SPREAD.get(str(self.cache.get("bytes_source")), 0)

    def _same_bytes(self) -> list[str]:
        found = self.cache.get("bytes_per_token")
        return evidence.formats_of(found, self.spec.layers, self._spread()) if found and self.spec.whole else []

    def stages(self) -> dict[str, Any]:
        """The evidence of every stage that was exercised."""
        wanted = evidence.kernel_name(self.dtype)
        if self.seen:
            is_latent = any(layer.is_latent for layer in self.spec.layers)
            parts = ("kv_write", "prefill", "decode")
            names = {name: evidence.stage_evidence(name, self.seen, wanted, is_latent) for name in parts}
        else:
            names = {name: {"tested": True, "proven": None} for name in self.facts.get("exercised") or ()}
        if weights := evidence.weights_evidence(self.seen, self.spec.weights, self.rules):
            names["weights"] = weights
        return {name: stage for name, stage in names.items() if stage["tested"]}

    def scope(self) -> dict[str, Any]:
        """Exactly what ran."""
        layers = [
            {"kind": self.spec.kind or kind_of(layer), "head_size": layer.key_size, "value_head_size": layer.value_size}
            for layer in self.spec.layers
        ]
        sizes = list(dict.fromkeys((row["head_size"], row["value_head_size"]) for row in layers))
        return {
            "layers": [row for place, row in enumerate(layers) if row not in layers[:place]],
            "head_sizes": [list(pair) for pair in sizes],
            "kind": layers[0]["kind"] if layers else None,
            "graphs": list(self.facts.get("graphs") or ["eager"]),
            "backend": self.resolved.get("backend") or self.spec.backend,
        }

    def not_tested(self) -> list[str]:
        """What a pass does not cover."""
        left_out = list(NOT_TESTED)
        if "default" not in (self.facts.get("graphs") or []):
            left_out.append("CUDA graphs")
        if self.spec.engine == "reference":
            left_out.insert(0, "any kernel of any framework: this is our own arithmetic")
        return [*left_out, *(self.facts.get("not_tested") or ())]

    def finding(self) -> Finding:
        """The verdict, the first of these questions that has an answer."""
        checks = (self._storage, self._backend, self._numbers, self._trace, self._kernels)
        found = next(filter(None, (check() for check in checks)), None)
        return found or self._passed()

    def _storage(self) -> Finding | None:
        """Another number of bytes than the format takes, or a tensor that cannot hold it, is a silent fallback."""
        found, formula = self.cache.get("bytes_per_token"), self.cache.get("formula_bytes_per_token")
        if self.stored_as_requested() is False:
            like = self._same_bytes()
            rate = f", the size of {' or '.join(like)}" if like else ""
            reason = f"asked for {self.dtype}: {formula:,} bytes per token by the formula, {found:,} allocated{rate}"
            return Finding("fallback", reason, "silent")
        if not self.element or not self.spec.layers:
            return None
        wanted, held = evidence.record_bytes(self.spec.layers[0], self.dtype), self.element["record_bytes"]
        shown = f"{self.element['tensor_dtype']} {self.element['tensor_shape']}"
        if wanted is not None and held != wanted:
            reason = f"asked for {self.dtype}: {wanted} bytes per key row, the cache tensor is {shown}"
            return Finding("fallback", reason, "silent")
        proven = self.element["dtype"]
        if proven and proven != evidence.kernel_name(self.dtype):
            return Finding("fallback", f"asked for {self.dtype}, the cache tensor is {shown}", "silent")
        return None

    def _backend(self) -> Finding | None:
        """Another backend than the one asked for is a silent fallback."""
        asked, resolved = self.spec.backend, self.resolved.get("backend")
        if not asked or self.spec.engine == "reference":
            return None
        if resolved and resolved != asked:
            return Finding("fallback", f"asked for the backend {asked}, {resolved} ran", "silent")
        if evidence.backend_shown(asked, self.seen, self.rules) is False:
            families = ", ".join(self.observed()["families"])
            return Finding("fallback", f"asked for the backend {asked}, the attention kernels are {families}", "silent")
        return None

    def _numbers(self) -> Finding | None:
        wrong = [row for row in self.facts.get("numbers") or [] if row.get("asserted") and row.get("passed") is False]
        if not wrong:
            return None
        first = wrong[0]
        value = "not finite" if first["value"] is None else f"{first['value']:.4g}"
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        where = ", ".join(filter(None, (first["phase"], first.get("heads"), first.get("data"))))
        return Finding(
            "wrong_result", f"{first['name']} is {value}, the bar is {first['bar']:g} ({where}){more}", "forward"
        )

    def _trace(self) -> Finding | None:
        """A profiler that saw nothing, or less than ran, proves nothing."""
        if not self.is_traced:
            return None
        if not any(item.kernel.is_attention for item in self.seen):
            return Finding("no_trace", "the profiler returned no attention kernel; see the preflight on CUPTI")
        short = [row for row in self.launches if row["ok"] is False and row["what"] == "attention"]
        if short:
            row = short[0]
            counted = f"{row['launches']} attention launches in {row['phase']}, {row['expected']} expected"
            return Finding("no_trace", f"{counted} ({row['steps']} steps x {row['layers']} layers)")
        return None

    def _kernels(self) -> Finding | None:
        """Kernels that read or write another format, or GEMMs of another weight format, are a silent fallback."""
        for name, stage in self.stages().items():
            if name == "weights" and not stage["proven"]:
                reason = f"asked for {self.spec.weights} weights, the GEMMs are {', '.join(stage['families'])}"
                return Finding("fallback", reason, "silent")
            if stage.get("contradicts"):
                held = ", ".join(stage["kv_dtypes"])
                return Finding("fallback", f"asked for {self.dtype}, the kernels of {name} hold {held}", "silent")
        return None

    def _passed(self) -> Finding:
        stages = {name: stage for name, stage in self.stages().items() if name != "weights"}
        if self.spec.engine == "reference":
            return Finding("pass", "the arithmetic and the bytes of the format are right; no kernel was tested")
        element = bool(self.element and self.element["dtype"])
        unproven = [name for name, stage in stages.items() if not stage.get("proven") and not element]
        if stages and not unproven:
            return Finding("pass", "allocated, written and read as requested, and the kernels carry the format")
        why = f"no name proves the format in {', '.join(unproven)}" if stages else "no kernels were looked at"
        counted = {"bytes": self.stored_as_requested(), "numbers": self.facts.get("numbers")}
        told = " and ".join(name for name, found in counted.items() if found) or "launches"
        return Finding("pass_dtype_unproven", f"{told} are as requested; {why}")


def kind_of(layer: Layer) -> str:
    """The head kind of one layer."""
    if layer.is_latent:
        return "mla"
    return "mha" if layer.query_heads == layer.kv_heads else "mqa" if layer.kv_heads == 1 else "gqa"


def case_id(spec: CaseSpec) -> str:
    """Eight hex digits that stand for what a spec asks."""
    return hashlib.sha256(spec.to_json().encode()).hexdigest()[:8]
