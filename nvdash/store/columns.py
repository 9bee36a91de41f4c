"""The columns of the wide row: which values have one, and what each is for.

A run's named values live in one wide row, so that a question reads columns and nothing else. Names, units and ranges
are those of `readers.fields`; a value without a column goes to the long side table `extras`. `migrations/` creates
exactly these columns, and a test compares the two.
"""

from dataclasses import dataclass

from nvdash.readers.fields import FIELDS, LATENCIES, Field

TYPES = {"text": "VARCHAR", "flag": "BOOLEAN", "count": "BIGINT"}
UNITS_IN_NAMES = ("_ms", "_s", "_rps", "_tok_s", "_gib", "_pct", "_bytes", "_us")
OWN_FIELDS = (
    Field("model_base", "Model base (its original, unquantised model)", "text", control=True),
    Field("cache_verdict", "Whether the observed cache is the requested one", "text", control=True),
    Field("kv_bytes_per_token", "KV cache bytes per token, observed", "measure", "bytes"),
    Field("admitted_sequences", "Sequences admitted at once", "measure", "sequences"),
)
"""What the store adds to what a file states: resolved from the catalogue, from a server's log, or typed."""
KNOWN = {**FIELDS, **{field.name: field for field in OWN_FIELDS}}

FACTS = (
    "kind phase format model tokenizer label tag backend quantization flashinfer_version driver started_at run_number"
    " routine strategy streaming model_type"
)
CONTROLS = (
    "model_base gpu gpu_count tp pp dp ep dcp dp_attention framework version weight_format kv_cache_dtype_requested"
    " kv_cache_dtype_resolved cache_verdict kv_dtype_k kv_dtype_v attention_backend attention_backend_prefill"
    " attention_backend_decode moe_backend max_num_seqs max_num_batched_tokens max_running_requests"
    " chunked_prefill_size max_prefill_tokens max_batch_size max_num_tokens scheduling_policy enable_chunked_prefill"
    " enable_prefix_caching radix_cache_enabled prefix_cache_state gpu_memory_utilization mem_fraction_static"
    " kv_memory_percent max_model_len block_size cuda_graphs spec_method num_speculative_tokens workload dataset"
    " isl_target osl_target max_concurrency request_rate_rps num_prompts batch_size n_prompt n_gen n_depth"
)
OBSERVED = "running_avg preemptions prefix_hit_rate"
METRICS = (
    "duration_s requests_completed requests_failed request_throughput_rps output_tok_s input_tok_s total_tok_s"
    " prefill_tok_s decode_tok_s output_tok_s_per_user output_tok_s_per_gpu peak_output_tok_s input_tokens_total"
    " output_tokens_total isl_mean osl_mean peak_concurrent_requests mean_concurrency median_ms"
    " spec_decode_acceptance_rate_pct spec_decode_acceptance_length kv_tokens kv_bytes_per_token num_blocks weights_gib"
    " model_bytes kv_allocated_gib available_kv_gib cuda_graph_gib admitted_sequences kv_usage_max waiting_avg "
    + " ".join(f"{name}_{point}_ms" for name in LATENCIES for point in ("mean", "p50", "p90", "p95", "p99"))
)
STATE = (
    *(("run_id", "VARCHAR"), ("submitted_at", "TIMESTAMP"), ("withdrawn_at", "TIMESTAMP"), ("source", "VARCHAR")),
    *(("warnings", "VARCHAR"), ("provenance", "VARCHAR")),
)
"""What the store itself says of a row; `warnings` and `provenance` hold JSON, times are UTC."""


@dataclass(frozen=True, slots=True)
class Column:
    """One value of the wide row."""

    name: str
    type: str
    role: str
    """`state`, `fact`, `control` (must be equal to compare), `observed` (a control only the run can tell), `metric`."""
    unit: str = ""
    label: str = ""

    @property
    def header(self) -> str:
        """The name in an exported file, with its unit unless the name ends in it."""
        shown = self.unit and not self.name.endswith(UNITS_IN_NAMES)
        return f"{self.name} [{self.unit}]" if shown else self.name


def _named(role: str, names: str) -> list[Column]:
    fields = [KNOWN.get(name) or Field(name, name, "text") for name in names.split()]
    return [Column(f.name, TYPES.get(f.kind, "DOUBLE"), role, f.unit, f.label) for f in fields]


BY_ROLE = {"fact": FACTS, "control": CONTROLS, "observed": OBSERVED, "metric": METRICS}
VALUES = tuple(column for role, words in BY_ROLE.items() for column in _named(role, words))
COLUMNS = (*(Column(name, kind, "state") for name, kind in STATE), *VALUES)
BY_NAME = {column.name: column for column in COLUMNS}
VALUE_NAMES = frozenset(column.name for column in VALUES)


def names(role: str) -> tuple[str, ...]:
    """The columns of one role, in order."""
    return tuple(column.name for column in COLUMNS if column.role == role)
