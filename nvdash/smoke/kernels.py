"""What a kernel's name proves: its family, its role, and the cache dtype where the name carries one.

Rules live in `matrix/kernels.yaml`, ordered, each with its source. Names cannot give the phase: FlashInfer's prefill
kernel also serves decode, so phases come from step windows (`steps`), and a name only hints at one.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvdash.readers.digest import matrix_roots
from nvdash.readers.yaml_rows import read_yaml

RULES_FILE = "kernels.yaml"
MAX_NAME = 4_000
ROLES = (
    *("attention", "attention_prefill", "attention_decode", "kv_write", "kv_dequant", "merge"),
    *("weights_gemm", "act_quant", "wrapper", "other", "unknown"),
)
CACHE_ROLES = frozenset({"attention", "attention_prefill", "attention_decode", "kv_write", "kv_dequant", "merge"})
ATTENTION_ROLES = frozenset({"attention", "attention_prefill", "attention_decode"})
FP8_ENUM = {"1": "fp8_e4m3", "kFp8E4M3": "fp8_e4m3", "2": "fp8_e5m2", "kFp8E5M2": "fp8_e5m2"}

_ENUM = re.compile(r"Fp8KVCacheDataType(?:\)|::)?\s*\(?(\w+)")
_TRTLLM_TYPE = r"(Bfloat16|Fp16|Fp32|E4m3|E5m2|E2m1|Int8|S8)"
_TRTLLM = re.compile(
    rf"(?i:fmhaSm)(?P<sm>\d+)[a-z]?Kernel_(?:Qkv(?P<qkv>{_TRTLLM_TYPE})|Q(?P<q>{_TRTLLM_TYPE})Kv(?P<kv>{_TRTLLM_TYPE}))"
    rf"(?:Acc{_TRTLLM_TYPE})?O(?P<o>{_TRTLLM_TYPE})H(?:Qk(?P<hqk>\d+)HV(?P<hv>\d+)|(?P<h>\d+))"
)
_TRTLLM_PAGE = re.compile(r"P(\d+)(?=[A-Z]|$)")
_CUTE_TENSOR = re.compile(r"tensorptr(bf16|f16|f8E4M3FN|f8E5M2|f4E2M1FN|f8e4m3fn|f8e5m2|f4e2m1fn|i8)")
_WORD, _LITERAL = re.compile(r"(\d{1,3})(?=[A-Za-z_])"), re.compile(r"L[a-z](\d+)E")
_TILE = re.compile(
    r"KernelTraits<\s*\(?(?:flashinfer::)?(?:MaskMode\)?|MaskMode::k?\w+)?\d*,?\s*(?:\(unsigned int\))?(\d+)u?"
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one name says."""

    family: str
    role: str
    kv_dtype: str | None = None
    phase_hint: str | None = None
    """`prefill` or `decode` where the name tells; a hint, never the phase."""
    rule: str | None = None
    query_dtype: str | None = None
    head_size: int | None = None
    value_head_size: int | None = None
    page_size: int | None = None

    @property
    def is_attention(self) -> bool:
        """Whether it reads the cache to attend."""
        return self.role in ATTENTION_ROLES


UNKNOWN = Kernel("unknown", "unknown")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the rules file."""

    id: str
    family: str
    role: str
    pattern: re.Pattern[str]
    dtype: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The ordered rules and the spellings of element types."""

    version: int
    rules: tuple[Rule, ...]
    types: Mapping[str, str]
    """Spelling to dtype."""
    spelled: re.Pattern[str]
    backends: Mapping[str, Sequence[str]]
    """Families that show a backend at work."""
    weights: Mapping[str, Mapping[str, Sequence[str]]]
    """GEMM families that show a weight format at work: native, and dequant."""

    def element_types(self, name: str) -> list[str]:
        """Every element type in a name, in order; accumulators in FP32 left out."""
        return [self.types[found[0]] for found in self.spelled.finditer(name)]


@lru_cache(maxsize=4)
def load(path: Path | None = None) -> Rules:
    """The rules of `matrix/kernels.yaml`."""
    content = read_yaml(path or matrix_roots()[0] / RULES_FILE)
    types = {spelling: dtype for dtype, spellings in content["types"].items() for spelling in spellings}
    longest_first = sorted(types, key=len, reverse=True)
    spelled = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![A-Za-z0-9])")
    rules = tuple(_rule(row) for row in content["rules"])
    return Rules(content["version"], rules, types, spelled, content["backends"], content["weights"])


