"""What can be chosen: the models, GPUs, releases, formats and backends that the facts name."""

import re
from dataclasses import dataclass
from functools import lru_cache

from nvdash.answers.words import FRAMEWORKS
from nvdash.errors import NvdashError
from nvdash.readers import catalogue
from nvdash.readers.matrix import Matrix, framework_names
from nvdash.readers.plan_files import planned_frameworks
from nvdash.support.view import view

FIRST = ("auto", "bfloat16", "fp8", "fp8_e4m3", "nvfp4", "nvfp4_4over6")
"""The cache dtypes most people ask about; the others follow."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The options that do not depend on another choice."""

    models: tuple[str, ...]
    gpus: tuple[str, ...]
    frameworks: tuple[str, ...]
    weights: tuple[str, ...]
    planned: tuple[str, ...]
    """The frameworks that a plan can be written for."""


def choices() -> Choices:
    """Models and GPUs of the catalogues, frameworks of the selector, weight formats of the matrix."""
    known = catalogue.load()
    hidden = broken()
    served = tuple(name for name in FRAMEWORKS if name in framework_names() and name not in hidden)
    models = tuple(sorted(known.model_rows, key=str.casefold))
    return Choices(models, tuple(known.gpu_rows), served, tuple(Matrix().axes()["weights"]), planned_frameworks())


def broken() -> dict[str, NvdashError]:
    """The frameworks whose facts do not read, with what is wrong; answers about the others stand."""
    found = {}
    for name in (name for name in FRAMEWORKS if name in framework_names()):
        try:
            kv_cache_dtypes(name)
        except NvdashError as error:
            found[name] = error
    return found


def releases(framework: str) -> tuple[str, ...]:
    """Every release that the framework's file lists, newest first."""
    return tuple(release.name for release in reversed(Matrix().rules(framework).releases))


def kv_cache_dtypes(framework: str) -> tuple[str, ...]:
    """Every cache word that the framework's statements name; one that a release lacks is then refused by it."""
    named = {"auto"}
    for statement in Matrix().rules(framework).all_statements():
        limit = statement.limits.get("kv_cache_dtype")
        named |= {str(word) for word in (*(limit.any_of or ()), *limit.none_of)} if limit else set()
    return tuple(word for word in dict.fromkeys((*FIRST, *Matrix().axes()["kv_cache_dtype"])) if word in named)


def backends(framework: str, release: str) -> tuple[str, ...]:
    """The attention backends that the statements of one release name; none where it was not read."""
    rules = Matrix().rules(framework)
    found = rules.release(release)
    return tuple(view(rules, found.name).backends) if found and found.is_read else ()


@lru_cache(maxsize=256)
def gpu_label(gpu: str) -> str:
    """A GPU id with its product name and capability, as titles write it."""
    found = catalogue.load().gpu(gpu, alike=catalogue.seen_by_kernels)
    return f"{found.name} ({found.arch.upper() if found.arch.startswith('sm') else found.arch})"


SHORT_UNTIL = re.compile(r"\s+(\(|\d+ ?GB|SXM|PCIe|NVL\b|Blackwell|Generation|AGX|HGX).*")
VENDOR = re.compile(r"^(NVIDIA|AMD|Intel)\s+(GeForce|Instinct|Jetson)?\s*")


@lru_cache(maxsize=64)
def products_of(arch: str, count: int = 2) -> str:
    """The best known products of a capability, as a grid names a row."""
    rows = catalogue.load().gpu_rows.items()
    names = [str(row.get("name", key)) for key, row in rows if arch in (row.get("arch"), row.get("sm"))]
    short = dict.fromkeys(SHORT_UNTIL.sub("", VENDOR.sub("", name)) for name in names)
    return ", ".join(list(short)[:count])


def product_of(arch: str) -> str:
    """The id of the first product of a capability; an id stands for itself."""
    rows = catalogue.load().gpu_rows
    return next((key for key, row in rows.items() if row.get("sm") == arch or row.get("arch") == arch), arch)


def arch_of(gpu: str) -> str:
    """The architecture of a GPU id."""
    return catalogue.load().gpu(gpu, alike=catalogue.seen_by_kernels).arch


def arch_names() -> tuple[str, ...]:
    """Every architecture that the matrix names, oldest first."""
    return tuple(Matrix().axes()["arch"])
