"""The files of one submission, read: recognised, put together, names looked up; nothing is stored here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from nvdash.answers.mapping import read_tables
from nvdash.answers.names import looked_up
from nvdash.errors import NvdashError
from nvdash.readers.bundle import Bundle, FileReading, combine, read_file
from nvdash.readers.record import Remark, plain_json
from nvdash.readers.samples import FORMAT as SAMPLES
from nvdash.readers.samples import read_samples, task_of
from nvdash.readers.smoke_report import SmokeReport
from nvdash.readers.smoke_report import read as read_smoke
from nvdash.store import lifecycle, runs
from nvdash.store.adding import FileMark, NewRun
from nvdash.store.columns import BY_NAME, KNOWN
from nvdash.store.identity import run_id
from nvdash.store.values import typed

MARK_OF_A_SMOKE_REPORT = b'"nvdash.smoke/'
HEAD = 4096


@dataclass(frozen=True, slots=True)
class Upload:
    """The files of one submission, read: what can be stored, and what is left out."""

    readings: tuple[FileReading, ...]
    smoke: tuple[tuple[str, SmokeReport], ...]
    bundle: Bundle
    new: tuple[NewRun, ...]
    typed: Mapping[str, Any]

    @property
    def refused(self) -> list[FileReading]:
        """Files in no known format, damaged ones, and those over the limit."""
        return [reading for reading in self.readings if reading.error]


def read_upload(
    paths: Sequence[Path],
    typed_text: Mapping[str, str],
    sibling: Path | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Upload:
    """Read files of one run; typed fields are checked and tables mapped here, nothing is stored."""
    said = {name: value for name, text in typed_text.items() if (value := typed(name, text)) is not None}
    readings, reports = [], []
    for path in dict.fromkeys(paths):
        if _is_smoke(path):
            try:
                reports.append((path.name, read_smoke(path)))
            except NvdashError as error:
                readings.append(FileReading(str(path), error=error))
        else:
            readings.append(read_file(path))
    readings = read_tables(readings, mapping or {})
    bundle = combine(readings)
    new = tuple(_named(_new_runs(bundle, *_cache_facts(readings, bundle, sibling))))
    _refuse_overwriting(new, said)
    return Upload(tuple(readings), tuple(reports), bundle, new, looked_up(said))


def _is_smoke(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK_OF_A_SMOKE_REPORT in file.read(HEAD)
    except OSError:
        return False


def _cache_facts(
    readings: Sequence[FileReading], bundle: Bundle, sibling: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """What the server's own figures say of its cache, by a sibling or a config.json among the files; and a remark."""
    from nvdash.answers.stored import judged, yardstick

    config = next((Path(reading.file) for reading in readings if reading.format == "model-config"), None)
    place, server = sibling or config, bundle.server
    if not server.get("kv_cache_dtype_requested"):
        return {}, []
    found = judged(server, yardstick(place) if place else None)
    facts = {
        "cache_verdict": found["verdict"],
        "kv_bytes_per_token": (found.get("observed") or {}).get("kv_bytes_per_token"),
        "admitted_sequences": server.get("running_max") or None,
    }
    remarks = [found["reason"]] if found["verdict"] == "trap" else []
    return {name: value for name, value in facts.items() if value is not None}, remarks


def _refuse_overwriting(new: Iterable[NewRun], said: Mapping[str, Any]) -> None:
    """A measured value of a file is not typed over."""
    for run in new:
        for name, value in said.items():
            before = run.values.get(name)
            if before is not None and before != value and name in BY_NAME and BY_NAME[name].role == "metric":
                raise lifecycle.measured(name, before)


def _new_runs(bundle: Bundle, cache: Mapping[str, Any], remarks: Sequence[str]) -> Iterable[NewRun]:
    """The runs of a bundle; the id comes from the result file alone, the values and remarks from all files."""
    filled, by_run, of_bundle = enumerate(bundle.runs), _by_run(bundle.warnings), _contradictions(bundle)
    files = [(reading, _mark(reading)) for reading in bundle.files if not reading.error]
    stored = runs.of_files([mark.sha256 for _, mark in files])
    for reading, mark in files:
        before = stored.get(mark.sha256, [])
        of_file = [warning.text for warning in reading.warnings if warning.run is None]
        ids = _ids(before, [run_id(plain_json(raw.values)) for raw in reading.runs])
        for identity in ids:
            number, run = next(filled)
            values = plain_json({**run.values, "format": reading.format})
            texts = [*remarks, *of_file, *by_run.get(number, ()), *of_bundle]
            yield _new_run(identity, {**values, **cache}, mark, bundle, texts)
        if not reading.runs:
            yield from _side_run(reading, bundle, cache, mark, remarks, before)


