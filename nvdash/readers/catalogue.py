"""Looks up GPUs and models by the names people and drivers use for them.

The facts are `gpus.yaml` and `models.yaml` of the matrix folders; an overlay's row replaces the one of its name.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvdash.errors import UnknownError, UsageError, nearest
from nvdash.readers.compiled import compiled
from nvdash.readers.digest import matrix_roots
from nvdash.targets import GIB, Checkpoint, Gpu, Model

MIB = 2**20
RESERVED_BYTES = int(0.7 * GIB)
"""The most that the CUDA total was seen below the nvidia-smi total, rounded up."""
CAPABILITY = re.compile(r"(?:sm_?(?P<sm>\d{2,3})|(?P<major>\d{1,2})\.(?P<minor>\d))a?", re.IGNORECASE)
GFX = re.compile(r"gfx[0-9a-f]{3,5}", re.IGNORECASE)


@lru_cache(maxsize=8192)
def folded(name: str) -> str:
    """A name without case, spaces, dashes and the vendor's word, as names are compared."""
    plain = re.sub(r"[\s_-]+", "", name).casefold()
    return re.sub(r"^(nvidia|amd|tesla)(?=.)", "", re.sub(r"^(nvidia|amd)(?=.)", "", plain))


def seen_by_engines(gpu: Gpu) -> object:
    """What two products must share for a memory answer to hold for both."""
    return gpu.vendor, gpu.arch, gpu.memory_low_bytes, gpu.memory_high_bytes


def seen_by_kernels(gpu: Gpu) -> object:
    """What two products must share for a support answer to hold for both."""
    return gpu.vendor, gpu.arch


@dataclass(frozen=True)
class Catalogue:
    """Every known GPU and model, as rows; a value is built when it is asked for."""

    gpu_rows: Mapping[str, Mapping[str, Any]]
    ambiguous: Mapping[str, list[str]]
    model_rows: Mapping[str, Mapping[str, Any]]

    def gpu(self, text: str, alike: Callable[[Gpu], object] = seen_by_engines) -> Gpu:
        """The device meant by an id, a name, a driver's string, a capability or `custom:NAME:GiB:smXX`.

        A short name of several products is refused unless they are `alike`.
        """
        if text.casefold().startswith("custom:"):
            return custom_gpu(text)
        meanings = self.gpus(text)
        if not meanings:
            return self.capability(text)
        if len({alike(gpu) for gpu in meanings}) > 1:
            candidates = ", ".join(gpu.id for gpu in meanings)
            raise UsageError(f"GPU {text!r}", "one product", f"the name fits {candidates}", "name one of these ids")
        return common(meanings)

    def gpus(self, text: str) -> tuple[Gpu, ...]:
        """Every product that a name can mean, the usual meaning first; an id or a driver's string means one."""
        exact = [id_ for id_, row in self.gpu_rows.items() if text.casefold() in map(str.casefold, own_names(row))]
        if exact:
            return tuple(gpu_of(self.gpu_rows[id_]) for id_ in exact)
        wanted = folded(text)
        ids = next((ids for name, ids in self.ambiguous.items() if folded(name) == wanted), None)
        if ids is None:
            ids = [id_ for id_, row in self.gpu_rows.items() if wanted in map(folded, gpu_names(row))]
        return tuple(gpu_of(self.gpu_rows[id_]) for id_ in ids)

    def all_gpus(self) -> tuple[Gpu, ...]:
        """Every product, in the order of the files."""
        return tuple(gpu_of(row) for row in self.gpu_rows.values())

    def capability(self, text: str) -> Gpu:
        """An architecture of a product or of the matrix: kernels are known, memory is not."""
        from nvdash.readers.matrix import read_axes

        bare = architecture(text)
        known = {(row["vendor"], row["arch"]) for row in self.gpu_rows.values()}
        if bare and (bare[0] == "amd" or bare[:2] in known or bare[1] in read_axes().get("arch", {})):
            return Gpu(bare[1], bare[1], *bare)
        found = "no product has this name"
        raise UnknownError(f"GPU {text!r}", "a product of matrix/gpus.yaml", found, self.hint(text))

    def hint(self, text: str) -> str:
        """The nearest names, or how to describe a GPU that is not listed."""
        names = {name: row["name"] for row in self.gpu_rows.values() for name in gpu_names(row)}
        products = list(dict.fromkeys(names[name] for name in nearest(text, names, len(names))))[:3]
        meant = f"did you mean {', '.join(products)}? " if products else ""
        return f"{meant}any other card: custom:NAME:GiB:smXX"

    def model(self, text: str) -> Model:
        """The model meant by a catalogue name, a checkpoint's repository, a config.json, a folder or a Hub id."""
        row = self.model_row(text)
        if row is not None:
            return model_of(row, text)
        from nvdash.readers.model_files import model_from

        return model_from(text, self)

    def model_row(self, text: str) -> Mapping[str, Any] | None:
        """The row whose name, alias or checkpoint repository is `text`, or the only one with `text` behind its owner.

        Case does not matter; a base name that fits several rows, or a file or folder here, fits none.
        """
        wanted = text.casefold()
        rows = self.model_rows.values()
        whole = next((row for row in rows if wanted in map(str.casefold, model_names(row))), None)
        bare = [row for row in rows if row["name"].casefold().rpartition("/")[2] == wanted]
        return whole or (bare[0] if len(bare) == 1 and not Path(text).exists() else None)

    def all_models(self) -> tuple[Model, ...]:
        """Every model, in the order of the files."""
        return tuple(model_of(row, name) for name, row in self.model_rows.items())

    def all_model_names(self) -> list[str]:
        """Every name that `model` answers to from the catalogue."""
        return [name for row in self.model_rows.values() for name in model_names(row)]


