"""What does this model config say, key by key.

A config.json is other people's data: every value is checked for its type and range before it is used, and an
answer that would rest on a missing or odd value names the key instead. `Keys` also remembers what was read, so that
a caller can refuse a config whose shape depends on a key that nobody looked at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nvdash.errors import UsageError

MAX_COUNT = 2**40
TOWERS = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config")
"""Keys that hold the language model of a model with several towers, in the order they are tried."""
LAYER_COUNTS = ("num_layers", "n_layer", "n_layers", "layers_block_type", "layer_types", "hybrid_override_pattern")
"""Keys that say a tower describes layers when it lacks `num_hidden_layers`."""
MAX_TOWERS = 4
"""Towers inside towers that are followed."""


class ConfigError(UsageError):
    """A config value that is missing or cannot be what it says; `key` names it."""

    def __init__(self, key: str, expected: str, found: str, hint: str = "") -> None:
        super().__init__(f"config.json {key}", expected, found, hint)
        self.key = key


def text_tower(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that describes the language model: a tower of its own, or the whole."""
    for _ in range(MAX_TOWERS):
        inner = next((config[name] for name in TOWERS if _is_tower(config.get(name))), None)
        if inner is None:
            return config
        config = {**_shared(config), **inner}
    return config


def _is_tower(value: object) -> bool:
    return isinstance(value, Mapping) and any(name in value for name in ("num_hidden_layers", *LAYER_COUNTS, *TOWERS))


def _shared(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a tower takes over from the whole config when it does not say it itself."""
    names = ("architectures", "torch_dtype", "dtype", "quantization_config", "max_position_embeddings")
    return {name: config[name] for name in names if name in config}


@dataclass(slots=True)
class Keys:
    """Checked access to the keys of one config object; `read` remembers which were asked for."""

    values: Mapping[str, Any]
    prefix: str = ""
    read: set[str] = field(default_factory=set)

    def raw(self, name: str) -> Any:
        """The value as it stands, None when it is absent or null."""
        self.read.add(name)
        return self.values.get(name)

    def _first(self, names: Iterable[str]) -> tuple[str, Any]:
        """The first of these spellings that has a value; all of them count as read."""
        found = [(name, self.raw(name)) for name in names]
        present = [(name, value) for name, value in found if value is not None]
        return present[0] if present else (found[0][0], None)

    def fail(self, name: str, expected: str, value: object, hint: str = "") -> ConfigError:
        """The refusal of one value."""
        found = "found no such key" if value is None else f"found {str(value)[:80]}"
        return ConfigError(self.prefix + name, expected, found, hint)

    def count(self, *names: str, low: int = 1) -> int | None:
        """A whole number under the first of these names that is set; None when none is."""
        name, value = self._first(names)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= MAX_COUNT:
            raise self.fail(name, f"a whole number from {low}", value)
        return value

    def need(self, *names: str, low: int = 1, hint: str = "") -> int:
        """Like `count`, but a config without any of these names is refused."""
        value = self.count(*names, low=low)
        if value is None:
            raise self.fail(names[0], f"a whole number from {low}", None, hint)
        return value

    def flag(self, name: str) -> bool | None:
        """A boolean; None when it is not set."""
        value = self.raw(name)
        if value is not None and not isinstance(value, bool):
            raise self.fail(name, "true or false", value)
        return value

    def word(self, *names: str) -> str | None:
        """A text; None when it is not set."""
        name, value = self._first(names)
        if value is not None and not isinstance(value, str):
            raise self.fail(name, "a text", value)
        return value

    def items(self, name: str, kinds: tuple[type, ...]) -> list[Any] | None:
        """A list whose members are all of these types; None when it is not set."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) in kinds for item in value):
            raise self.fail(name, f"a list of {' or '.join(kind.__name__ for kind in kinds)}", value)
        return value

    def inner(self, name: str) -> "Keys | None":
        """The checked keys of a nested object; None when it is not set."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.fail(name, "an object", value)
        return Keys(value, f"{self.prefix}{name}.")
