"""Serving logs and scrapes: one module per framework over the same normalised lines."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nvdash.readers import metrics
from nvdash.readers.logs import sglang, trtllm, vllm
from nvdash.readers.logs.lines import by_service, log_lines
from nvdash.readers.record import Reading, Warning_
from nvdash.readers.source import Source

Reader = Callable[[Iterable[str]], dict[str, Any]]


def vllm_log(source: Source) -> Reading:
    """A vLLM server log."""
    return _server_log(source, vllm.read)


def sglang_log(source: Source) -> Reading:
    """An SGLang server log."""
    return _server_log(source, sglang.read)


def trtllm_log(source: Source) -> Reading:
    """A TensorRT-LLM log."""
    return _server_log(source, trtllm.read)


def scrape(source: Source) -> Reading:
    """A `/metrics` scrape."""
    facts = metrics.read(line.decode("utf-8", "replace") for line in source.lines())
    return Reading(server=facts)


def _server_log(source: Source, read: Reader) -> Reading:
    """The facts of the service that says most; others that share the log are named, not mixed in."""
    said = {service: read(messages) for service, messages in by_service(log_lines(source)).items()}
    service = max(said, key=lambda name: _weight(said[name]), default=None)
    facts = dict(said.get(service, {}))
    warnings = []
    if service is not None:
        facts["service"] = service
        others = [str(name) for name in said if name != service and name is not None]
        if others:
            warnings.append(Warning_("services", f"read {service}; the log also holds {', '.join(others)}"))
    if facts.get("server_starts"):
        warnings.append(Warning_("restarts", f"the log holds {facts['server_starts']} starts; the last one is read"))
    if facts.get("status") == "failed":
        warnings.append(Warning_("failed", f"the server did not start: {facts.get('failure', 'no reason found')}"))
    return Reading(server=facts, warnings=tuple(warnings))


def _weight(facts: Mapping[str, Any]) -> tuple[bool, int]:
    return facts.get("kv_tokens") is not None or facts.get("num_blocks") is not None, len(facts)
