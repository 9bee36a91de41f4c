"""Lists the tensors of a checkpoint from headers alone: a folder, a file, a sharded index, or a Hub repository."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvdash.errors import UnknownError, UsageError
from nvdash.readers.model_files import HUB_ID, hub_answers, read_json_object
from nvdash.readers.safetensors import DTYPE_BITS, Tensor, read_header

INDEX_NAME = "model.safetensors.index.json"
MAX_SHARDS = 4096


@dataclass(frozen=True, slots=True)
class TensorList:
    """Every tensor of a checkpoint, where they were read, and what was odd about it."""

    tensors: tuple[Tensor, ...]
    source: str
    warnings: tuple[str, ...] = ()

    @property
    def stored_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.stored_bytes for tensor in self.tensors)


def list_tensors(text: str) -> TensorList:
    """The tensors of a checkpoint given as a folder, a file, an index or a Hub repository; no weight is read."""
    path = Path(text)
    if path.is_dir():
        return _of_folder(path)
    if path.is_file():
        return _of_index(path) if path.suffix == ".json" else TensorList(read_header(path), path.name)
    if HUB_ID.fullmatch(text):
        return _of_hub(text)
    wanted = "a folder, a safetensors file, an index or a Hub repository"
    raise UsageError(f"checkpoint {path.name!r}", wanted, "no such file")


def _of_folder(folder: Path) -> TensorList:
    """The index says which files belong together; without one, all files but a second copy of the whole."""
    name = folder.resolve().name
    index = next(iter(sorted(folder.glob("*.safetensors.index.json"))), folder / INDEX_NAME)
    if index.is_file():
        return _of_index(index)
    files = sorted(folder.glob("*.safetensors"))
    whole = [file for file in files if file.name == "model.safetensors"] or files
    if not whole:
        raise UnknownError(f"checkpoint {name!r}", "safetensors files", "found none", "other formats are not read")
    return TensorList(_merged([read_header(file) for file in whole], name), name)


def _of_index(path: Path) -> TensorList:
    """The shards an index names; every tensor must be in the file the index says."""
    content = read_json_object(path)
    shards = _shards(content, path.name)
    found: list[Iterable[Tensor]] = []
    for shard, names in sorted(shards.items()):
        tensors = read_header(path.parent / shard)
        missing = names - {tensor.name for tensor in tensors}
        if missing:
            raise UsageError(f"{path.name} {shard}", f"the tensor {min(missing)[:120]}", "the file does not hold it")
        found.append(tensors)
    tensors = _merged(found, path.name)
    return TensorList(tensors, path.resolve().parent.name, tuple(_size_warning(content, tensors)))


def _shards(content: Mapping[str, Any], where: str) -> dict[str, set[str]]:
    placed = content.get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(isinstance(file, str) for file in placed.values()):
        raise UsageError(where, "a weight_map from tensors to files", "found none")
    shards: dict[str, set[str]] = {}
    for name, file in placed.items():
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise UsageError(f"{where} {name[:120]}", "the plain name of a .safetensors file", f"found {file[:120]!r}")
        shards.setdefault(file, set()).add(name)
    if len(shards) > MAX_SHARDS:
        raise UsageError(where, f"at most {MAX_SHARDS} shards", f"found {len(shards)}")
    return shards


def _size_warning(content: Mapping[str, Any], tensors: Iterable[Tensor]) -> Iterable[str]:
    metadata = content.get("metadata")
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    real = sum(tensor.stored_bytes for tensor in tensors)
    if isinstance(stated, int | float) and stated != real:
        yield f"the index states {int(stated):,} bytes, the headers add up to {real:,}"


def _merged(files: Iterable[Iterable[Tensor]], where: str) -> tuple[Tensor, ...]:
    """The tensors of all files; one name in two files is refused."""
    by_name: dict[str, Tensor] = {}
    for tensor in (tensor for file in files for tensor in file):
        if tensor.name in by_name:
            raise UsageError(f"{where} {tensor.name[:120]}", "each tensor in one file", "found it in two")
        by_name[tensor.name] = tensor
    return tuple(by_name.values())


def _of_hub(repository: str) -> TensorList:
    """The tensors of a Hub repository, from the headers it serves; no weights are downloaded."""
    where, hint = f"checkpoint {repository!r}", "give the folder of a downloaded copy"
    if not hub_answers():
        raise UnknownError(where, "an answer of the Hugging Face Hub", "it cannot be reached", hint)
    from huggingface_hub import get_safetensors_metadata

    try:
        metadata = get_safetensors_metadata(repository)
    except Exception as error:  # the client passes on errors of several libraries
        found = f"the Hub gave no safetensors metadata ({type(error).__name__})"
        raise UnknownError(where, "a repository with safetensors", found) from error
    files = [[_of_metadata(*item) for item in file.tensors.items()] for file in metadata.files_metadata.values()]
    return TensorList(_merged(files, repository), repository)


def _of_metadata(name: str, info: Any) -> Tensor:
    """A tensor as the Hub client describes it, held to the same rule as a header of our own."""
    begin, end = info.data_offsets
    if info.dtype not in DTYPE_BITS or not 0 <= begin <= end:
        found = f"found {info.dtype} {begin}-{end}"
        raise UsageError(f"tensor {name[:120]}", "a known dtype and rising offsets", found)
    return Tensor(name, info.dtype, tuple(info.shape), end - begin)
