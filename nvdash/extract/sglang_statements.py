"""Turns SGLang's evaluated outcomes and facts into atoms of the support matrix.

Prefill and decode are two cells: a plain cache is asked side by side, an FP4 cache pair by pair, since its checks
look at both backends together.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nvdash.extract.findings import Fact, definition, limits
from nvdash.extract.sglang_config import ARCHITECTURES, Configuration, Outcome, Question, Refusal
from nvdash.extract.sglang_facts import FP4_METHODS, POOL, REGISTRY, choices
from nvdash.extract.source import ExtractError, Tree
from nvdash.extract.statements import Atom, Reading, frozen

BACKENDS = {
    False: ("triton", "torch_native", "flex_attention", "flashinfer", "fa3", "fa4", "trtllm_mha"),
    True: (
        "triton",
        "flashinfer",
        "fa3",
        "fa4",
        "flashmla",
        "cutlass_mla",
        "trtllm_mla",
        "tokenspeed_mla",
        "cutedsl_mla",
        "trtllm_mha",
    ),
}
"""Attention backends for NVIDIA GPUs that a user may name for a plain and for an MLA model, whatever the model is."""
FP4_WORDS = ("nvfp4", "fp4_mx_block16", "fp4_e2m1")
PLAIN_READ = "each read dequantises the whole layer's pool to BF16: saves capacity, not memory traffic"
FP8_QUERY: dict[str, Any] = {"kernel": "native", "compute": {"q": "fp8"}}
WIDENED: dict[str, Any] = {"kernel": "dequant"}
"""What a "native" read of the packed cache is: FP4 against FP8 queries in trtllm-gen, widened to 16 bits in XQA."""
STAGES = ("kv_write", "prefill", "decode")
SM100 = ("sm100", "sm103")
Place = tuple[str, int]


class Statements:
    """Collects the atoms of one release."""

    def __init__(self, tree: Tree, facts: Iterable[Fact], configuration: Configuration, reading: Reading) -> None:
        self.tree, self.configuration, self.reading = tree, configuration, reading
        self.facts = {fact.fact: fact for fact in facts}
        words = choices("kv_cache_dtype")(tree)
        self.words: list[str] = list(words[0]) if words else []
        listed = self.facts.get("attention_backend.choices")
        self.backends = {
            mla: [b for b in names if listed is None or b in listed.value] for mla, names in BACKENDS.items()
        }

    def read(self) -> None:
        """Every atom of the release."""
        self._flags()
        self._resolution()
        for mla in (False, True):
            self._defaults(mla)
            for word in self.words:
                self._dtype(word, mla)

    def add(
        self,
        said: Mapping[str, Any],
        when: Mapping[str, Any],
        arch: str | None,
        word: str | None,
        place: Place,
        kind: str = "support",
    ) -> None:
        """Note one atom under the assumptions of every evaluation here."""
        if when.get("mla"):
            when = {**when, "sparse": False}
        file = {"quant": "weights", "priority": "defaults", "resolve": "defaults"}.get(kind, "attention")
        self.reading.add(
            Atom(file, kind, frozen(said), frozen(limits(when)), arch, word),
            place,
            frozenset({"cuda_platform", "no_model_override", "flashinfer_importable"}),
        )

    def place(self, name: str) -> Place:
        """Where a fact stands; a release in which it moved is named, so that its new place can be mapped."""
        if name not in self.facts:
            raise ExtractError(
                f"sglang {self.reading.release}",
                f"a place for {name}",
                "none of the known ones has it",
                "map it in nvdash/extract/sglang_facts.py",
            )
        return self.facts[name].path, self.facts[name].line or 0

    def _flags(self) -> None:
        """Words that a flag does not know, and the one that it knows and refuses."""
        words = self.facts.get("kv_cache_dtype.choices")
        if words:
            self._refuse(
                "--kv-cache-dtype does not know this value",
                {"kv_cache_dtype": {"not": words.value}},
                self.place(words.fact),
            )
        listed = self.facts.get("attention_backend.choices")
        if listed:
            self._refuse(
                "--attention-backend does not know this value",
                {"backend": {"not": listed.value}},
                self.place(listed.fact),
            )

    def _refuse(self, reason: str, when: Mapping[str, Any], place: Place, word: str | None = None) -> None:
        self.add({"verdict": "refused", "layer": "config", "reason": reason}, when, None, word, place)

    def _resolution(self) -> None:
        """What `auto` becomes: the checkpoint's FP8 cache is followed, any other stays the model's own dtype."""
        rule = self.facts.get("kv_cache_dtype.auto")
        if rule is None:
            return
        place = self.place(rule.fact)
        for scheme, becomes, silent in (
            ("fp8", "fp8_e4m3", None),
            ("none", "model_dtype", None),
            ("nvfp4", "model_dtype", True),
        ):
            reason = "only an FP8 cache in the checkpoint changes auto" if silent else None
            self.add(
                {"becomes": becomes, "silent": silent, "reason": reason},
                {"checkpoint_kv": scheme},
                None,
                "auto",
                place,
                "resolve",
            )

    def _dtype(self, word: str, mla: bool) -> None:
        if word == "fp4_e2m1" and "kv_cache_dtype.fp4_e2m1" in self.facts:
            self._refuse(
                "--kv-cache-dtype=fp4_e2m1 is deprecated: raised when resolved",
                {"mla": mla},
                self.place("kv_cache_dtype.fp4_e2m1"),
                word,
            )
        elif word in FP4_WORDS and "kv_fp4.pool_classes.first_version" not in self.facts:
            self._phantom(word, mla)
        else:
            for arch in ARCHITECTURES:
                if word in FP4_WORDS:
                    self._pairs(arch, word, mla)
                else:
                    for backend in self.backends[mla]:
                        self._sides(arch, word, mla, backend)

    def _phantom(self, word: str, mla: bool) -> None:
        """The flag exists before any pool can store it."""
        said = {
            "verdict": "trap",
            "layer": "silent",
            "reason": "the flag is accepted, and no pool class of the release stores FP4",
        }
        self.add(said, {"mla": mla}, None, word, self.place("kv_cache_dtype.choices"))

    # Defaults

    def _defaults(self, mla: bool) -> None:
        """The backends when none is named; a cache dtype that changes them has rules of its own."""
        asked = {
            (arch, word): self.configuration.ask(Question(arch, word, mla))
            for arch in ARCHITECTURES
            for word in dict.fromkeys(["auto", *self.words])
        }
        own = [
            word
            for word in self.words
            if any(not _same(asked[arch, word], asked[arch, "auto"]) for arch in ARCHITECTURES)
        ]
        others: dict[str, Any] = {"kv_cache_dtype": {"not": own}} if own else {}
        place = self.place(f"default_backend.{'mla' if mla else 'mha'}")
        for arch in ARCHITECTURES:
            for word in ["auto", *own]:
                when = {"mla": mla, **({} if word in own else others)}
                named = word if word in own else None
                self._priority(asked[arch, word], when, arch, named, place)
                sinks = self.configuration.ask(Question(arch, word, mla, sinks=True))
                if not mla and not _same(sinks, asked[arch, word]):
                    self._priority(sinks, {**when, "sinks": True}, arch, named, place)

    def _priority(self, outcome: Outcome, when: Mapping[str, Any], arch: str, word: str | None, place: Place) -> None:
        for stage, backend in (("prefill", outcome.prefill), ("decode", outcome.decode)):
            if backend:
                self.add({"order": [backend], "stage": [stage]}, when, arch, word, place, "priority")

    # Plain caches: each side alone

    def _sides(self, arch: str, word: str, mla: bool, backend: str) -> None:
        both = self.configuration.ask(Question(arch, word, mla, backend))
        when = {"backend": backend, "mla": mla}
        if both.accepted and (both.prefill, both.decode) != (backend, backend):
            self._rerouted(both, when, arch, word)
        elif both.accepted:
            self._expected(when, arch, word, backend, STAGES)
        elif both.refusal:
            self._refused_sides(arch, word, mla, backend, both)
        else:
            said = {"verdict": "unknown", "reason": "the argument checks are not decided by the source alone"}
            self.add(said, when, arch, word, self._creation(backend))

    def _refused_sides(self, arch: str, word: str, mla: bool, backend: str, both: Outcome) -> None:
        """Which of prefill and decode is refused, by pairing the backend with the default on the other side."""
        other = self.configuration.ask(Question(arch, word, mla)).prefill or "triton"
        sides = {
            "prefill": self.configuration.ask(Question(arch, word, mla, None, backend, other)),
            "decode": self.configuration.ask(Question(arch, word, mla, None, other, backend)),
        }
        open_sides = [s for s, o in sides.items() if o.accepted and other != backend]
        when = {"backend": backend, "mla": mla}
        for stage in ("prefill", "decode"):
            outcome = sides[stage] if sides[stage].refusal and open_sides else both
            if stage in open_sides:
                self._expected(when, arch, word, backend, (stage,))
            else:
                self._refused(outcome, {**when}, arch, word, None if not open_sides else [stage])
        if open_sides:
            self._expected(when, arch, word, backend, ("kv_write",))

    def _refused(self, outcome: Outcome, when: Mapping[str, Any], arch: str, word: str, stage: Any = None) -> None:
        if outcome.refusal is not None:
            refusal = outcome.refusal
            said = {
                "stage": stage,
                "verdict": "refused" if refusal.layer == "config" else "trap",
                "layer": refusal.layer,
                "reason": refusal.message,
            }
            self.add(said, when, arch, word, (refusal.path, refusal.line))

    def _expected(
        self, when: Mapping[str, Any], arch: str, word: str, backend: str, stage: Iterable[str], **more: Any
    ) -> None:
        stages = list(stage)
        if arch not in BUILT_FOR.get(backend, ARCHITECTURES):
            unread = {
                "verdict": "unknown",
                "reason": f"no check of the source stops {backend} here; which GPUs its "
                "kernel package is built for was not read",
            }
            self.add(unread, when, arch, word, self._creation(backend))
            return
        for part in stages if backend in FLASHINFER_PATHS else [None]:
            whole = None if tuple(stages) == STAGES else stages
            said: dict[str, Any] = {
                "stage": [part] if part else whole,
                "verdict": "expected",
                "requires_flashinfer": flashinfer_path(backend, arch, part, bool(when.get("mla"))),
                **more,
            }
            self.add(said, when, arch, word, self._creation(backend))

    def _rerouted(self, outcome: Outcome, when: Mapping[str, Any], arch: str, word: str) -> None:
        """The arguments name one backend and another one runs."""
        fact = self.facts.get("fa3.fp8_e5m2")
        place = self.place(fact.fact) if fact and word == "fp8_e5m2" else self._creation(str(when["backend"]))
        said = {
            "verdict": "trap",
            "layer": "silent",
            "reason": f"the backend is silently changed: prefill runs {outcome.prefill}, decode {outcome.decode}",
        }
        self.add(said, when, arch, word, place)

    def _creation(self, backend: str) -> Place:
        creator = self.configuration.creators.get(backend)
        if creator is not None:
            return REGISTRY, creator.node.lineno
        return self.place("attention_backend.choices")

    # FP4 caches: pair by pair

    def _pairs(self, arch: str, word: str, mla: bool) -> None:
        """Refusals by pair of backends, then each side that some accepted pair runs."""
        refused: dict[Refusal, set[tuple[str, str]]] = {}
        sides: dict[str, set[str]] = {"prefill": set(), "decode": set()}
        for prefill in self.backends[mla]:
            for decode in self.backends[mla]:
                outcome = self.configuration.ask(_pair_question(arch, word, mla, prefill, decode))
                if outcome.refusal:
                    refused.setdefault(outcome.refusal, set()).add((prefill, decode))
                elif outcome.accepted:
                    sides["prefill"].add(str(outcome.prefill))
                    sides["decode"].add(str(outcome.decode))
                    if (outcome.prefill, outcome.decode) != (prefill, decode):
                        self._moved(outcome, (prefill, decode), arch, word, mla)
        for refusal, pairs in refused.items():
            for prefills, decodes in rectangles(pairs, self.backends[mla]):
                when = {"prefill_backend": prefills, "decode_backend": decodes, "mla": mla}
                self._refused(Outcome(refusal), when, arch, word)
        if mla and word == "nvfp4" and sides["decode"]:
            said = {
                "verdict": "trap",
                "layer": "silent",
                "kv_format": "fp4_mx_block16",
                "reason": "the MLA pool stores block-16 exponent-scale codes, whatever the flag says",
            }
            self.add(said, {"mla": True}, arch, word, self.place("mla_fp4_pool.format"))
            return
        for stage, backends in sides.items():
            for backend in sorted(backends):
                self._fp4_side(stage, backend, {"backend": backend, "mla": mla}, arch, word, mla)
        for backend in sorted(sides["prefill"] | sides["decode"]):
            self._expected({"backend": backend, "mla": mla}, arch, word, backend, ("kv_write",))

    def _moved(self, outcome: Outcome, asked: tuple[str, str], arch: str, word: str, mla: bool) -> None:
        """A named backend that another one replaces with this cache."""
        when = {"prefill_backend": asked[0], "decode_backend": asked[1], "mla": mla}
        for stage, named, runs in (("prefill", asked[0], outcome.prefill), ("decode", asked[1], outcome.decode)):
            if named != runs:
                reason = f"{stage} runs {runs} with this cache, whatever backend is named"
                self._fp4_side(stage, str(runs), when, arch, word, mla, reason)

    def _fp4_side(
        self,
        stage: str,
        backend: str,
        when: Mapping[str, Any],
        arch: str,
        word: str,
        mla: bool,
        reason: str | None = None,
    ) -> None:
        """How one phase reads the FP4 cache, where the release declares that it does."""
        if (
            word == "nvfp4"
            and (stage, backend) == ("prefill", "trtllm_mha")
            and "nvfp4.mha.trtllm_mha_prefill" in self.facts
        ):
            late = {
                "stage": [stage],
                "verdict": "trap",
                "layer": "forward",
                "reason": "native FP4 cache serves decode only: the first prefill raises RuntimeError",
            }
            self.add(late, when, arch, word, self.place("nvfp4.mha.trtllm_mha_prefill"))
            return
        reads = dict(self._access(stage, word, mla, arch)).get(backend)
        if reads is None:
            open_ = {
                "stage": [stage],
                "verdict": "unknown",
                "reason": f"the arguments are accepted, but no access rule says that {backend} reads this cache",
            }
            self.add(open_, when, arch, word, self._read_place(word, mla))
            return
        limited = reads.get("path") == "native" and "nvfp4.native.head_dim" in self.facts and arch in SM100
        said: dict[str, Any] = {
            "stage": [stage],
            "verdict": "expected",
            "reason": reason,
            **reads,
            "requires_flashinfer": flashinfer_path(backend, arch, stage, mla),
        }
        self.add(
            said,
            {**when, "head_size": {"multiple_of": 64} if limited else None},
            arch,
            word,
            self._read_place(word, mla),
        )

    def _access(self, stage: str, word: str, mla: bool, arch: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Backends that read the cache in this phase, and how."""
        if word == "nvfp4":
            if stage == "prefill":
                for backend in self._listed("nvfp4.prefill_backends"):
                    yield backend, {"kernel": "dequant", "path": "fp8_e4m3 workspace"}
            for backend in self._listed("nvfp4.native_prefill_backends") if stage == "prefill" else ("trtllm_mha",):
                yield backend, {**(FP8_QUERY if arch in SM100 else WIDENED), "path": "native"}
            return
        for name in (
            f"kv4.{'mla' if mla else 'mha'}.same_backend_choices",
            f"kv4.{'mla' if mla else 'mha'}.fa4_prefill_decode_choices",
        ):
            for backend in self._listed(name):
                yield backend, {"kernel": "dequant", "path": "plain_dequant", "warning": PLAIN_READ}
        if stage == "prefill" and "kv4.mha.fa4_prefill_decode_choices" in self.facts:
            yield "fa4", {"kernel": "dequant", "path": "plain_dequant", "warning": PLAIN_READ}

    def _listed(self, name: str) -> list[str]:
        return list(self.facts[name].value) if name in self.facts else []

    def _read_place(self, word: str, mla: bool) -> Place:
        if word == "nvfp4":
            node = definition(self.tree, FP4_METHODS, "NVFP4KVCacheMethod")
            return (FP4_METHODS, node.lineno) if node else self.place("kv_cache_dtype.choices")
        node = definition(self.tree, POOL, "MLATokenToKVPoolFP4" if mla else "MHATokenToKVPoolFP4")
        return (POOL, node.lineno) if node else self.place("kv_cache_dtype.choices")


