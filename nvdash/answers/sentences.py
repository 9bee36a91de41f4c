"""The first sentence of a support answer: what happens, who says so."""

from collections.abc import Mapping
from typing import Any

from nvdash.answers.words import FRAMEWORKS, VERDICTS, dtype


def support_sentence(answer: Mapping[str, Any]) -> str:
    """One full sentence with symbol and word, for people."""
    question = answer["question"]
    word = VERDICTS[answer["verdict"]]
    release = f"{FRAMEWORKS.get(question['framework'], question['framework'])} {question['release']}"
    what = f"{dtype(question['weights'])} weights with {_cache(answer)} cache on {question['gpu']} ({question['arch']})"
    return f"{word}: {_clause(answer, release, what)}"


def _cache(answer: Mapping[str, Any]) -> str:
    requested, resolved = answer["question"]["kv_cache_dtype"], answer["resolved"]["kv_cache_dtype"]
    if requested == resolved:
        return dtype(requested)
    return f"{dtype(requested)} (resolved: {dtype(resolved)})"


def _clause(answer: Mapping[str, Any], release: str, what: str) -> str:
    verdict, reason = answer["verdict"], (answer["reason"] or "").rstrip(".")
    backend = answer["resolved"]["backend"]
    through = f" through {backend}" if backend else ""
    if verdict == "refused":
        return f"{release} refuses {what} ({answer['layer']}: {reason})."
    if verdict == "trap" and answer["layer"] == "silent":
        return f"{release} accepts {what}{through}, and silently does something else ({reason})."
    if verdict == "trap":
        return f"{release} accepts {what}{through}, then fails ({answer['layer']}: {reason})."
    if verdict == "unknown":
        return f"whether {release} runs {what} is unknown. {_sentence(reason)}".strip()
    if verdict == "conditional":
        return f"{release} runs {what}{through}, if {'; '.join(answer['unmet_conditions'][:3]) or 'conditions hold'}."
    if verdict == "validated":
        return f"{release} ran {what}{through} here as requested."
    return f"{release} should run {what}{through}; every layer that was read accepts it, no run of ours."


def _sentence(reason: str) -> str:
    """The reason as a sentence; a framework's name keeps its own spelling."""
    first, _, rest = reason.partition(" ")
    opening = FRAMEWORKS.get(first) or f"{first[:1].upper()}{first[1:]}"
    return f"{opening} {rest}".rstrip() + "." if reason else ""


def assumption_lines(answer: Mapping[str, Any]) -> list[str]:
    """What was taken for granted, each with its meaning."""
    from nvdash.readers.matrix import read_axes

    meanings = read_axes().get("assumptions", {})
    return [f"{name}: {meanings[name]}" if name in meanings else name for name in answer["assumes"]]
