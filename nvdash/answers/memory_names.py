"""Which model of the catalogue a log means: by its name, by the end of its name, or by a repackager's longer name.

A log prints a folder's base name, or the repository of whoever quantised the model. Words of format and of training do
not change the layers, so a name that differs in nothing else is taken for its base, and a note says so.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nvdash.errors import UnknownError, UsageError
from nvdash.readers import catalogue

NAME_IT = "name the model that was served: --model, or the list beside the file on the page"
FORMAT_WORDS = re.compile(
    r"(awq|gptq|autoround|quantized|quant|marlin|modelopt|compressed|tensors|dynamic|static|int[48]|fp[48]|fp16|bf16|"
    r"f16|nvfp4|mxfp[48]|w\d+a\d+(fp8)?|[48]bit|qat|g\d+|sym|mixed|hf|unquantized|q4|0|mtp|per|channel|block|quarot)"
)
TRAINING_WORDS = re.compile(r"(instruct|it|chat|base|thinking|meta|nvidia|\d{4})")
"""Words for how a model was trained on, and dates of its release."""


def named_model(words: Mapping[str, Any], server: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """The question with a model that the catalogue, or the file system, knows."""
    if "model" not in words:
        known = server.get("architecture")
        found = f"the log names none{f', only the architecture {known}' if known else ''}"
        raise UsageError("the log", "the name of its model", found, NAME_IT)
    name = str(words["model"])
    folder = server.get("model_folder") if name == server.get("model") else None
    for one in filter(None, (name, folder)):
        meant = _known(one) or base_of(one, server.get("architecture"))
        if meant is not None:
            _tell(one, meant, name, notes)
            return {**words, "model": meant}
    raise UnknownError(f"model {name!r}", "a model of the catalogue", "found none of this name", NAME_IT)


def _known(name: str) -> str | None:
    """The name as the catalogue or the file system knows it, or the one catalogue name that ends with it."""
    known = catalogue.load()
    if known.model_row(name) is not None or Path(name).exists():
        return name
    ending = {other for other in known.all_model_names() if other.rpartition("/")[2].casefold() == name.casefold()}
    return ending.pop() if len(ending) == 1 else None


def _tell(tried: str, meant: str, served: str, notes: list[str]) -> None:
    if tried != served:
        notes.append(f"{served} is a name it is served under: the model is that of its folder, {tried}")
    if _known(tried) is None:
        notes.append(
            f"{tried} is not in the catalogue: {meant}, whose name differs in format or training only, is taken"
        )


def base_of(name: str, architecture: str | None) -> str | None:
    """The one base model whose name has the same words but those of format and training, and the same class."""
    wanted, known = stem(name), catalogue.load()
    rows = [row for row in known.model_rows.values() if stem(row["name"]) == wanted]
    if architecture is not None:
        rows = [row for row in rows if architecture in row["config"].get("architectures", [architecture])]
    shapes = {_shape(row["config"]) for row in rows}
    return rows[0]["name"] if wanted and len(shapes) == 1 and None not in shapes else None


def stem(name: str) -> tuple[str, ...]:
    """The words of a model's own name that tell its family, version and size."""
    own = name.replace("___", ".").rpartition("/")[2].rpartition("--")[2].casefold()
    parts = re.split(r"[-_\s]+|(?<=[a-z])\.(?=[a-z])", own)
    return tuple(part for part in parts if not FORMAT_WORDS.fullmatch(part) and not TRAINING_WORDS.fullmatch(part))


def _shape(config: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What the layers keep, whatever length or type the config states; None where it cannot be told."""
    from nvdash.footprint.caches import LayoutRefused
    from nvdash.footprint.layers import layout

    try:
        built = layout(config)
    except LayoutRefused:
        return None
    return built.caches, built.mtp, built.encoder_tokens
