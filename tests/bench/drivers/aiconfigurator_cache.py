"""Asks aiconfigurator for the cache bytes of one request on one rank. Reads a question on stdin.

Run by the Python that has aiconfigurator installed; see tests/bench/accuracy.py.
"""

import contextlib
import json
import os
import sys

QUANTISATION = {"fp8": "fp8", "fp8_ds_mla": "fp8"}


def main() -> None:
    """Print the bytes, or why there are none; whatever the library prints goes to stderr."""
    asked = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        found = answer(asked)
    print(json.dumps(found))


def answer(asked: dict[str, object]) -> dict[str, object]:
    """The library's own figure for a sequence of this length."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from aiconfigurator_core.sdk import common, config
    from aiconfigurator_core.sdk.models import get_model

    if asked["kv_cache_dtype"] == "nvfp4":
        return {"kv_bytes": None, "reason": "no such cache format"}
    mode = common.KVCacheQuantMode[QUANTISATION.get(str(asked["kv_cache_dtype"]), "bfloat16")]
    tp = int(str(asked["tp"]))
    settings = config.ModelConfig(
        tp_size=tp,
        moe_tp_size=tp,
        moe_ep_size=1,
        kvcache_quant_mode=mode,
        gemm_quant_mode=common.GEMMQuantMode.bfloat16,
        moe_quant_mode=common.MoEQuantMode.bfloat16,
        fmha_quant_mode=common.FMHAQuantMode.bfloat16,
    )
    try:
        model = get_model(str(asked["name"]), settings, "vllm")
        return {"kv_bytes": model.get_kvcache_bytes_per_sequence(int(str(asked["length"]))), "per_rank": True}
    except Exception as error:
        return {"kv_bytes": None, "reason": f"{type(error).__name__}: {str(error)[:120]}"}


if __name__ == "__main__":
    main()
