"""The fields of a run: one name, one unit and one plausible range for every value a file may state.

Names follow the normal form that every reader writes. A name that is not listed here never reaches the store.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a run: its name, what a form calls it and how it may look."""

    name: str
    label: str
    kind: str
    """text, flag, count (a whole number), measure (zero or more), signed, ratio (0 to 1) or rate (may be "inf")."""
    unit: str = ""
    control: bool = False
    """Whether two runs must agree in it before their difference means anything."""


def with_unit(label: str, unit: str) -> str:
    """What a form or table calls a value: the label, and the unit unless the label says it."""
    return f"{label}, {unit}" if unit and unit not in label.replace(",", "").split() else label


LATENCIES = {
    "ttft": "Time to first token",
    "tpot": "Time per output token after the first",
    "itl": "Gap between streamed chunks",
    "e2e": "Request latency",
}
STATISTICS = ("mean", "p50", "p90", "p95", "p99", "std")

_CONTROLS = (
    Field("model", "Model (Hugging Face id)", "text", control=True),
    Field("framework", "Framework", "text", control=True),
    Field("version", "Framework version", "text", control=True),
    Field("flashinfer_version", "FlashInfer version", "text", control=True),
    Field("gpu", "GPU model", "text", control=True),
    Field("gpu_count", "Number of GPUs", "count", control=True),
    Field("tp", "Tensor parallel size", "count", control=True),
    Field("pp", "Pipeline parallel size", "count", control=True),
    Field("ep", "Expert parallel size", "count", control=True),
    Field("dp", "Data parallel size", "count", control=True),
    Field("dcp", "Decode context parallel size", "count", control=True),
    Field("dp_attention", "Data parallel attention", "flag", control=True),
    Field("weight_format", "Weight format", "text", control=True),
    Field("quantization", "Quantisation flag", "text", control=True),
    Field("kv_cache_dtype_requested", "KV-cache dtype requested", "text", control=True),
    Field("kv_cache_dtype_resolved", "KV-cache dtype in effect", "text", control=True),
    Field("kv_dtype_k", "Key cache dtype", "text", control=True),
    Field("kv_dtype_v", "Value cache dtype", "text", control=True),
    Field("attention_backend", "Attention backend", "text", control=True),
    Field("attention_backend_prefill", "Attention backend for prefill", "text", control=True),
    Field("attention_backend_decode", "Attention backend for decode", "text", control=True),
    Field("moe_backend", "MoE backend", "text", control=True),
    Field("max_num_seqs", "Maximum number of sequences", "count", control=True),
    Field("max_num_batched_tokens", "Maximum batched tokens", "count", control=True),
    Field("max_running_requests", "Maximum running requests", "count", control=True),
    Field("chunked_prefill_size", "Chunked prefill size", "signed", "tokens", control=True),
    Field("max_prefill_tokens", "Maximum prefill tokens", "count", control=True),
    Field("max_batch_size", "Maximum batch size", "count", control=True),
    Field("max_num_tokens", "Maximum tokens per step", "count", control=True),
    Field("scheduling_policy", "Scheduling policy", "text", control=True),
    Field("enable_chunked_prefill", "Chunked prefill", "flag", control=True),
    Field("enable_prefix_caching", "Prefix caching enabled", "flag", control=True),
    Field("radix_cache_enabled", "Radix cache enabled", "flag", control=True),
    Field("prefix_cache_state", "Prefix cache state (off, on-cold, on-warm)", "text", control=True),
    Field("gpu_memory_utilization", "GPU memory utilisation", "ratio", control=True),
    Field("mem_fraction_static", "Static memory fraction", "ratio", control=True),
    Field("kv_memory_percent", "Share of free memory for the KV cache", "measure", "%", control=True),
    Field("max_model_len", "Maximum model length", "count", "tokens", control=True),
    Field("spec_method", "Speculative method", "text", control=True),
    Field("num_speculative_tokens", "Draft tokens", "count", control=True),
    Field("cuda_graphs", "CUDA graphs mode", "text", control=True),
    Field("flash_attn", "Flash attention", "flag", control=True),
    Field("block_size", "Block size", "count", "tokens", control=True),
    Field("workload", "Workload name", "text", control=True),
    Field("dataset", "Dataset", "text", control=True),
    Field("data", "Data specification", "text", control=True),
    Field("isl_target", "Input length asked for", "count", "tokens", control=True),
    Field("osl_target", "Output length asked for", "count", "tokens", control=True),
    Field("max_concurrency", "Concurrency limit of the client", "count", control=True),
    Field("request_rate_rps", "Request rate offered", "rate", "requests/s", control=True),
    Field("burstiness", "Burstiness", "measure", control=True),
    Field("strategy", "Load strategy", "text", control=True),
    Field("streaming", "Streaming", "flag", control=True),
    Field("num_prompts", "Requests sent", "count", control=True),
    Field("batch_size", "Batch size", "count", control=True),
    Field("n_prompt", "Prompt tokens of the test", "count", "tokens", control=True),
    Field("n_gen", "Generated tokens of the test", "count", "tokens", control=True),
    Field("n_depth", "Tokens already in the cache", "count", "tokens", control=True),
    Field("context", "Context already in the cache", "count", "tokens", control=True),
    Field("prompt", "Prompt tokens", "count", "tokens", control=True),
    Field("response", "Response tokens", "count", "tokens", control=True),
    Field("latency_mode", "Latency correction of the client", "text", control=True),
)
_IDENTITY = (
    Field("kind", "What was measured (serving, latency, throughput, kernel, micro)", "text"),
    Field("phase", "Phase (prefill, decode, mixed)", "text"),
    Field("started_at", "Started at (local time of the client)", "text"),
    Field("tag", "Tag", "text"),
    Field("label", "Label", "text"),
    Field("tokenizer", "Tokenizer", "text"),
    Field("backend", "Client or device backend", "text"),
    Field("run_number", "Repetition", "count"),
    Field("run_index", "Index in the report", "count"),
    Field("model_type", "Model type", "text"),
    Field("model_bytes", "Checkpoint bytes", "count", "bytes"),
    Field("num_parameters", "Parameters", "count"),
    Field("driver", "Driver version", "text"),
    Field("tp_prefill", "Tensor parallel size of prefill", "count"),
    Field("tp_decode", "Tensor parallel size of decode", "count"),
    Field("num_prefill_gpus", "GPUs for prefill", "count"),
    Field("num_decode_gpus", "GPUs for decode", "count"),
    Field("disaggregated", "Prefill and decode apart", "flag"),
    Field("n_batch", "Tokens per batch", "count", "tokens"),
    Field("n_ubatch", "Tokens per physical batch", "count", "tokens"),
    Field("isl", "Input length class", "count", "tokens"),
    Field("osl", "Output length class", "count", "tokens"),
    Field("routine", "Kernel routine", "text"),
    Field("case_tag", "Case", "text"),
    Field("q_dtype", "Query dtype", "text"),
    Field("kv_dtype", "KV dtype of the kernel", "text"),
    Field("num_qo_heads", "Query heads", "count"),
    Field("num_kv_heads", "KV heads", "count"),
    Field("head_dim_qk", "Query and key head size", "count"),
    Field("head_dim_vo", "Value head size", "count"),
    Field("page_size", "Page size", "count", "tokens"),
    Field("s_qo", "Query length", "count", "tokens"),
    Field("s_kv", "KV length", "count", "tokens"),
    Field("causal", "Causal", "flag"),
    Field("random_actual_seq_len", "Lengths drawn at random", "flag"),
    Field("avg_actual_seq_len", "Mean length in fact", "measure", "tokens"),
)
_METRICS = (
    Field("duration_s", "Duration", "measure", "s"),
    Field("requests_completed", "Requests completed", "count"),
    Field("requests_failed", "Requests failed", "count"),
    Field("requests_incomplete", "Requests cut off", "count"),
    Field("request_throughput_rps", "Request throughput", "measure", "requests/s"),
    Field("request_goodput_rps", "Goodput", "measure", "requests/s"),
    Field("output_tok_s", "Output throughput", "measure", "tokens/s"),
    Field("input_tok_s", "Input throughput", "measure", "tokens/s"),
    Field("total_tok_s", "Total throughput", "measure", "tokens/s"),
    Field("output_tok_s_per_gpu", "Output throughput per GPU", "measure", "tokens/s"),
    Field("total_tok_s_per_gpu", "Total throughput per GPU", "measure", "tokens/s"),
    Field("output_tok_s_per_user", "Output throughput per user", "measure", "tokens/s"),
    Field("interactivity_p50_tok_s", "Interactivity (1/TPOT), median", "measure", "tokens/s"),
    Field("prefill_tok_s", "Prefill throughput", "measure", "tokens/s"),
    Field("decode_tok_s", "Decode throughput", "measure", "tokens/s"),
    Field("mixed_tok_s", "Throughput of prompt and generation together", "measure", "tokens/s"),
    Field("stddev", "Standard deviation of the throughput", "measure", "tokens/s"),
    Field("peak_output_tok_s", "Peak output throughput", "measure", "tokens/s"),
    Field("input_tokens_total", "Input tokens", "count", "tokens"),
    Field("output_tokens_total", "Output tokens", "count", "tokens"),
    Field("isl_mean", "Mean input length", "measure", "tokens"),
    Field("osl_mean", "Mean output length", "measure", "tokens"),
    Field("peak_concurrent_requests", "Peak concurrent requests", "count"),
    Field("mean_concurrency", "Mean concurrency reached", "measure"),
    Field("ttft_ms", "Time to first token", "measure", "ms"),
    Field("latency_ms", "Latency of one batch", "measure", "ms"),
    Field("prefill_ms", "Prefill latency of one batch", "measure", "ms"),
    Field("median_ms", "Median kernel time", "measure", "ms"),
    Field("std_ms", "Standard deviation of the kernel time", "measure", "ms"),
    Field("tflops", "Arithmetic rate", "measure", "TFLOP/s"),
    Field("tb_per_s", "Memory rate", "measure", "TB/s"),
    Field("spec_decode_acceptance_rate_pct", "Draft tokens accepted", "measure", "%"),
    Field("spec_decode_acceptance_length", "Tokens per step with drafts", "measure", "tokens"),
    Field("kv_tokens", "KV cache tokens", "count", "tokens"),
    Field("num_blocks", "KV cache blocks", "count"),
    Field("weights_gib", "Loaded weights", "measure", "GiB"),
    Field("kv_allocated_gib", "KV cache allocated", "measure", "GiB"),
    Field("available_kv_gib", "Memory available for the KV cache", "signed", "GiB"),
    Field("cuda_graph_gib", "CUDA graphs", "signed", "GiB"),
    Field("peak_activation_gib", "Activation peak", "measure", "GiB"),
    Field("non_torch_gib", "Memory outside torch", "signed", "GiB"),
    Field("cuda_graph_estimated_gib", "Set aside for CUDA graphs", "signed", "GiB"),
    Field("gpu_memory_gib", "GPU memory", "measure", "GiB"),
    Field("preemptions", "Preemptions", "count"),
    Field("prefix_hit_rate", "Prefix cache hit rate", "ratio"),
    Field("kv_usage_max", "Peak KV cache usage", "ratio"),
    Field("running_avg", "Mean running requests", "measure"),
    Field("waiting_avg", "Mean waiting requests", "measure"),
)
_DISTRIBUTIONS = tuple(
    Field(f"{latency}_{statistic}_ms", f"{label}, {statistic}", "measure", "ms")
    for latency, label in LATENCIES.items()
    for statistic in STATISTICS
)

FIELDS: dict[str, Field] = {field.name: field for field in (*_CONTROLS, *_IDENTITY, *_METRICS, *_DISTRIBUTIONS)}
"""Every field of a run by name, in the order in which a table shows them."""

ALWAYS_SHOWN = (
    "kind model framework version gpu gpu_count tp weight_format kv_cache_dtype_requested kv_cache_dtype_resolved"
    " attention_backend max_concurrency request_rate_rps requests_completed requests_failed duration_s"
    " request_throughput_rps output_tok_s total_tok_s isl_mean osl_mean"
).split() + [f"{latency}_{statistic}_ms" for latency in LATENCIES for statistic in STATISTICS[:-1]]
"""Fields that every run carries in an answer, null when the file does not state them."""
