"""Which architectures the official wheel carries FP4 kernels for, as the CMake lists of a release say."""

import re
from typing import Any

from nvdash.extract.source import Tree
from nvdash.extract.values import Unknown

FILE = "CMakeLists.txt"
INTERSECTION = re.compile(r'cuda_archs_loose_intersection\(\s*(FP4\w*ARCHS)\s+"([^"]+)"')
SPEC = re.compile(r"(\d+)\.(\d)([af]?)")


def fp4_built(tree: Tree, arch: int) -> Any:
    """Whether FP4 kernels are compiled for an architecture; Unknown where it depends on the CUDA version."""
    blocks = _blocks(tree.text(FILE) if tree.has(FILE) else "")
    answers = [{_covers(specs, arch) for specs in variants} for variants in blocks]
    if any(answer == {True} for answer in answers):
        return True
    if any(True in answer for answer in answers):
        return Unknown("FP4 kernels in the wheel (they depend on its CUDA version)")
    return False if blocks else Unknown("FP4 kernels in the wheel")


def _blocks(text: str) -> list[list[str]]:
    """The architecture lists of every kernel block, one per CUDA version that the block tells apart."""
    blocks: list[list[str]] = []
    end = 0
    for found in INTERSECTION.finditer(text):
        between = text[end : found.start()]
        if blocks and "else()" in between and "if(" not in between.replace("endif(", ""):
            blocks[-1].append(found[2])
        else:
            blocks.append([found[2]])
        end = found.end()
    return blocks


def _covers(specs: str, arch: int) -> bool:
    """`12.0f` covers the family 12.x from 12.0 on, `12.0a` and `12.0` that architecture only."""
    for major, minor, suffix in SPEC.findall(specs):
        exact = int(major) * 10 + int(minor)
        if arch == exact or (suffix == "f" and arch // 10 == int(major) and arch >= exact):
            return True
    return False