BUILT_FOR = {"fa4": ("sm90", *SM100), "flashmla": ("sm90", *SM100), "cutlass_mla": SM100, "tokenspeed_mla": SM100}
"""Backends whose kernels come from a package that was not read, and the GPUs their own documents name."""

FLASHINFER_PATHS = ("flashinfer", "trtllm_mha", "trtllm_mla", "cutedsl_mla")


def flashinfer_path(backend: str, arch: str, stage: str | None, mla: bool) -> str | bool | None:
    """The FlashInfer path behind a backend, as matrix/flashinfer spells it; True where FlashInfer chooses itself."""
    if backend not in FLASHINFER_PATHS or stage == "kv_write":
        return None
    if backend == "flashinfer":
        return True if mla or arch == "sm90" else "fa2"
    if arch in SM100:
        return "trtllm-gen"
    return "xqa" if stage == "decode" else True


def _same(one: Outcome, other: Outcome) -> bool:
    return (one.prefill, one.decode) == (other.prefill, other.decode)


def _pair_question(arch: str, word: str, mla: bool, prefill: str, decode: str) -> Question:
    """Equal backends are named once, as users do; unequal ones by their own flags."""
    if prefill == decode:
        return Question(arch, word, mla, prefill)
    return Question(arch, word, mla, None, prefill, decode)


def rectangles(pairs: set[tuple[str, str]], names: list[str]) -> Iterator[tuple[list[str] | None, list[str] | None]]:
    """Cover pairs by lists of prefill and decode backends; None stands for every one."""
    by_decode: dict[str, frozenset[str]] = {d: frozenset(p for p, other in pairs if other == d) for _, d in pairs}
    together: dict[frozenset[str], list[str]] = {}
    for decode in sorted(by_decode):
        together.setdefault(by_decode[decode], []).append(decode)
    for prefills, decodes in together.items():
        yield (
            None if len(prefills) == len(names) else sorted(prefills),
            None if len(decodes) == len(names) else decodes,
        )