def _ids(before: list[str], computed: list[str]) -> list[str]:
    """The ids of a file's runs; a file stored before keeps them, also when its reader has learnt more since."""
    return before if len(before) == len(computed) else computed


def _by_run(warnings: Iterable[Remark]) -> dict[int, list[str]]:
    """The remarks about single runs, by the run's number in the bundle."""
    found: dict[int, list[str]] = {}
    for warning in warnings:
        if warning.run is not None:
            found.setdefault(warning.run, []).append(warning.text)
    return found


def _contradictions(bundle: Bundle) -> list[str]:
    """What the files of a bundle say against each other about all of it."""
    return [warning.text for warning in bundle.warnings if warning.code == "contradiction" and warning.run is None]


def _named(runs: Iterable[NewRun]) -> Iterable[NewRun]:
    """The runs with model and GPU looked up; each name once, as a sweep has thousands of runs of one model."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        names = {name: run.values[name] for name in ("model", "model_base", "gpu") if name in run.values}
        key = tuple(names.items())
        if key not in known:
            known[key] = looked_up(names)
        yield replace(run, values={**run.values, **known[key]})


def _side_run(
    reading: FileReading,
    bundle: Bundle,
    cache: Mapping[str, Any],
    mark: FileMark,
    remarks: Sequence[str],
    before: list[str],
) -> Iterable[NewRun]:
    """A file without a benchmark run: quality rows, kernel rows, or a server's own figures when they stand alone."""
    quality, kernels = [row.as_dict() for row in reading.quality], [row.as_dict() for row in reading.kernels]
    kind = "quality" if quality else "kernels" if kernels else "server"
    if kind == "server" and (not reading.server or bundle.runs or reading.format == "model-config"):
        return
    own = plain_json(dict(reading.server))
    values = {name: value for name, value in plain_json(dict(bundle.server)).items() if name in KNOWN}
    values.pop("max_concurrency", None)  # the engine's own figure; in a run the word means the client's limit
    values |= {"kind": kind, "format": reading.format, **(cache if kind == "server" else {})}
    texts = [*(remarks if kind == "server" else ()), *(w.text for w in reading.warnings), *_contradictions(bundle)]
    [identity] = _ids(before, [run_id({"kind": kind, **own}, quality, kernels)])
    run = _new_run(identity, values, mark, bundle, texts)
    samples = _samples(bundle, [row.task for row in reading.quality])
    yield replace(run, quality=quality, kernels=kernels, samples=samples)


def _samples(bundle: Bundle, tasks: list[str]) -> list[dict[str, Any]]:
    """The single scores of these tasks, where the upload holds their files."""
    files = [Path(reading.file) for reading in bundle.files if reading.format == SAMPLES and not reading.error]
    named = [(path, task) for path in files if (task := task_of(path.name, tasks))]
    return [{"task": task, **score.as_dict()} for path, task in named for score in read_samples(path)]


DERIVED: dict[str, tuple[str, Callable[[Mapping[str, Any]], float | None]]] = {
    "output_tok_s_per_user": (
        "1000 / tpot_mean_ms",
        lambda run: 1000 / run["tpot_mean_ms"] if run.get("tpot_mean_ms") else None,
    ),
    "prefill_tok_s": (
        "input_tok_s of requests with one output token",
        lambda run: run.get("input_tok_s") if run.get("osl_mean") is not None and run["osl_mean"] <= 1 else None,
    ),
}
"""Measures that follow from others by definition, with the definition as their provenance."""


def _derived(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the run does not state but defines, and how."""
    found = {name: rule(values) for name, (_, rule) in DERIVED.items() if values.get(name) is None}
    known = {name: value for name, value in found.items() if value is not None}
    return known, {name: f"derived: {DERIVED[name][0]}" for name in known}


def _new_run(identity: str, values: Mapping[str, Any], mark: FileMark, bundle: Bundle, texts: Sequence[str]) -> NewRun:
    """One run with the file behind every value that another file gave."""
    more, definitions = _derived(values)
    known = {name: value for name, value in {**values, **more}.items() if value is not None}
    came_from = {name: bundle.provenance[name] for name in known if name in bundle.provenance} | definitions
    return NewRun(identity, known, mark, provenance=came_from, warnings=tuple(dict.fromkeys(texts)))


def _mark(reading: FileReading) -> FileMark:
    """The file as a submission remembers it: base name, format, digest and size."""
    path, digest = Path(reading.file), sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return FileMark(path.name, str(reading.format), digest.hexdigest(), path.stat().st_size)
