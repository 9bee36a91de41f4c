"""Reads one release of vLLM: every statement and fact its source gives."""

import re
from pathlib import Path

from nvdash.extract import facts, legacy, weights
from nvdash.extract.condense import Condenser
from nvdash.extract.constructors import decode_context, guards
from nvdash.extract.defaults import defaults
from nvdash.extract.logs import log_formats
from nvdash.extract.priorities import priorities
from nvdash.extract.selector import Selector
from nvdash.extract.source import Tree
from nvdash.extract.statements import Reading
from nvdash.extract.sweep import cache_dtypes, sweep
from nvdash.extract.validators import unknown_words, validators

FLASHINFER_PIN = re.compile(r"^flashinfer-python\s*==\s*([0-9A-Za-z.]+)")


def read_release(root: Path, release: str) -> Reading:
    """Everything that one unpacked tree says."""
    tree = Tree(root, release)
    reading = Reading(release)
    selector = Selector(tree)
    values, path, line = cache_dtypes(selector)
    reading.facts.append({"fact": "kv_cache_dtype.values", "value": values, "path": path, "line": line})
    unknown_words(values, path, line, reading)
    validators(selector, values, reading)
    if legacy.is_legacy(selector):
        legacy.read(selector, reading)
        reading.facts += legacy.facts(selector)
        for name, cls in legacy.backend_classes(selector):
            reading.facts += facts.declared_of(selector, name, cls)
    else:
        _read_backends(selector, values, reading)
    weights.weights(selector, reading)
    defaults(selector, reading)
    reading.facts += [
        *facts.quantization(selector),
        *weights.facts(selector),
        *facts.memory_defaults(selector),
        *log_formats(tree),
    ]
    pinned_flashinfer(tree, reading)
    return reading


def _read_backends(selector: Selector, dtypes: list[str], reading: Reading) -> None:
    """The registry, the priority lists and every backend of a release that declares its capabilities."""
    priorities(selector, dtypes, reading)
    condensers = {}
    for backend in sweep(selector, dtypes):
        condensers[backend.name] = Condenser(selector, backend, dtypes, reading)
        condensers[backend.name].condense()
        guards(condensers[backend.name])
        decode_context(condensers[backend.name])
    reading.facts += [
        *facts.registry(selector),
        *facts.declared(selector, selector.backends()),
        *facts.priorities(selector, dtypes),
        *facts.verdicts(selector, condensers, dtypes),
    ]


def pinned_flashinfer(tree: Tree, reading: Reading) -> None:
    """The FlashInfer version that the CUDA requirements pin, and where."""
    for file in ("requirements/cuda.txt", "requirements-cuda.txt"):
        if tree.has(file):
            for number, line in enumerate(tree.text(file).splitlines(), 1):
                found = FLASHINFER_PIN.match(line)
                if found:
                    reading.flashinfer, reading.flashinfer_place = found[1], (file, number)
                    return
