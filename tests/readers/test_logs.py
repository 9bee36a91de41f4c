"""Server logs of every era and keeper: messages written by hand in the wording of the releases, with our "
"own numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.readers.bundle import read_file
from nvdash.readers.logs import sglang, trtllm, vllm

V1 = """\
(APIServer pid=1) INFO 11-01 10:00:00 [api_server.py:1] vLLM API server version 0.33.0
(APIServer pid=1) INFO 11-01 10:00:00 [utils.py:1] non-default args: {'model': '/models/weights', 'served_model_name': \
['nvidia/Qwen3-32B-NVFP4'], 'tensor_parallel_size': 2, 'kv_cache_dtype': 'nvfp4', 'max_num_seqs': 64, \
'gpu_memory_utilization': 0.85, 'enable_prefix_caching': False}
(EngineCore pid=2) INFO 11-01 10:00:10 [cuda.py:1] Using FLASHINFER attention backend out of potential backends: \
['FLASHINFER', 'TRITON_ATTN'].
(EngineCore pid=2) INFO 11-01 10:00:11 [flashinfer.py:1] FlashInfer resolved query dtypes: prefill=torch.bfloat16, \
decode=torch.bfloat16, decode_backend=flashinfer-native, kv_cache_dtype=nvfp4, arch=sm120
(Worker_TP0 pid=3) INFO 11-01 10:00:20 [gpu_model_runner.py:1] Model loading took 9.5 GiB memory and 20.000000 seconds
(Worker_TP0 pid=3) INFO 11-01 10:00:30 [gpu_worker.py:1] Available KV cache memory: 10.25 GiB
(EngineCore pid=2) INFO 11-01 10:00:31 [kv_cache_utils.py:1] GPU KV cache size: 152,880 tokens, Maximum concurrency \
for 32,768 tokens per request: 4.67x
(Worker_TP0 pid=3) INFO 11-01 10:00:40 [gpu_model_runner.py:1] Graph capturing finished in 8 secs, took 0.51 GiB
"""
SIZES = {"kv_tokens": 152_880, "max_model_len": 32_768, "max_concurrency": 4.67, "available_kv_gib": 10.25}


def facts(tmp_path, text: str) -> dict:
    path = tmp_path / "server.log"
    path.write_text(text)
    reading = read_file(path)
    assert reading.error is None, reading.error
    return dict(reading.server)


def holds(found: dict, expected: dict) -> None:
    assert {name: found.get(name) for name in expected} == expected


def test_a_log_of_today_states_requested_resolved_and_sizes(tmp_path):
    found = facts(tmp_path, V1)
    holds(found, SIZES)
    holds(
        found,
        {
            "framework": "vllm",
            "version": "0.33.0",
            "model": "nvidia/Qwen3-32B-NVFP4",
            "tp": 2,
            "kv_cache_dtype_requested": "nvfp4",
            "kv_cache_dtype_resolved": "nvfp4",
            "attention_backend": "FLASHINFER",
            "decode_path": "flashinfer-native",
            "arch": "sm120",
            "weights_gib": 9.5,
            "cuda_graph_gib": 0.51,
            "cuda_graph_estimated_gib": None,
            "enable_prefix_caching": False,
            "kv_tokens_rule": "concurrency",
            "status": "ok",
        },
    )


def colour(text: str) -> str:
    return "\n".join(f"\x1b[0;36m{line[:14]}\x1b[0;0m{line[14:]}" for line in text.splitlines())


def compose(text: str) -> str:
    other = "reranker  | (APIServer pid=1) INFO 11-01 10:00:31 [x.py:1] Available KV cache memory: 1.0 GiB"
    return "\n".join(f"llm       | {line}\n{other}" for line in text.splitlines())


def docker_json(text: str) -> str:
    import json

    return "\n".join(json.dumps({"log": line + "\n", "stream": "stderr"}) for line in text.splitlines())


def logfmt(text: str) -> str:
    return "\n".join(f'time="2026-11-01" level=info msg="{line}"' for line in text.splitlines())


def kubernetes(text: str) -> str:
    return "\n".join(f"2026-11-01T10:00:00.123456789Z {line}" for line in text.splitlines())


def journal(text: str) -> str:
    return "\n".join(f"Nov 01 10:00:00 node7 vllm[99]: {line}" for line in text.splitlines())


def wrapped(text: str) -> str:
    pieces = [line[start : start + 100] for line in text.splitlines() for start in range(0, len(line), 100)]
    return "\n".join(pieces)


def windows(text: str) -> str:
    return text.replace("\n", "\r\n")


def progress(text: str) -> str:
    bar = "Capturing CUDA graphs:  78%|██████  | 21/27 [01:25<01:03, 10.60s/it]"
    return "\n".join(bar + line if line.startswith("(EngineCore") else line for line in text.splitlines())


@pytest.mark.parametrize(
    "keeper",
    [colour, compose, docker_json, logfmt, kubernetes, journal, wrapped, windows, progress],
    ids=lambda f: f.__name__,
)
def test_whoever_kept_the_log_the_sizes_are_the_same(tmp_path, keeper):
    holds(facts(tmp_path, keeper(V1)), {**SIZES, "weights_gib": 9.5, "tp": 2, "status": "ok"})


VLLM = [
    (
        "V1 of early 2025: blocks, no bracket around the place",
        "INFO 02-13 15:01:40 kv_cache_utils.py:407] # GPU blocks: 33660\n"
        "INFO 02-13 15:01:40 kv_cache_utils.py:410] Maximum concurrency for 4096 tokens per request: 131.48x\n",
        {"num_blocks": 33_660, "block_size": 16, "kv_tokens": 538_560, "status": "ok"},
    ),
    (
        "V0: capital letters and a CPU pool",
        "INFO 01-01 10:00:00 llm_engine.py:161] Initializing an LLM engine (v0.5.3) with config: model='org/m', "
        "tensor_parallel_size=4, kv_cache_dtype=fp8\n"
        "INFO 01-01 10:00:01 selector.py:51] Using XFormers backend.\n"
        "INFO 01-01 10:00:02 model_runner.py:680] Loading model weights took 12.5 GB\n"
        "INFO 01-01 10:00:03 gpu_executor.py:102] # GPU blocks: 2048, # CPU blocks: 512\n",
        {
            "version": "0.5.3",
            "model": "org/m",
            "tp": 4,
            "weights_gib": 12.5,
            "num_blocks": 2048,
            "cpu_blocks": 512,
            "kv_tokens": None,
            "attention_backend": "XFORMERS",
            "kv_cache_dtype_resolved": "fp8",
        },
    ),
    (
        "the summary after start-up, with weights of its own rounding",
        "(Worker_TP0_EP0 pid=1) INFO 09-24 20:54:35 [gpu_worker.py:391] Free memory on device "
        "(43.93/44.42 GiB) on startup. "
        "Desired GPU memory utilization is (0.9, 39.98 GiB). Actual usage is 27.72 GiB for weight, 1.4 "
        "GiB for peak activation, "
        "0.21 GiB for non-torch memory, and 3.45 GiB for CUDAGraph memory.\n"
        "(EngineCore pid=2) INFO 09-24 20:53:41 [kv_cache_utils.py:864] GPU KV cache size: 238,208 tokens\n",
        {
            "gpu_total_gib": 44.42,
            "gpu_memory_utilization": 0.9,
            "requested_gib": 39.98,
            "weights_gib": 27.72,
            "peak_activation_gib": 1.4,
            "non_torch_gib": 0.21,
            "cuda_graph_gib": 3.45,
            "kv_tokens": 238_208,
        },
    ),
    (
        "several ranks: the smallest pool counts, weights are not added",
        "(Worker_TP0 pid=1) INFO 1-1 [w.py:1] Model loading took 7.0 GiB memory and 1.0 seconds\n"
        "(Worker_TP1 pid=2) INFO 1-1 [w.py:1] Model loading took 7.5 GiB memory and 1.0 seconds\n"
        "(Worker_TP0 pid=1) INFO 1-1 [w.py:1] Available KV cache memory: 4.8 GiB\n"
        "(Worker_TP1 pid=2) INFO 1-1 [w.py:1] Available KV cache memory: 4.2 GiB\n"
        "(EngineCore pid=3) INFO 1-1 [kv_cache_utils.py:9] GPU KV cache size: 335,360 tokens\n"
        "(EngineCore pid=3) INFO 1-1 [kv_cache_utils.py:9] GPU KV cache size: 335,168 tokens\n",
        {"tp": 2, "weights_gib": 7.5, "available_kv_gib": 4.2, "kv_tokens": 335_168},
    ),
    (
        "ranks of every kind",
        "(EngineCore_DP0 pid=1) INFO 1-1 [kv_cache_utils.py:9] GPU KV cache size: 1,000 tokens\n"
        "(EngineCore_DP1 pid=2) INFO 1-1 [kv_cache_utils.py:9] GPU KV cache size: 1,000 tokens\n"
        "(Worker_PP0_TP1_DCP1 pid=3) INFO 1-1 [w.py:1] x\n(Worker_PP1_TP0_DCP0 pid=4) INFO 1-1 [w.py:1] x\n",
        {"dp": 2, "pp": 2, "tp": 2, "dcp": 2},
    ),
    (
        "a request longer than the cache",
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can "
        "be stored in KV cache "
        "(13312). Try increasing `gpu_memory_utilization`. EngineCore\n",
        {
            "status": "failed",
            "max_model_len": 32_768,
            "kv_tokens": 13_312,
            "failure": "one request is longer than the cache",
        },
    ),
    (
        "a backend that was refused",
        "(EngineCore pid=1) ERROR 1-1 [core.py:1] ValueError: Selected backend "
        "AttentionBackendEnum.FLASHINFER is not valid for "
        "this configuration. Reason: ['kv_cache_dtype not supported']\n(EngineCore pid=1) ERROR 1-1 "
        "EngineCore failed to start.\n",
        {"status": "failed", "failure": "the attention backend was refused", "attention_backend": None},
    ),
    (
        "notices that name a version are no version",
        "(Worker pid=1) INFO 1-1 [gpu_worker.py:1] In v0.19, CUDA graph memory profiling will be enabled by default\n"
        "(Worker pid=1) INFO 1-1 [gpu_worker.py:1] Available KV cache memory: -0.75 GiB\n"
        "(EngineCore pid=2) INFO 1-1 [kv_cache_utils.py:1] Overriding num_gpu_blocks=0 with "
        "num_gpu_blocks_override=512\n",
        {"version": None, "available_kv_gib": -0.75, "num_blocks": None, "kv_tokens": None},
    ),
    (
        "an MLA model whose fp8 is a record of its own",
        "(APIServer pid=1) INFO 1-1 [cache.py:1] Using fp8 data type to store kv cache. It reduces\n"
        "(EngineCore pid=1) INFO 1-1 [a.py:1] Using DeepSeek's fp8_ds_mla KV cache format. To use\n"
        "(EngineCore pid=1) INFO 1-1 [s.py:1] Using FLASH_ATTN MLA prefill backend.\n"
        "(EngineCore pid=1) INFO 1-1 [c.py:1] Using AttentionBackendEnum.FLASHMLA_SPARSE backend.\n"
        "(EngineCore pid=1) INFO 1-1 [m.py:1] Using 'MARLIN' NvFp4 MoE backend out of potential backends: "
        "['MARLIN'].\n",
        {
            "kv_cache_dtype_resolved": "fp8_ds_mla",
            "mla_prefill_backend": "FLASH_ATTN",
            "attention_backend": "FLASHMLA_SPARSE",
            "moe_backend": "MARLIN",
        },
    ),
    (
        "load while it serves",
        "INFO 1-1 [loggers.py:1] Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg generation "
        "throughput: 9.0 tokens/s, "
        "Running: 12 reqs, Waiting: 3 reqs, GPU KV cache usage: 62.5%, Prefix cache hit rate: 25.0%\n"
        "INFO 1-1 [loggers.py:1] Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg generation "
        "throughput: 9.0 tokens/s, "
        "Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 10.0%, Prefix cache hit rate: 30.0%\n"
        "(EngineCore pid=2) INFO 1-1 [kv_cache_utils.py:1] GPU KV cache size: 1,000 tokens\n",
        {"running_max": 12, "waiting_max": 3, "kv_usage_max": 0.625, "prefix_hit_rate": 0.3},
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in VLLM], ids=[row[0] for row in VLLM])
def test_vllm_wordings(tmp_path, text, expected):
    holds(facts(tmp_path, text), expected)


def test_of_two_starts_in_one_log_the_last_one_counts(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(V1.replace("152,880", "99,999") + V1)
    reading = read_file(path)
    assert reading.server["kv_tokens"] == 152_880
    assert [warning.code for warning in reading.warnings] == ["restarts"]


def test_a_json_preamble_does_not_hide_a_log(tmp_path):
    audit = '{\n  "cuda_device": "NVIDIA GB10",\n  "imports": {"vllm._C": "ok"}\n}\nAUDIT PASS\n'
    holds(facts(tmp_path, audit + V1), SIZES)


def test_a_start_after_a_failed_one_counts(tmp_path):
    failed = (
        "(APIServer pid=1) INFO 11-01 09:00:00 [api_server.py:1] vLLM API server version 0.33.0\n"
        "(EngineCore pid=2) ERROR 11-01 09:00:09 [core.py:1] ValueError: Free memory on device (13.58/15.99 GiB) on "
        "startup is less than desired GPU memory utilization (0.85, 13.59 GiB).\n"
    )
    found = facts(tmp_path, failed + V1)
    holds(found, {**SIZES, "status": "ok", "failure": None, "server_starts": 2})


def test_the_engines_own_step_outranks_an_earlier_default(tmp_path):
    found = facts(
        tmp_path,
        "INFO 1-1 [scheduler.py:1] Chunked prefill is enabled with max_num_batched_tokens=2048.\n"
        "INFO 1-1 [core.py:1] Initializing a V1 LLM engine (v0.25.1) with config: model='a/b', "
        "compilation_config={'compile_ranges_endpoints': [364, 8192], 'inductor_passes': {}}\n"
        "INFO 1-1 [kv_cache_utils.py:1] GPU KV cache size: 1,000 tokens\n",
    )
    assert found["max_num_batched_tokens"] == 8192


DRAFTERS = [
    (
        "an option without a value names no model, and a tool is no backend",
        "!vllm serve --model \\\nINFO 1-1 [x.py:1] Using CLI backend\nUsing CLI attention backend: FLASHINFER\n"
        "INFO 1-1 [core.py:1] Initializing a V1 LLM engine (v0.9.2) with config: model='a/Target', dtype=x\n",
        {"model": "a/Target", "attention_backend": None},
    ),
    (
        "a drafter's class is not the architecture that is served",
        "INFO 1-1 [model.py:1] Resolved architecture: DFlashDraftModel\n"
        "INFO 1-1 [model.py:1] Resolved architecture: Qwen3ForCausalLM\n",
        {"architecture": "Qwen3ForCausalLM"},
    ),
    (
        "the method comes first in the user's settings",
        "INFO 1-1 [utils.py:1] non-default args: {'model': 'a/Target', 'speculative_config': {'method': 'mtp', "
        "'num_speculative_tokens': 3}}\n",
        {"model": "a/Target", "spec_method": "mtp", "num_speculative_tokens": 3, "draft_model": None},
    ),
    (
        "only the engine names the method; the drafter is not the model",
        "INFO 1-1 [utils.py:1] non-default args: {'speculative_config': {'model': 'a/Drafter', "
        "'num_speculative_tokens': 15}, 'model': 'a/Target'}\n"
        "INFO 1-1 [core.py:1] Initializing a V1 LLM engine (v0.25.1) with config: model='a/Target', "
        "speculative_config=SpeculativeConfig(method='dflash', model='a/Drafter', num_spec_tokens=15), "
        "kv_cache_dtype=auto\n",
        {"model": "a/Target", "spec_method": "dflash", "num_speculative_tokens": 15, "draft_model": "a/Drafter"},
    ),
    (
        "a command line in JSON, the drafter a folder",
        "Launching vLLM with: --model a/Target --speculative-config "
        '\'{"method": "eagle3", "model": "/data/drafters/x", "num_speculative_tokens": 2}\' --port 1\n',
        {"model": "a/Target", "spec_method": "eagle3", "num_speculative_tokens": 2, "draft_model": "x"},
    ),
    (
        "prediction layers of the target are no other model",
        "INFO 1-1 [core.py:1] Initializing a V1 LLM engine (v0.24.1) with config: model='/models/model', "
        "speculative_config=SpeculativeConfig(method='mtp', model='/models/model', num_spec_tokens=2), "
        "kv_cache_dtype=auto\n",
        {"spec_method": "mtp", "num_speculative_tokens": 2, "draft_model": None},
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in DRAFTERS], ids=[row[0] for row in DRAFTERS])
def test_vllm_drafters(tmp_path, text, expected):
    holds(facts(tmp_path, text + "INFO 1-1 [kv_cache_utils.py:1] GPU KV cache size: 1,000 tokens\n"), expected)


SGLANG = [
    (
        "a drafter after the target, its usage negative",
        "[2026-08-28 21:32:39 TP0] Load weight begin. avail mem=111.9 GB\n"
        "[2026-08-28 21:32:39 TP0] Load weight end. elapsed=7.5 s, type=TargetForCausalLM, "
        "quant=modelopt_fp4, quant_algo=NVFP4, "
        "avail mem=29.01 GB, mem usage=82.97 GB.\n"
        "[2026-08-28 21:34:13 TP0] Load weight end. elapsed=9.4 s, type=TargetMTP, quant=modelopt_fp4, "
        "quant_algo=NVFP4, "
        "avail mem=30.67 GB, mem usage=-1.86 GB.\n"
        "[2026-08-28 21:34:15 TP0] KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 159552, K "
        "size: 1.83 GB, V size: 1.83 GB\n",
        {
            "weights_gib": 82.97,
            "draft_weights_gib": -1.86,
            "weight_format": "nvfp4",
            "quantization": "modelopt_fp4",
            "architecture": "TargetForCausalLM",
            "kv_cache_dtype_resolved": "fp8_e4m3",
            "kv_allocated_gib": 3.66,
            "kv_tokens": 159_552,
        },
    ),
    (
        "a hybrid with a state pool",
        "[2026-09-09 11:57:18] Mamba Cache is allocated. max_mamba_cache_size: 48, conv_state size: "
        "0.09GB, ssm_state size: 6.46GB\n"
        "[2026-09-09 11:57:18] KV Cache is allocated. #tokens: 2618868, K size: 19.98 GB, V size: 19.98 GB\n"
        "[2026-09-09 11:57:27] max_total_num_tokens=2618868, max_running_requests=48, context_len=16384\n",
        {"state_gib": 6.55, "kv_tokens": 2_618_868, "kv_allocated_gib": 39.96, "observed": None, "context_len": 16_384},
    ),
    (
        "two pools: full attention and sliding window",
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 56320, K size: 5.40 GB, V size: 5.40 GB\n"
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 70656, K size: 0.68 GB, V size: 0.68 GB\n"
        "max_total_num_tokens=56320, context_len=8192\n",
        {
            "kv_tokens": 56_320,
            "kv_allocated_gib": 10.8,
            "observed": None,
            "pools": [{"kv_tokens": 56_320, "gib": 10.8}, {"kv_tokens": 70_656, "gib": 1.36}],
        },
    ),
    (
        "the FP4 recipe stands only in a warning",
        "[2026-10-01 10:00:00] server_args=ServerArgs(model_path='/data/m', kv_cache_dtype='nvfp4', "
        "attention_backend='flashinfer', tp_size=2)\n"
        "[2026-10-01 10:00:01] NVFP4 KV Cache might lead to an accuracy drop!\n"
        "[2026-10-01 10:00:02] KV Cache is allocated. dtype: torch.float4_e2m1fn_x2, #tokens: 1000000, K "
        "size: 4.50 GB, V size: 4.50 GB\n",
        {
            "kv_cache_dtype_requested": "nvfp4",
            "kv_cache_dtype_resolved": "nvfp4",
            "attention_backend": "flashinfer",
            "tp": 2,
            "model": "m",
        },
    ),
    (
        "a log that ends before the last line knows the full-attention pool all the same",
        "[2026-08-01 23:39:56] Use sliding window memory pool. full_layer_tokens=185897, swa_layer_tokens=148717\n"
        "[2026-08-01 23:40:01] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 148717, K size: 10.21 GB, "
        "V size: 10.21 GB\n"
        "[2026-08-01 23:40:01] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 185897, K size: 4.25 GB, "
        "V size: 4.25 GB\n",
        {"kv_tokens": 185_897, "kv_allocated_gib": 8.5},
    ),
    (
        "an older release names the one FP4 recipe it had",
        "[2026-06-08 04:18:16] FP4 (E2M1) KV Cache might lead to a accuracy drop!\n"
        "[2026-06-08 04:18:18] KV Cache is allocated. dtype: torch.float4_e2m1fn_x2, #tokens: 5519481, K size: "
        "20.73 GB, V size: 20.73 GB\n",
        {"kv_cache_dtype_resolved": "fp4_e2m1"},
    ),
    (
        "a second start in one log",
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='a/One', tp_size=1)\n"
        "[2026-01-01 10:00:09] KV Cache is allocated. #tokens: 900, K size: 1.00 GB, V size: 1.00 GB\n"
        "[2026-01-01 10:00:19] max_total_num_tokens=900, context_len=8192\n"
        "[2026-01-01 11:00:00] server_args=ServerArgs(model_path='a/Two', tp_size=2, page_size=64)\n"
        "[2026-01-01 11:00:09] KV Cache is allocated. #tokens: 1920, K size: 2.00 GB, V size: 2.00 GB\n"
        "[2026-01-01 11:00:19] max_total_num_tokens=1920, context_len=4096\n",
        {
            "model": "a/Two",
            "tp": 2,
            "kv_tokens": 1920,
            "kv_allocated_gib": 4.0,
            "context_len": 4096,
            "block_size": 64,
            "server_starts": 2,
        },
    ),
    (
        "sizing after the graphs",
        "[2026-10-01 10:00:00] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 900, KV size: 1.00 GB\n"
        "[2026-10-01 10:00:09] Post-capture KV sizing: KV cache allocated. #tokens: 800\n",
        {"kv_tokens": 800},
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in SGLANG], ids=[row[0] for row in SGLANG])
def test_sglang_wordings(tmp_path, text, expected):
    holds(facts(tmp_path, text), expected)


@pytest.mark.parametrize("prefix", ["vllm-7d9f sglang ", "Nov 30 06:14:25 gpu-host sglang[1234]: ", "0: "])
def test_a_prefix_on_every_line_hides_no_new_message(tmp_path, prefix):
    stamp = "[2026-01-04 07:28:05 TP0] "
    lines = [
        f"{stamp}Using KV cache dtype: torch.bfloat16",
        f"{stamp}The available memory for KV cache is 36.68 GB.",
        f"{stamp}KV Cache is allocated. #tokens: 802688, K size: 18.38 GB, V size: 18.38 GB",
    ]
    found = facts(tmp_path, "".join(f"{prefix}{line}\n" for line in lines * 3))
    holds(found, {"kv_cache_dtype_resolved": "bfloat16", "kv_tokens": 802_688, "kv_allocated_gib": 36.76})


TRTLLM = [
    (
        "1.x: a small pool to profile in, then the real one",
        "[05/13/2026-21:26:25] [TRT-LLM] [I] Prefetching /root/.cache/huggingface/hub/models--a--Some-1B/snapshots/"
        "fe8a4ea1ffedaf415f4da2f062534de366a451e6/model.safetensors to memory...\n"
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 1.38 GiB for max tokens in paged KV cache (65536).\n"
        "[05/13/2026-21:26:27] [TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage "
        "profiling: 2.23 GiB\n"
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 39.26 GiB for max tokens in paged KV cache (1871136).\n",
        {"model": "a/Some-1B", "kv_allocated_gib": 39.26, "kv_tokens": 1_871_136},
    ),
    (
        "0.8: bytes, and the version glued to the output",
        "[TensorRT-LLM][INFO] Allocate 21705523200 bytes for k/v cache.\n[TensorRT-LLM][INFO] Using "
        "220800 tokens in paged KV cache.\n"
        '[TensorRT-LLM] TensorRT-LLM version: 0.8.0Input [Text 0]: "x"\n',
        {"version": "0.8.0", "kv_tokens": 220_800, "kv_allocated_gib": 21705523200 / 2**30},
    ),
    (
        "0.9: total tokens",
        "[TensorRT-LLM][INFO] Using 31616 total tokens in paged KV cache, and 16 blocks per sequence\n",
        {"kv_tokens": 31_616},
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in TRTLLM], ids=[row[0] for row in TRTLLM])
def test_tensorrt_llm_wordings(tmp_path, text, expected):
    holds(facts(tmp_path, text), expected)


MESSAGES = [line for row in VLLM + SGLANG + TRTLLM for line in row[1].splitlines()]


@given(st.lists(st.text(max_size=200) | st.sampled_from(MESSAGES)))
@settings(max_examples=100, deadline=None)
def test_any_messages_are_taken_in_without_an_error(messages):
    for reader in (vllm.Log, sglang.Log, trtllm.Log):
        log = reader()
        for text in messages:
            log.take(text)
        log.take(" ".join(messages))
        assert isinstance(log.facts(), dict)
