"""Models that no catalogue lists: a config.json, a folder with one, or a repository of the Hugging Face Hub."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvdash.errors import NvdashError, UnknownError, UsageError, did_you_mean
from nvdash.readers.quantization import checkpoint_of_config
from nvdash.targets import Model

if TYPE_CHECKING:
    from nvdash.readers.catalogue import Catalogue

MAX_CONFIG_BYTES = 16 * 2**20
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def model_from(text: str, catalogue: "Catalogue") -> Model:
    """The model at a path, or of a Hub repository; refuses with the nearest catalogue names."""
    path = Path(text)
    if path.is_dir():
        return model_of_folder(path)
    if path.is_file():
        return model_of_file(path)
    if text.endswith(".json") or text.startswith((".", "/", "~")):
        raise UsageError(f"model {path.name!r}", "a config.json or a folder with one", "no such file")
    if HUB_ID.fullmatch(text):
        return model_of_hub(text, catalogue)
    raise unknown_model(text, catalogue, "no model has this name")


def unknown_model(text: str, catalogue: "Catalogue", found: str) -> NvdashError:
    """The refusal of a name that means no model, with the nearest ones."""
    hint = did_you_mean(text, catalogue.all_model_names()) or "give the path of its config.json"
    return UnknownError(f"model {text!r}", "a catalogue name, a config.json, a folder or a Hub repository", found, hint)


def model_of_folder(folder: Path) -> Model:
    """The model of a checkpoint folder; `hf_quant_config.json` beside the config belongs to it."""
    config = dict(read_json_object(folder / "config.json"))
    quantised = folder / "hf_quant_config.json"
    if quantised.is_file() and "quantization_config" not in config:
        config["quantization_config"] = read_json_object(quantised)
    return model_of_config(config, folder.resolve().name)


def model_of_file(path: Path) -> Model:
    """The model of one config file, named by the file or, for a plain config.json, by its folder."""
    name = path.resolve().parent.name if path.name == "config.json" else path.stem.replace("--", "/", 1)
    return model_of_config(read_json_object(path), name)


def model_of_config(config: Mapping[str, Any], name: str) -> Model:
    """A model that is known by its config alone."""
    own = checkpoint_of_config(config, name)
    return Model(name=name, base=name, config=config, checkpoints=(own,), source="config.json", asked=own)


def hub_answers(timeout_s: float = 2.0) -> bool:
    """Whether the Hub can be reached, asked once and briefly; a proxy is trusted to reach it."""
    import socket
    from urllib.parse import urlsplit
    from urllib.request import getproxies

    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    address = urlsplit(constants.ENDPOINT)
    if address.scheme in getproxies():
        return True
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
        socket.create_connection((address.hostname or "", port), timeout_s).close()
    except OSError:
        return False
    return True


def model_of_hub(repository: str, catalogue: "Catalogue") -> Model:
    """The model of a Hub repository, from its config.json; no weights are read."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    stored = try_to_load_from_cache(repository, "config.json")
    if isinstance(stored, str):
        return model_of_config(read_json_object(Path(stored)), repository)
    if not hub_answers():
        raise unknown_model(repository, catalogue, "the catalogue has no such name and the Hub cannot be reached")
    try:
        path = hf_hub_download(repository, "config.json", etag_timeout=5)
    except Exception as error:  # the client passes on errors of several libraries
        found = f"the catalogue has no such name and the Hub gave no config.json ({type(error).__name__})"
        raise unknown_model(repository, catalogue, found) from error
    return model_of_config(read_json_object(Path(path)), repository)


def read_json_object(path: Path) -> Mapping[str, Any]:
    """One JSON object from a file of bounded size."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise UsageError(path.name, f"at most {MAX_CONFIG_BYTES:,} bytes", "a larger file")
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(path.name, "a readable file", error.strerror or "it cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(path.name, "a JSON object", f"found {error}") from error
    if not isinstance(value, dict):
        raise UsageError(path.name, "a JSON object", f"found a {type(value).__name__}")
    return value
