"""The same case elsewhere: a command, a Slurm line, a Kubernetes Job. Both templates are printed, never run."""

import shlex
from collections.abc import Mapping
from typing import Any

MINUTES = 20
FLAGS = (
    *("engine", "framework", "release", "gpu", "model", "head_layout", "checkpoint", "weights", "kv_cache_dtype"),
    *("backend", "prefill_backend", "decode_backend", "tp", "pp", "dcp", "sinks"),
    *("draft_method", "draft_model", "draft_tokens", "draft_kv_cache_dtype"),
)
"""Words of a question that the command has; a page's question may hold others."""
IMAGES = {"vllm": "vllm/vllm-openai:v{release}", "sglang": "lmsysorg/sglang:v{release}"}
OWN_IMAGE = "<an image with CUDA and flashinfer-python>"
"""Where no public image is known to hold the engine, the Job says what to put in."""


def command(question: Mapping[str, Any], out: str = "smoke-report.json") -> str:
    """The command line that stands for a question."""
    words = ["./run", "smoke"]
    for name, value in question.items():
        if value is not None and value is not False and name in FLAGS:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return shlex.join([*words, "--out", out])


def slurm(question: Mapping[str, Any]) -> str:
    """One srun line; the report lies in the working directory afterwards."""
    engine = str(question.get("engine") or "vllm")
    python = f"NVDASH_PYTHON_{engine.upper()}=/path/to/{engine}/bin/python"
    return f"{python} srun --gres=gpu:1 --time={MINUTES} --export=ALL {command(question)}"


def kubernetes(question: Mapping[str, Any]) -> str:
    """A Job on one GPU of the asked product; it needs this repository on a volume claim named nvdash."""
    engine, release = str(question.get("engine") or "vllm"), str(question.get("release") or "<release>")
    product = f"the node label of {question.get('gpu') or 'the GPU'}"
    script = (
        f"cd /nvdash && export NVDASH_TORCH=none NVDASH_PYTHON_{engine.upper()}=$(command -v python3) && "
        f"{command(question, 'out/smoke-report.json')}"
    )
    indented = "\n".join(f"              {line}" for line in script.split("\n"))
    return f"""apiVersion: batch/v1
kind: Job
metadata:
  name: nvdash-smoke-{engine}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {MINUTES * 60}
  template:
    spec:
      restartPolicy: Never
      # nodeSelector: {{nvidia.com/gpu.product: <{product}: kubectl get nodes -L nvidia.com/gpu.product>}}
      containers:
        - name: smoke
          image: {IMAGES.get(engine, OWN_IMAGE).format(release=release)}
          command:
            - bash
            - -c
            - |
{indented}
          resources:
            limits: {{nvidia.com/gpu: 1}}
          volumeMounts:
            - {{name: nvdash, mountPath: /nvdash}}
      volumes:
        - name: nvdash
          persistentVolumeClaim: {{claimName: nvdash}}
"""


def emitted(question: Mapping[str, Any], target: str) -> str:
    """The text for `--emit slurm` or `--emit k8s`."""
    return slurm(question) if target == "slurm" else kubernetes(question)
