"""lm-evaluation-harness: scores of tasks and groups, and what the file knows of the model behind them.

The environment text describes the machine that ran the harness; behind an API that is the client, not the server.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nvdash.readers.aliases import controls
from nvdash.readers.record import (
    QualityRow,
    Reading,
    RecordError,
    Remark,
    Value,
    checked,
    clean_model,
    clean_text,
    flag,
    to_number,
)
from nvdash.readers.results.common import Record, epoch, mapping

_LOCAL = ("hf", "vllm", "sglang", "nemo_lm", "hf-multimodal", "vllm-vlm", "huggingface", "mamba_ssm", "neuronx")
"""Model backends that run the model on the machine whose environment the file prints."""
_GPU = re.compile(r"GPU (\d+): ([^\n(]+?)(?: \(UUID|\n|$)")
_DRIVER = re.compile(r"Nvidia driver version: (\d[\d.]*)")
_NOT_METRICS = frozenset({"alias", "name", "sample_len", "sample_count", " "})


def results(records: Sequence[Record], where: str) -> Reading:
    """A results file: one quality row per task, metric and filter."""
    record = records[0]
    rows = tuple(row for task, scores in _scores(record) for row in _rows(where, record, task, scores))
    facts, warnings = _server(where, record)
    return Reading(quality=rows, server=facts, warnings=warnings)


def samples(records: Sequence[Record], where: str) -> Reading:
    """Per-sample records: recognised, never taken for results; prompts and answers are not kept."""
    text = f"{len(records)} records of single samples: give the results file of the same run, which has the scores"
    return Reading(warnings=(Remark("samples", text),))


def _scores(record: Record) -> Iterator[tuple[str, Record]]:
    """Tasks with their scores; groups stand in two places and count once."""
    tasks = {**mapping(record.get("groups")), **mapping(record.get("results"))}
    yield from ((task, scores) for task, scores in tasks.items() if isinstance(scores, Mapping))


def _rows(where: str, record: Record, task: str, scores: Record) -> Iterator[QualityRow]:
    counts = mapping(mapping(record.get("n-samples")).get(task))
    higher = mapping(mapping(record.get("higher_is_better")).get(task))
    is_group = task in mapping(record.get("groups")) or bool(mapping(record.get("group_subtasks")).get(task))
    for key, value in scores.items():
        metric, comma, name = key.partition(",")
        number = to_number(value) if not isinstance(value, str) else None
        if key in _NOT_METRICS or metric.endswith("_stderr") or number is None:
            continue
        if abs(number) == float("inf"):
            raise RecordError(where, f"{task} {key} as a finite number", f"found {number}")
        stderr = scores.get(f"{metric}_stderr{comma}{name}")
        counted = mapping(scores.get("sample_count")).get(key, scores.get("sample_len"))
        yield QualityRow(
            task=clean_text(task) or "?",
            metric=clean_text(metric) or "?",
            filter=(clean_text(name) if comma else None),
            value=number,
            stderr=to_number(stderr) if not isinstance(stderr, str) else None,
            n_shot=_whole(_shots(record, task)),
            n_effective=_whole(counts.get("effective", counted)),
            n_original=_whole(counts.get("original")),
            higher_is_better=higher.get(metric) if isinstance(higher.get(metric), bool) else None,
            is_group=is_group,
            task_version=clean_text(version)
            if (version := mapping(record.get("versions")).get(task)) is not None
            else None,
            chat_template_sha=clean_text(sha) if (sha := record.get("chat_template_sha")) else None,
            fewshot_as_multiturn=flag(record.get("fewshot_as_multiturn")),
        )


def _shots(record: Record, task: str) -> Any:
    """Examples of the task; the harness of 2023 stated one number for all tasks."""
    if "n-shot" in record:
        return mapping(record["n-shot"]).get(task)
    return mapping(record.get("config")).get("num_fewshot")


def _whole(value: Any) -> int | None:
    number = to_number(value)
    return int(number) if number is not None and 0 <= number < 2**53 else None


def _server(where: str, record: Record) -> tuple[dict[str, Value], tuple[Remark, ...]]:
    config = mapping(record.get("config"))
    arguments = _arguments(config.get("model_args"))
    backend = str(config.get("model") or record.get("model_source") or "")
    served = record.get("model_name") or arguments.get("pretrained") or arguments.get("model")
    facts: dict[str, Value] = {
        name: checked(where, name, value)
        for name, value in controls(arguments, frozenset({"model", "pretrained", "model_path"})).items()
    }
    facts |= {
        "model": clean_model(served) if served else None,
        "tokenizer": clean_model(arguments["tokenizer"]) if arguments.get("tokenizer") else None,
        "backend": clean_text(backend) if backend else None,
        "framework": backend if backend in ("vllm", "sglang") else None,
        "lm_eval_version": clean_text(record["lm_eval_version"]) if record.get("lm_eval_version") else None,
        "started_at": epoch(record.get("date")),
    }
    facts["limit"] = to_number(config.get("limit"))
    hardware, warnings = _hardware(str(record.get("pretty_env_info") or ""), backend)
    return {name: value for name, value in {**facts, **hardware}.items() if value is not None}, warnings


def _arguments(stated: Any) -> Mapping[str, Any]:
    """Model arguments: an object since 0.4.12, `name=value,name=value` before."""
    if isinstance(stated, str):
        return dict(part.split("=", 1) for part in stated.split(",") if "=" in part)
    return mapping(stated)


def _hardware(environment: str, backend: str) -> tuple[dict[str, Value], tuple[Remark, ...]]:
    """GPU and driver of the machine, where the model ran on it."""
    gpus = [name.strip() for _, name in _GPU.findall(environment)]
    if not gpus:
        return {}, ()
    if backend not in _LOCAL:
        text = f"the environment in this file is the client's ({gpus[0]}); the server's GPU is not stated"
        return {}, (Remark("client_environment", text),)
    driver = _DRIVER.search(environment)
    found: dict[str, Value] = {"gpu": gpus[0] if len(set(gpus)) == 1 else None, "gpus_visible": len(gpus)}
    found["driver"] = driver[1] if driver else None
    return found, ()
