"""Serving logs and scrapes: one module per framework over the same normalised lines."""

from collections.abc import Mapping
from typing import Any, Protocol

from nvdash.readers import metrics
from nvdash.readers.logs import sglang, trtllm, vllm
from nvdash.readers.logs.lines import log_lines
from nvdash.readers.record import Reading, Remark
from nvdash.readers.source import FileRefused, Source


class Log(Protocol):
    """What every framework's reader offers."""

    def take(self, text: str) -> None:
        """Take one message in."""

    def facts(self) -> dict[str, Any]:
        """The facts about the server."""


def vllm_log(source: Source) -> Reading:
    """A vLLM server log."""
    return _server_log(source, vllm.Log)


def sglang_log(source: Source) -> Reading:
    """An SGLang server log."""
    return _server_log(source, sglang.Log)


def trtllm_log(source: Source) -> Reading:
    """A TensorRT-LLM log."""
    return _server_log(source, trtllm.Log)


def any_log(source: Source) -> Reading:
    """The server's side of a file that also holds something else, such as the table of a benchmark that it served."""
    found: list[Reading] = []
    for reader in (vllm.Log, sglang.Log, trtllm.Log):
        try:
            found.append(_server_log(source, reader))
        except FileRefused:
            continue
    if not found:
        raise FileRefused(source.name, "a server log with sizes, options or a failure", "found none of them")
    return max(found, key=lambda reading: _weight(reading.server))


def scrape(source: Source) -> Reading:
    """A `/metrics` scrape."""
    facts = metrics.read(line.decode("utf-8", "replace") for line in source.lines())
    if not facts:
        raise FileRefused(source.name, "a scrape of vLLM or SGLang with series that are known", "found none of them")
    return Reading(server=facts)


def _server_log(source: Source, reader: type[Log]) -> Reading:
    """The facts of the service that says most; others that share the log are named, not mixed in."""
    services: dict[str | None, Log] = {}
    for line in log_lines(source):
        log = services.get(line.service)
        if log is None and len(services) < MAX_SERVICES:
            log = services[line.service] = reader()
        if log is not None:
            log.take(line.text)
    said = {service: log.facts() for service, log in services.items()}
    service = max(said, key=lambda name: _weight(said[name]), default=None)
    facts = dict(said.get(service, {}))
    if facts.keys() <= {"framework"}:
        raise FileRefused(source.name, "a server log with sizes, options or a failure", "found none of them")
    if service is not None:
        facts["service"] = service
    others = sorted(name for name in said if name is not None and name != service)
    return Reading(server=facts, warnings=tuple(_remarks(facts, others, source)))


MAX_SERVICES = 20


def _remarks(facts: Mapping[str, Any], others: list[str], source: Source) -> list[Remark]:
    found = []
    if facts.get("service") is not None and others:
        names = ", ".join(others)
        found.append(Remark("services", f"read {facts['service']}; the log also holds {names}"))
    if facts.get("server_starts"):
        found.append(Remark("restarts", f"the log holds {facts['server_starts']} starts; the last one is read"))
    if facts.get("status") == "failed":
        found.append(Remark("failed", f"the server did not start: {facts.get('failure', 'no reason found')}"))
    if source.deadline.near():
        found.append(Remark("cut_off", "the log is too long to be read to its end; its beginning was read"))
    return found


def _weight(facts: Mapping[str, Any]) -> tuple[bool, int]:
    return facts.get("kv_tokens") is not None or facts.get("num_blocks") is not None, len(facts)
