"""One word, symbol and colour per thing, for every front end.

The symbol and the word always travel together, so that nobody needs the colour.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """How a key is shown: symbol, label, the short form for grids, colour name, meaning."""

    symbol: str
    label: str
    short: str
    colour: str
    meaning: str = ""

    def __str__(self) -> str:
        return f"{self.symbol} {self.label}"


VERDICTS = {
    "validated": Word("●", "Validated", "Validated", "green", "ran on this architecture and release as requested"),
    "expected": Word("◐", "Expected", "Expected", "blue", "every layer that was read accepts it; no run of ours"),
    "conditional": Word(
        "◇", "With conditions", "Conditions", "yellow", "a limit on something the question leaves open"
    ),
    "trap": Word(
        "▲",
        "Accepted, then fails",
        "Trap",
        "orange",
        "the flag is taken, then it raises, falls back or stores something else",
    ),
    "refused": Word("✕", "Refused", "Refused", "red", "a layer refuses it up front"),
    "unknown": Word("?", "Unknown", "Unknown", "gray", "no rule, no run"),
}

SMOKE = {
    "pass": Word("●", "Pass", "Pass", "green"),
    "pass_dtype_unproven": Word("◉", "Pass, dtype not proven", "Pass, dtype?", "green"),
    "fallback": Word("↷", "Fell back", "Fell back", "orange"),
    "refused": Word("✕", "Refused", "Refused", "red"),
    "wrong_result": Word("≠", "Wrong result", "Wrong", "red"),
    "crash": Word("!", "Crash", "Crash", "red"),
    "timeout": Word("!", "Timeout", "Timeout", "gray"),
    "oom": Word("!", "Out of memory, not unsupported", "Out of memory", "gray"),
    "no_trace": Word("?", "No trace", "No trace", "gray"),
    "environment": Word("⚙", "Not set up here", "Not set up", "gray"),
    "cancelled": Word("■", "Cancelled", "Cancelled", "gray"),
}

EVIDENCE = {
    "traced": "▮▮▮▮ traced",
    "served": "▮▮▮▯ served",
    "source": "▮▮▯▯ source",
    "document": "▮▯▯▯ document",
    "report": "▮▯▯▯ report",
    "none": "▯▯▯▯ none",
}

STAGES = {"weights": "Weight GEMM", "kv_write": "Cache write", "prefill": "Prefill", "decode": "Decode"}

KERNELS = {
    "native": "native",
    "dequant": "stored narrow, computed wider",
    "emulated": "emulated",
    "unknown": "kernel kind unknown",
}

FRAMEWORKS = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}

DTYPES = {
    "auto": "auto",
    "bf16": "BF16",
    "bfloat16": "BF16",
    "float16": "FP16",
    "fp8": "FP8",
    "fp8_e4m3": "FP8 e4m3",
    "fp8_e5m2": "FP8 e5m2",
    "fp8_inc": "FP8 Gaudi",
    "fp8_ds_mla": "FP8 MLA",
    "nvfp4": "NVFP4",
    "nvfp4_4over6": "NVFP4 4/6",
    "nvfp4_ds_mla": "NVFP4 MLA",
    "fp8_per_token_head": "FP8 per token",
    "int8_per_token_head": "INT8 per token",
    "int4_per_token_head": "INT4 per token",
    "mxfp4": "MXFP4",
    "mxfp8": "MXFP8",
    "awq": "AWQ",
    "gptq": "GPTQ",
    "int8": "INT8",
    "int4": "INT4",
}


def dtype(name: str | None) -> str:
    """The friendly name of a format; an id nobody named stands for itself."""
    return "unknown" if name is None else DTYPES.get(name, name)


def gib(num_bytes: float | None, digits: int = 1) -> str:
    """Bytes as binary gibibytes, with a real minus sign."""
    return "unknown" if num_bytes is None else f"{num_bytes / 2**30:,.{digits}f} GiB".replace("-", "−")


def count(number: float | None) -> str:
    """A count in full, with separators."""
    return "unknown" if number is None else f"{number:,.0f}"


def figure(value: float) -> str:
    """A measured number with four digits; a large one in full."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"


def tokens_short(number: int) -> str:
    """A preset context size: 32,768 is 32K."""
    return f"{number // 1024}K" if number % 1024 == 0 else f"{number:,}"


def ratio(value: float | None) -> str:
    """A ratio as `1.78 ×`."""
    return "unknown" if value is None else f"{value:.2f} ×"
