"""Which model and GPU a run is of: the names people and drivers write, looked up in the catalogue without a network."""

from collections.abc import Mapping
from typing import Any


def base_of(model: str | None) -> str | None:
    """The unquantised original of a model; a name the catalogue lacks is its own base if it names a repository.

    A served alias such as `eval-model` says nothing, so two runs of it are never taken for one model.
    """
    from nvdash.readers import catalogue

    if model is None:
        return None
    row = catalogue.load().model_row(model)
    if row is not None:
        return catalogue.model_of(row, model).base
    return model if model.count("/") == 1 else None


def gpu_of(name: str | None) -> str | None:
    """The catalogue's id for a GPU; a name it lacks, or that fits several products, stays as it was written."""
    from nvdash.readers import catalogue

    if name is None:
        return None
    found = catalogue.load().gpus(name)
    return found[0].id if len(found) == 1 else name


def looked_up(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with the model's base added and the GPU under its catalogue id."""
    named = dict(values)
    if values.get("model") is not None and values.get("model_base") is None:
        named["model_base"] = base_of(str(values["model"]))
    if values.get("gpu") is not None:
        named["gpu"] = gpu_of(str(values["gpu"]))
    return {name: value for name, value in named.items() if value is not None}