def common(meanings: tuple[Gpu, ...]) -> Gpu:
    """The usual meaning of a name, without the figures in which the others differ."""
    first = meanings[0]
    if len({gpu.bandwidth_gbs for gpu in meanings}) > 1:
        first = replace(first, bandwidth_gbs=None)
    if len({(gpu.memory_low_bytes, gpu.memory_high_bytes) for gpu in meanings}) > 1:
        first = replace(first, memory_low_bytes=None, memory_high_bytes=None, memory_source="unknown")
    return first


def load() -> Catalogue:
    """The catalogue of the matrix folders as they are now."""
    return _load(matrix_roots())


def _load(roots: tuple[Path, ...]) -> Catalogue:
    files = [root / name for name in ("gpus.yaml", "models.yaml") for root in roots if (root / name).is_file()]
    return _of_files(tuple(files), tuple((path.stat().st_mtime_ns, path.stat().st_size) for path in files))


@lru_cache(maxsize=4)
def _of_files(files: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> Catalogue:
    return Catalogue(**compiled("catalogue", list(files), lambda: rows_of(files)))


def rows_of(files: Iterable[Path]) -> dict[str, Any]:
    """The checked rows of all files by name; a later file's row replaces an earlier one."""
    from nvdash.readers.catalogue_rows import gpu_file, model_file

    rows: dict[str, Any] = {"gpu_rows": {}, "ambiguous": {}, "model_rows": {}}
    for path in files:
        if path.name == "gpus.yaml":
            gpus, ambiguous = gpu_file(path)
            rows["gpu_rows"] |= gpus
            rows["ambiguous"] |= ambiguous
        else:
            rows["model_rows"] |= model_file(path)
    return rows


def own_names(row: Mapping[str, Any]) -> list[str]:
    """The names that belong to one product: its id, its full name, what its driver prints."""
    return [row["id"], row["name"], *row.get("device_names", ())]


def gpu_names(row: Mapping[str, Any]) -> list[str]:
    """Every name of one product, the short ones that it may share included."""
    return [*own_names(row), *row.get("aliases", ())]


def model_names(row: Mapping[str, Any]) -> list[str]:
    """Every name of one model: its own, its aliases, the repositories of its checkpoints."""
    repositories = [entry["repository"] for entry in row.get("checkpoints", ()) if entry.get("repository")]
    return [row["name"], *row.get("aliases", ()), *repositories]


def gpu_of(row: Mapping[str, Any]) -> Gpu:
    """One product as a value; the vendor's number covers all dies, an engine sees one."""
    low, high, source = total_of(row["vendor"], row.get("memory", {}))
    bandwidth = row.get("bandwidth_gbs")
    return Gpu(
        id=row["id"],
        name=row["name"],
        vendor=row["vendor"],
        arch=row["arch"],
        compute_capability=row.get("compute_capability"),
        memory_low_bytes=low,
        memory_high_bytes=high,
        memory_source=source,
        bandwidth_gbs=bandwidth / row.get("memory", {}).get("dies", 1) if bandwidth else None,
        unified_memory=row.get("memory", {}).get("unified", False),
        confidence=row["confidence"],
        unverified=tuple(row.get("recall_fields", ())),
        note=" ".join(filter(None, [row.get("conflict"), row.get("notes")])),
    )


def total_of(vendor: str, memory: Mapping[str, Any]) -> tuple[int | None, int | None, str]:
    """The total an engine multiplies, as a range with its source; None where nobody printed one."""
    engine, reported, size = memory.get("engine_mib"), memory.get("reported_mib"), memory.get("vendor_gb")
    if engine is not None:
        low, high = engine if isinstance(engine, list) else (engine, engine)
        return low * MIB, high * MIB, f"engine total: {memory['engine_source']}"
    if reported is not None and vendor == "amd":
        return reported * MIB, reported * MIB, f"device total: {memory['reported_source']}"
    if reported is not None:
        return reported * MIB - RESERVED_BYTES, reported * MIB, f"nvidia-smi total: {memory['reported_source']}"
    if size is not None:
        dies = memory.get("dies", 1)
        return int(size * 10**9 / dies), int(size * GIB / dies), "vendor"
    return None, None, "unknown"


def architecture(text: str) -> tuple[str, str, str | None] | None:
    """Vendor, architecture id and NVIDIA capability of `sm120`, `12.0` or `gfx942`; None when it is none of these."""
    if GFX.fullmatch(text):
        return "amd", text.casefold(), None
    number = CAPABILITY.fullmatch(text)
    if not number:
        return None
    major, minor = (number["sm"][:-1], number["sm"][-1]) if number["sm"] else (number["major"], number["minor"])
    return "nvidia", f"sm{major}{minor}", f"{major}.{minor}"


def custom_gpu(text: str) -> Gpu:
    """A card that no catalogue lists, from `custom:NAME:GiB:smXX`; the total is the user's."""
    parts = text.split(":")
    wanted = "custom:NAME:GiB:smXX, for example custom:lab card:47.5:sm120"
    if len(parts) != 4 or not parts[1].strip():
        raise UsageError(f"GPU {text!r}", wanted, f"found {len(parts)} parts")
    if not re.fullmatch(r"\d{1,5}(?:\.\d{1,6})?", parts[2]) or float(parts[2]) <= 0:
        raise UsageError(f"GPU {text!r}", wanted, f"found {parts[2]!r} where the GiB go")
    bare = architecture(parts[3])
    if bare is None:
        raise UsageError(f"GPU {text!r}", wanted, f"found {parts[3]!r} where the architecture goes")
    total = int(float(parts[2]) * GIB)
    return Gpu(text, parts[1], *bare, total, total, "user", confidence="user")


def model_of(row: Mapping[str, Any], asked: str) -> Model:
    """One model as a value; `asked` may be the repository of one of its checkpoints."""
    checkpoints = tuple(checkpoint_of(entry) for entry in row.get("checkpoints", ()))
    named = next((entry for entry in checkpoints if entry.repository.casefold() == asked.casefold()), None)
    return Model(
        name=row["name"],
        base=row.get("base", row["name"]),
        config=row["config"],
        checkpoints=checkpoints,
        parameters=row.get("parameters"),
        parameters_source=row.get("parameters_source", ""),
        source="catalogue",
        asked=named,
        note=row.get("notes", ""),
    )


def checkpoint_of(entry: Mapping[str, Any]) -> Checkpoint:
    """One published checkpoint as a value; a scheme that the row leaves out is unknown."""
    scheme = entry.get("kv_cache_scheme", "unknown")
    return Checkpoint(
        weights=entry["weights"],
        repository=entry.get("repository", ""),
        method=entry.get("method", ""),
        activations=entry.get("activations", ""),
        kv_cache_scheme=None if scheme in ("unknown", "none") else scheme,
        kv_cache_scheme_known=scheme != "unknown",
        wide_layers=tuple(entry.get("wide_layers", ())),
        stored_bytes=entry.get("stored_bytes"),
        source=entry.get("source", ""),
        group_size=entry.get("group_size"),
    )
