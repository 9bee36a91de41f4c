"""Reads one release of FlashInfer: what each of its attention paths does with an NVFP4, FP8 or 16-bit cache.

The paths are the join key of the matrix: a framework's row names one and is lowered by what is said of it here.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nvdash.extract import flashinfer_facts as facts_of
from nvdash.extract.findings import Fact, definition, first_line, limits
from nvdash.extract.flashinfer_facts import DECODE, FA2_KERNEL, PAGE, PREFILL, UTILS, XQA
from nvdash.extract.history import relate
from nvdash.extract.source import Tree
from nvdash.extract.statements import Atom, Reading, frozen

PACKAGE = "flashinfer"
DISPATCH = "flashinfer/data/include/flashinfer/utils.cuh"
TENSOR_CORES = ("sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm110", "sm120", "sm121")
TRTLLM_GEN = ("sm100", "sm103")
PLAIN = ("bfloat16", "float16", "fp8_e4m3", "fp8_e5m2")
FP8 = ("fp8_e4m3", "fp8_e5m2")
Place = tuple[str, int]


def read_release(root: Path, release: str) -> Reading:
    """Everything that one unpacked wheel says."""
    tree = Tree(root, release, PACKAGE)
    facts = facts_of.read(tree)
    reading = Reading(release)
    reading.facts = [fact.as_row() for fact in facts]
    Paths(tree, facts, reading).read()
    return reading


def finish(series: dict[str, list[Fact]]) -> dict[str, list[Fact]]:
    """The facts of neighbouring releases with what only they together say."""
    return relate(series)


class Paths:
    """Collects the atoms of one release, path by path."""

    def __init__(self, tree: Tree, facts: Iterable[Fact], reading: Reading) -> None:
        self.tree, self.reading = tree, reading
        self.facts = {fact.fact: fact for fact in facts}

    def read(self) -> None:
        """Every atom of the release."""
        self._append()
        self._fa2()
        self._fa3()
        self._trtllm_gen()
        self._xqa()

    def say(
        self,
        backend: str,
        verdict: str,
        stage: Iterable[str],
        archs: Iterable[str],
        dtypes: Iterable[str],
        place: Place,
        when: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """One statement, spread over architectures and cache formats."""
        said = frozen({"stage": list(stage), "verdict": verdict, **more})
        shape = frozen(limits({"backend": backend, **(when or {})}))
        for arch in archs:
            for dtype in dtypes:
                assumed = frozenset({"cuda_12_8"} if dtype == "nvfp4" else ())
                self.reading.add(Atom("paths", "support", said, shape, arch, dtype), place, assumed)

    def place(self, name: str) -> Place:
        return self.facts[name].path, self.facts[name].line or 0

    def _append(self) -> None:
        """Writing NVFP4 into a paged cache: software rounding, no guard on the architecture."""
        for name, mla in (("append.nvfp4.gqa", False), ("append.nvfp4.mla", True)):
            if name not in self.facts:
                continue
            if self.facts[name].value == "absent":
                self.say(
                    "append",
                    "refused",
                    ["kv_write"],
                    TENSOR_CORES,
                    ["nvfp4"],
                    self.place(name),
                    {"mla": mla},
                    layer="kernel",
                    reason="this release has no append that quantises to NVFP4",
                )
            else:
                shape = {} if mla else {"head_size": {"multiple_of": 16}, "equal_head_sizes": True}
                self.say(
                    "append", "expected", ["kv_write"], TENSOR_CORES, ["nvfp4"], self.place(name), {"mla": mla, **shape}
                )
        wide = definition(self.tree, PAGE, "append_paged_kv_cache")
        if wide:
            self.say("append", "expected", ["kv_write"], TENSOR_CORES, PLAIN, (PAGE, wide.lineno), {"mla": False})

    def _fa2(self) -> None:
        """The kernels of every tensor-core GPU; NVFP4 is unpacked in software below SM100."""
        sizes, place = self._dispatched()
        stages = ("prefill", "decode")
        if sizes and place:
            self.say("fa2", "expected", stages, TENSOR_CORES, PLAIN, place, {"mla": False, "head_size": sizes})
        name = "fa2.nvfp4_kv.first_version"
        if name not in self.facts:
            refusal = (FA2_KERNEL, 1)
            self.say(
                "fa2",
                "refused",
                stages,
                TENSOR_CORES,
                ["nvfp4"],
                refusal,
                {"mla": False},
                layer="kernel",
                reason="the prefill kernel has no FP4 cache type",
            )
            return
        here = self.place(name)
        tested = [size for size in sizes if 64 < size <= 256]
        self.say(
            "fa2",
            "expected",
            stages,
            TENSOR_CORES,
            ["nvfp4"],
            here,
            {"mla": False, "head_size": tested},
            kernel="dequant",
        )
        self.say(
            "fa2",
            "unknown",
            stages,
            TENSOR_CORES,
            ["nvfp4"],
            here,
            {"mla": False, "head_size": {"max": 96}},
            reason="no guard, and upstream tests no NVFP4 cache below head size 128",
        )
        self._large_heads([size for size in sizes if size > 256])

    def _dispatched(self) -> tuple[list[int], Place | None]:
        """The head sizes that the kernels are dispatched for, and where."""
        if not self.tree.has(DISPATCH):
            return [], None
        text = self.tree.text(DISPATCH)
        start = text.find("#define DISPATCH_HEAD_DIM(")
        block = text[start : text.find("default:", start)]
        return [int(n) for n in re.findall(r"case (\d+):", block)], (DISPATCH, text[:start].count("\n") + 1)

    def _large_heads(self, sizes: list[int]) -> None:
        rule = self.facts.get("fa2.nvfp4_kv.head_dim_above_256")
        if rule is None or not sizes:
            return
        for stage in ("prefill", "decode"):
            majors = _majors(rule.value[stage])
            built = [arch for arch in TENSOR_CORES if int(arch[2:]) // 10 in majors]
            self.say(
                "fa2",
                "expected",
                [stage],
                built,
                ["nvfp4"],
                self.place(rule.fact),
                {"mla": False, "head_size": sizes},
                kernel="dequant",
            )
            self.say(
                "fa2",
                "refused",
                [stage],
                [a for a in TENSOR_CORES if a not in built],
                ["nvfp4"],
                self.place(rule.fact),
                {"mla": False, "head_size": sizes},
                layer="kernel",
                reason=f"above head size 256 NVFP4 {stage} is built for compute capability {rule.value[stage]}",
            )

    def _fa3(self) -> None:
        """The Hopper kernels: an NVFP4 cache is refused by rule from 0.6.10, and has no kernel before."""
        own = first_line(self.tree, (UTILS,), r"^def is_fa3_backend_supported\(")
        stages = ("prefill", "decode")
        if "fa3.nvfp4_kv" in self.facts:
            self.say(
                "fa3",
                "refused",
                stages,
                ["sm90"],
                ["nvfp4"],
                self.place("fa3.nvfp4_kv"),
                layer="selector",
                reason="is_fa3_backend_supported refuses an NVFP4 cache",
            )
        elif own:
            self.say(
                "fa3",
                "trap",
                stages,
                ["sm90"],
                ["nvfp4"],
                (own[0], own[1]),
                layer="kernel",
                reason="is_fa3_backend_supported lets an NVFP4 cache pass, and there is no kernel for it",
            )
        if own:
            others = [arch for arch in TENSOR_CORES if arch != "sm90"]
            self.say(
                "fa3",
                "refused",
                stages,
                others,
                [*PLAIN, "nvfp4"],
                (own[0], own[1]),
                layer="selector",
                reason="FA3 kernels are for SM90 only",
            )
            self.say("fa3", "expected", stages, ["sm90"], PLAIN[:2], (own[0], own[1]), {"mla": False})
        if "fa3.fp8_kv" in self.facts:
            self.say(
                "fa3",
                "conditional",
                stages,
                ["sm90"],
                FP8,
                self.place("fa3.fp8_kv"),
                {"mla": False},
                reason="an FP8 cache needs an FP8 query; with another query auto falls to fa2",
            )

    def _trtllm_gen(self) -> None:
        """Precompiled kernels for SM100 and SM103; which head sizes exist is told by the kernel files."""
        for stage, path, function in (
            ("decode", DECODE, "trtllm_batch_decode_with_kv_cache"),
            ("prefill", PREFILL, "trtllm_batch_context_with_kv_cache"),
        ):
            node = definition(self.tree, path, function)
            if not isinstance(node, ast.FunctionDef):
                continue
            names = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
            place = (path, node.lineno)
            self.say("trtllm-gen", "expected", [stage], TRTLLM_GEN, PLAIN[:3], place, {"mla": False}, kernel="native")
            if names & {"kv_cache_sf", "kv_block_scales"}:
                self.say(
                    "trtllm-gen",
                    "expected",
                    [stage],
                    TRTLLM_GEN,
                    ["nvfp4"],
                    place,
                    {"mla": False},
                    kernel="native",
                    compute={"q": "fp8"},
                )
            else:
                self.say(
                    "trtllm-gen",
                    "refused",
                    [stage],
                    TRTLLM_GEN,
                    ["nvfp4"],
                    place,
                    {"mla": False},
                    layer="kernel",
                    reason=f"{function} takes no block scales of a cache",
                )

    def _xqa(self) -> None:
        """Decode kernels compiled on demand for SM90, SM100 and SM120."""
        majors = self.facts.get("xqa.sm_majors")
        sizes = self.facts.get("xqa.head_dim")
        if majors is None or sizes is None:
            return
        least, most, step = map(int, re.findall(r"\d+", sizes.value)[:3])
        shape = {"mla": False, "head_size": {"min": least, "max": most, "multiple_of": step}}
        built = [arch for arch in TENSOR_CORES if int(arch[2:]) // 10 in majors.value]
        rest = [arch for arch in TENSOR_CORES if arch not in built]
        self.say("xqa", "expected", ["decode"], built, PLAIN[:3], self.place(majors.fact), shape)
        self.say(
            "xqa",
            "refused",
            ["decode"],
            rest,
            [*PLAIN[:3], "nvfp4"],
            self.place(majors.fact),
            {"mla": False},
            layer="forward",
            reason="XQA is compiled for compute capability majors 9, 10 and 12 only",
        )
        guard = self.facts.get("xqa.nvfp4_kv.sm")
        if guard is None:
            self.say(
                "xqa",
                "refused",
                ["decode"],
                built,
                ["nvfp4"],
                (XQA, 1),
                {"mla": False},
                layer="kernel",
                reason="this release's XQA has no NVFP4 cache",
            )
            return
        here = self.place(guard.fact)
        self.say("xqa", "expected", ["decode"], ["sm120", "sm121"], ["nvfp4"], here, shape, kernel="native")
        self.say(
            "xqa",
            "refused",
            ["decode"],
            [a for a in built if a[2:4] != "12"],
            ["nvfp4"],
            here,
            {"mla": False},
            layer="forward",
            reason="XQA reads an NVFP4 cache on SM12x only",
        )


def _majors(text: str) -> list[int]:
    """`majors 8 to 12` or `majors 10, 11, 12` as numbers."""
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    return list(range(numbers[0], numbers[1] + 1)) if " to " in text else numbers
