"""Which format is this file: signatures in a fixed order, the first that fits is read.

JSON is recognised by its keys, CSV and text by their first lines. The order is part of the knowledge: formats that
look like another one in seconds instead of milliseconds are tried before it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A format of JSON documents: keys that must be there, one of which must be there, and which must not."""

    name: str
    title: str
    reader: str
    """Module and function below `nvdash.readers`."""
    needs: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    asks: str = "serving"

    def fits(self, record: Mapping[str, Any]) -> bool:
        """Whether the first record of a file has this signature."""
        return (
            all(_has(record, path) for path in self.needs)
            and (not self.any_of or any(_has(record, path) for path in self.any_of))
            and not any(_has(record, path) for path in self.without)
        )


def _has(record: Any, path: str) -> bool:
    """Whether a dotted path leads somewhere; `a.b=c` asks for the value c."""
    path, _, wanted = path.partition("=")
    for step in path.split("."):
        if step.isdigit() and isinstance(record, list) and int(step) < len(record):
            record = record[int(step)]
        elif isinstance(record, Mapping) and step in record:
            record = record[step]
        else:
            return False
    return not wanted or str(record) == wanted


JSON_FORMATS = (
    JsonFormat("smoke-report", "smoke report of nvdash", "results.sidefile:smoke",
               ("schema", "case_id", "engine", "verdict"), asks="nothing"),
    JsonFormat("kineto-trace", "PyTorch profiler (Kineto) trace", "traces:kineto", ("traceEvents",), asks="trace"),
    JsonFormat("lm-eval", "lm-evaluation-harness results", "results.lm_eval:results", ("results", "configs"),
               ("n-shot", "versions"), asks="quality"),
    JsonFormat("lm-eval", "lm-evaluation-harness results", "results.lm_eval:results",
               ("results", "versions", "config.model"), asks="quality"),
    JsonFormat("lm-eval-samples", "lm-evaluation-harness samples", "results.lm_eval:samples",
               ("doc_id", "filtered_resps"), asks="nothing"),
    JsonFormat("guidellm", "GuideLLM report", "results.guidellm:report", ("benchmarks.0.metrics",),
               ("benchmarks.0.type_", "metadata.guidellm_version", "benchmarks.0.run_stats", "benchmarks.0.config")),
    JsonFormat("aiperf", "aiperf JSON", "results.aiperf:export", ("input_config",),
               ("aiperf_version", "schema_version", "was_cancelled", "input_config.loadgen")),
    JsonFormat("genai-perf", "genai-perf JSON", "results.aiperf:export", ("input_config", "request_latency"),
               ("input_config.perf_analyzer", "input_config.service_kind")),
    JsonFormat("aiperf", "aiperf JSON", "results.aiperf:export", ("input_config", "output_token_throughput_per_user")),
    JsonFormat("genai-perf", "genai-perf JSON", "results.aiperf:export", ("input_config", "request_latency")),
    JsonFormat("trtllm-bench", "trtllm-bench report", "results.trtllm:report", ("engine", "world_info", "performance")),
    JsonFormat("sglang-bench-serving", "SGLang bench_serving", "results.sglang:serving",
               ("total_output_tokens_retokenized",)),
    JsonFormat("sglang-server-info", "SGLang /server_info", "results.sglang:server_info",
               ("model_path", "mem_fraction_static", "schedule_policy"), asks="server"),
    JsonFormat("sglang-one-batch", "SGLang bench_one_batch", "results.sglang:one_batch",
               ("prefill_latency",), ("median_decode_latency", "median_decode_throughput", "prefill_throughput")),
    JsonFormat("sglang-one-batch-server", "SGLang bench_one_batch_server", "results.sglang:one_batch_server",
               ("overall_throughput", "latency"), ("last_ttft", "batch_size")),
    JsonFormat("llama-bench", "llama-bench", "results.llama:bench", ("build_commit", "avg_ts", "n_gen")),
    JsonFormat("vllm-dashboard", "vLLM dashboard records", "results.vllm:dashboard",
               ("benchmark", "model", "metric.benchmark_values")),
    JsonFormat("inferencex", "InferenceX", "results.inferencex:agg", ("tput_per_gpu",), ("hw", "hardware")),
    JsonFormat("inferencex", "InferenceX", "results.inferencex:api", ("metrics.tput_per_gpu",), ("hw", "hardware")),
    JsonFormat("inferencex-experimental", "InferenceX experimental", "results.inferencex:experimental",
               ("model_id",), ("good_completed", "median_ttft", "median_tpot"), ("mean_ttft_ms", "median_ttft_ms")),
    JsonFormat("vllm-bench-sweep", "vllm bench sweep", "results.vllm:serve",
               ("total_token_throughput", "duration", "request_throughput", "run_number")),
    JsonFormat("vllm-bench-serve", "vllm bench serve", "results.vllm:serve",
               ("total_token_throughput", "duration", "request_throughput")),
    JsonFormat("vllm-bench-serve", "vllm bench serve", "results.vllm:serve",
               ("model_id", "duration", "request_throughput", "input_throughput", "output_throughput", "mean_ttft_ms")),
    JsonFormat("vllm-bench-serve", "vllm bench serve (pooling)", "results.vllm:serve",
               ("input_sequence_throughput", "duration")),
    JsonFormat("vllm-bench-throughput", "vllm bench throughput", "results.vllm:throughput",
               ("elapsed_time", "requests_per_second", "tokens_per_second")),
    JsonFormat("vllm-bench-latency", "vllm bench latency", "results.vllm:latency", ("avg_latency", "percentiles")),
    JsonFormat("llama-benchy", "llama-benchy", "results.benchy:report", ("latency_mode", "benchmarks.0.pp_throughput")),
    JsonFormat("longbench-v2", "LongBench v2 predictions", "results.longctx:longbench_v2",
               ("pred", "judge", "difficulty", "length"), asks="quality"),
    JsonFormat("ruler-predictions", "RULER predictions", "results.longctx:predictions",
               ("index", "pred", "outputs"), ("others", "truncation"), asks="nothing"),
    JsonFormat("model-config", "model config.json", "results.sidefile:config",
               (), ("architectures", "model_type"), ("results",), asks="nothing"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format of CSV or text: a pattern in the beginning of the file."""

    name: str
    title: str
    reader: str
    pattern: re.Pattern[str]
    asks: str = "serving"


def _text(name: str, title: str, reader: str, pattern: str, asks: str = "serving") -> TextFormat:
    return TextFormat(name, title, reader, re.compile(pattern, re.MULTILINE), asks)


_BUFFER_START = r"\A\ufeff?"
TEXT_FORMATS = (
    _text("flashinfer-benchmark", "flashinfer_benchmark CSV", "results.flashinfer:table",
          _BUFFER_START + r"routine,median_time", "kernel"),
    _text("nsys", "nsys stats cuda_gpu_kern_sum CSV", "traces:nsys",
          r"^(?=.*\bTotal Time \(ns\))(?=.*\bInstances\b).*,", "trace"),
    _text("aiperf-csv", "aiperf or genai-perf CSV", "results.aiperf:table", _BUFFER_START + r'"?Metric"?,"?avg'),
    _text("guidellm-csv", "GuideLLM CSV", "results.guidellm:table",
          _BUFFER_START + r'"?(?:Run Info|Benchmark)"?,.*(?:Timings|Request Counts|Request Latency)'),
    _text("guidellm-yaml", "GuideLLM YAML", "results.guidellm:yaml_report", r"^ *(?:- )?type_: generative_benchmark"),
    _text("vllm-bench-sweep-csv", "vllm bench sweep summary.csv", "results.tables:sweep",
          _BUFFER_START + r"(?=.*\btotal_token_throughput\b)(?=.*\brequest_throughput\b).*,"),
    _text("llama-bench-csv", "llama-bench CSV", "results.llama:table",
          _BUFFER_START + r"(?=.*\bbuild_commit\b)(?=.*\bmodel_filename\b)(?=.*\bn_gen\b)(?=.*\bavg_ts\b).*,"),
    _text("llama-bench", "llama-bench", "results.llama:lines", r'^\{"build_commit": .*"avg_ts": '),
    _text("llama-bench-markdown", "llama-bench markdown", "results.llama:markdown",
          r"^\|\s*model\s*\|\s*size\s*\|\s*params\s*\|.*\btest\s*\|\s*t/s\s*\|"),
    _text("ruler", "RULER summary.csv", "results.longctx:ruler", r"^(?:\d+,)?Tasks,.*\n(?:\d+,)?Score,", "quality"),
    _text("flashinfer-benchmark-log", "flashinfer_benchmark log", "results.flashinfer:log",
          r"^\[(?:INFO|PERF)\].*(?:FlashInfer version:|median time)|^\[VVERBOSE\] gpu_name", "kernel"),
    _text("console", "console output of vllm bench serve or SGLang bench_serving", "results.tables:console",
          r"^=+ Serving Benchmark Result =+"),
    _text("llama-benchy-markdown", "llama-benchy markdown", "results.benchy:markdown",
          r"^\|\s*model\s*\|\s*test\s*\|\s*t/s(?: \(total\))?\s*\|.*\be2e_ttft \(ms\)"),
    _text("trtllm-bench-stdout", "trtllm-bench output", "results.trtllm:stdout", r"^= PERFORMANCE OVERVIEW"),
    _text("sglang-log", "SGLang server log", "logs:sglang_log",
          r"KV Cache is allocated|max_total_num_tokens=|Load weight (?:begin|end)\.|server_args=ServerArgs\(",
          "server"),
    _text("trtllm-log", "TensorRT-LLM log", "logs:trtllm_log",
          r"\[TensorRT-LLM\]|\[TRT-LLM\]|^= ENGINE DETAILS", "server"),
    _text("nvidia-smi", "nvidia-smi output", "results.sidefile:nvidia_smi",
          r"^\| NVIDIA-SMI \d|^GPU 0: .+ \(UUID:", "nothing"),
    _text("metrics", "/metrics scrape", "logs:scrape",
          r"^(?:# (?:HELP|TYPE) )?(?:vllm|sglang)[:_]\w+[ {]|^# TYPE \w+ (?:counter|gauge|histogram)", "server"),
    _text("vllm-log", "vLLM server log", "logs:vllm_log",
          r"KV cache size: [\d,]+ tokens|vLLM API server version|LLM engine \(v\d|Available KV cache memory:"
          r"|\(EngineCore|EngineCore failed|stored in KV cache \(|# (?:GPU|CUDA|cuda) blocks: \d"
          r"|kv_cache_utils\.py|gpu_model_runner\.py|vLLM Version \d"
          r"|model weights take|worker\.py:\d+\]|Model loading took [\d.]+ G|attention backend out of potential"
          r"|LinearKernel for|NvFp4 MoE backend|vllm serve |non-default args:", "server"),
)  # fmt: skip


LONGBENCH = JsonFormat("longbench", "LongBench result.json", "results.longctx:longbench", asks="quality")
"""An object whose keys are LongBench's tasks and nothing else."""
SIDE_FILE = JsonFormat("side-file", "manifest of a run (JSON)", "results.sidefile:manifest", asks="nothing")
"""What a JSON file is taken for when no signature fits and enough of its keys are known words."""


def json_format(record: Mapping[str, Any]) -> JsonFormat | None:
    """The format of a file whose first record this is."""
    from nvdash.readers.results.longctx import is_longbench
    from nvdash.readers.results.sidefile import is_manifest

    known = next((entry for entry in JSON_FORMATS if entry.fits(record)), None)
    return known or (LONGBENCH if is_longbench(record) else SIDE_FILE if is_manifest(record) else None)


def text_format(text: str) -> TextFormat | None:
    """The format of a file that begins like this."""
    return next((entry for entry in TEXT_FORMATS if entry.pattern.search(text)), None)


def titles() -> list[str]:
    """Every format that is understood, for a refusal."""
    return list(dict.fromkeys(entry.title for entry in (*JSON_FORMATS, LONGBENCH, SIDE_FILE, *TEXT_FORMATS)))