def _rule(row: Mapping[str, Any]) -> Rule:
    pattern = row["match"]
    flags = re.IGNORECASE if "(?i)" in pattern else 0
    compiled = re.compile(pattern.replace("(?i)", ""), flags)
    return Rule(row["id"], row["family"], row["role"], compiled, row.get("dtype"), row["source"])


def classify(name: str, rules: Rules | None = None) -> Kernel:
    """What a kernel's name, as a trace holds it, says."""
    rules = rules or load()
    spelled = demangle([name[:MAX_NAME]])[0]
    for rule in rules.rules:
        if rule.pattern.search(spelled):
            return _kernel(rule, spelled, rules)
    return UNKNOWN


def _kernel(rule: Rule, name: str, rules: Rules) -> Kernel:
    if rule.dtype == "trtllm_gen":
        return trtllm_gen(name, rule)
    dtype = cache_dtype(rule.dtype, name, rules) if rule.role in CACHE_ROLES else None
    hint = {"attention_prefill": "prefill", "attention_decode": "decode"}.get(rule.role)
    if rule.id == "flashinfer-prefill" and (tile := _TILE.search(name)):
        hint = "decode" if int(tile[1]) == 16 else "prefill"
    return Kernel(rule.family, rule.role, dtype, hint, rule.id)


def cache_dtype(method: str | None, name: str, rules: Rules) -> str | None:
    """The cache dtype that a name carries, by the method its rule names."""
    if method is None:
        return None
    if method.startswith("fixed:"):
        found = method.removeprefix("fixed:")
    elif method == "cute":
        tensors = [rules.types.get(match[1]) for match in _CUTE_TENSOR.finditer(name)]
        return tensors[min(1, len(tensors) - 1)] if tensors else None
    else:
        enumerator = _ENUM.search(name) if method == "cache_enum" else None
        if enumerator and enumerator[1] in FP8_ENUM:
            return FP8_ENUM[enumerator[1]]
        place = 0 if method == "first" else 1
        types = rules.element_types(name)
        found = types[place] if len(types) > place else ""
    return found if found not in ("", "eight_bits") else None


def trtllm_gen(name: str, rule: Rule) -> Kernel:
    """A trtllm-gen name parsed by its grammar: query, cache and output types, head sizes, page size, phase."""
    hint = "decode" if "ForGen" in name else "prefill" if "Context" in name else None
    if hint is None and re.search(r"VarSeqQ8(K|$|\D)", name):
        hint = "decode"
    found = _TRTLLM.search(name)
    if not found:
        return Kernel(rule.family, rule.role, None, hint, rule.id)
    key, value = int(found["h"] or found["hqk"]), int(found["h"] or found["hv"])
    page = _TRTLLM_PAGE.search(name, found.end())
    query, cache = found["qkv"] or found["q"], found["qkv"] or found["kv"]
    names = {"Bfloat16": "bf16", "Fp16": "fp16", "Fp32": "fp32", "E4m3": "fp8_e4m3", "E5m2": "fp8_e5m2"}
    names |= {"E2m1": "nvfp4", "Int8": "int8", "S8": "int8"}
    role = {"decode": "attention_decode", "prefill": "attention_prefill"}.get(hint or "", "attention")
    size = int(page[1]) if page else None
    return Kernel(rule.family, role, names[cache], hint, rule.id, names[query], key, value, size)


def demangle(names: Iterable[str]) -> list[str]:
    """The names in C++ spelling: by c++filt where there is one, else (and for cut names) identifiers spelled out."""
    listed = list(names)
    mangled = [name for name in listed if name.startswith("_Z") and "\n" not in name]
    if not mangled:
        return listed
    whole = {name: spelled for name, spelled in _filtered(mangled).items() if spelled != name}
    return [whole.get(name) or spell_out(name) if name in mangled else name for name in listed]


def _filtered(mangled: list[str]) -> dict[str, str]:
    tool = shutil.which("c++filt")
    if not tool:
        return {}
    try:
        done = subprocess.run([tool], input="\n".join(mangled), capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = done.stdout.splitlines()
    return dict(zip(mangled, lines, strict=True)) if len(lines) == len(mangled) else {}


def spell_out(mangled: str) -> str:
    """The identifiers of a mangled name, in order, joined the way C++ writes them; works on a cut name too."""
    text, place = "", 2
    while place < len(mangled):
        if (word := _WORD.match(mangled, place)) and (size := int(word[1])):
            text += ("" if not text or text[-1] in "<, " else "::") + mangled[word.end(1) : word.end(1) + size]
            place = word.end(1) + size
        elif literal := _LITERAL.match(mangled, place):
            text += f", {literal[1]}, "
            place = literal.end()
        else:
            text += "<" * (mangled[place] == "I")
            place += 1
    return text.replace("<, ", "<")
