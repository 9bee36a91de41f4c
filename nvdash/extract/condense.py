"""Turns the answers about one backend into atoms: refusals by reason, acceptances, open questions.

A reason is stated over the axes it depends on and no more, so that a refusal of a head size is one
statement for every architecture and dtype. All matching statements apply and the worst wins, hence
acceptances are stated for the plain shape and every other shape adds its refusals.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from nvdash.extract.context import ARCHITECTURES, PLAIN_HEAD, Cell
from nvdash.extract.frames import Place
from nvdash.extract.heads import accepted_sizes, accepting, refusing
from nvdash.extract.selector import Answer, Selector, method_line
from nvdash.extract.statements import Atom, Reading, arch_name, frozen
from nvdash.extract.sweep import FLAGS, Backend

GIVEN = re.compile(r",? (?:but )?got\b")
HEAD_REASON = "head_size not supported"
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "sinks": {"sinks": True},
    "window": {"window": {"min": 1}},
    "dcp": {"dcp": {"min": 2}},
    "non_causal": {"causal": False},
    "dcp_non_causal": {"dcp": {"min": 2}, "causal": False},
}
Spot = tuple[int, str, int]
"""Architecture, cache dtype, head size."""


class Condenser:
    """The answers about one backend, seen by shape."""

    def __init__(self, selector: Selector, backend: Backend, dtypes: list[str], reading: Reading) -> None:
        self.selector, self.backend, self.dtypes, self.reading = selector, backend, dtypes, reading
        self.accepted = {arch: accepted_sizes(selector, backend, arch) for arch in ARCHITECTURES}
        self.kind = {"backend": backend.name, "mla": backend.mla, "sparse": backend.sparse if backend.mla else None}

    def cell(self, shape: str, spot: Spot) -> Cell:
        """The cell of a shape at a spot."""
        arch, dtype, size = spot
        base = Cell(arch, dtype, size, self.backend.mla, self.backend.sparse)
        change: dict[str, Any] = {"sinks": True} if shape == "sinks" else dict(FLAGS.get(shape, {}))
        return replace(base, **change)

    def answer(self, shape: str, spot: Spot) -> Answer:
        """What the selector said of that cell."""
        return self.backend.answers[self.cell(shape, spot)]

    def spots(self, shape: str) -> list[Spot]:
        sizes = self.backend.heads if shape in ("plain", "sinks") else (PLAIN_HEAD[self.backend.mla],)
        return [(arch, dtype, size) for arch in ARCHITECTURES for dtype in self.dtypes for size in sizes]

    def condense(self) -> None:
        """Add every atom of this backend to the reading."""
        self._mismatches()
        self._head_sizes()
        for shape in SHAPES:
            self._refusals(shape)
            self._open(shape)
        self._acceptances()

    def add(
        self,
        said: dict[str, Any],
        when: dict[str, Any],
        arch: int | None,
        dtype: str | None,
        place: Place,
        answers: Iterable[Answer],
    ) -> None:
        """Note an atom about this backend with the assumptions of the answers it rests on."""
        answers = list(answers)
        used = frozenset().union(*(a.used for a in answers))
        needs = tuple(sorted({need for a in answers for need in a.needs}))
        atom = Atom(
            self.backend.name.lower(), "support", frozen(said), frozen(when), arch_name(arch) if arch else None, dtype
        )
        self.reading.add(atom, place, used, needs)

    def _mismatches(self) -> None:
        for axis, answer in self.backend.mismatch.items():
            wanted = not getattr(self.backend, axis)
            word = {"mla": "MLA", "sparse": "sparse"}[axis]
            reasons = [(t, p) for t, p in answer.reasons if t.endswith(f"{word} not supported")]
            when = {"backend": self.backend.name, axis: wanted}
            if axis == "sparse":
                when = {"backend": self.backend.name, "mla": True, "sparse": wanted}
            for text, place in reasons[:1] if answer.verdict == "no" else []:
                self.add(refusal(text), when, None, None, place, [answer])

    def _head_sizes(self) -> None:
        run = self.selector.interpreter(Cell(90, "auto", 128))
        place = method_line(run, self.backend.cls, "get_supported_head_sizes")
        own = method_line(run, self.backend.cls, "supports_head_size")
        known = {arch: sizes for arch, sizes in self.accepted.items() if sizes is not None}
        everywhere = len(known) == len(ARCHITECTURES) and len(set(known.values())) == 1
        for arch, sizes in known.items():
            for limit in refusing(sizes):
                answers = [a for spot in self.spots("plain") if spot[0] == arch for a in [self.answer("plain", spot)]]
                line = next((p for a in answers for t, p in a.reasons if t == HEAD_REASON), None) or own or place
                if line:
                    self.add(
                        refusal(HEAD_REASON),
                        {**self.kind, "head_size": limit},
                        None if everywhere else arch,
                        None,
                        line,
                        [],
                    )
            if everywhere:
                return

    def _refusals(self, shape: str) -> None:
        texts = {text: None for spot in self.spots(shape) for text, _ in self._new_reasons(shape, spot)}
        for text in texts:
            if text != HEAD_REASON or shape != "plain":
                self._refusal(shape, text)

    def _new_reasons(self, shape: str, spot: Spot) -> Iterator[tuple[str, Place]]:
        """The reasons of a cell that the plain shape of the same cell does not have."""
        answer = self.answer(shape, spot)
        if answer.verdict != "no":
            return
        plain = {t for t, _ in self.answer("plain", spot).reasons} if shape != "plain" else set()
        if shape == "dcp_non_causal":
            plain |= {t for s in ("dcp", "non_causal") for t, _ in self.answer(s, spot).reasons}
        yield from ((t, p) for t, p in answer.reasons if t not in plain)

    def _refusal(self, shape: str, text: str) -> None:
        where: dict[tuple[int, str], dict[int, Place]] = {}
        for spot in self.spots(shape):
            for reason, place in self._new_reasons(shape, spot):
                if reason == text:
                    where.setdefault(spot[:2], {})[spot[2]] = place
        groups: dict[str, set[tuple[int, str]]] = {}
        limits: dict[str, Any] = {}
        for pair, sizes in where.items():
            limit = self._head_limit(shape, sizes)
            limits[repr(limit)] = limit
            groups.setdefault(repr(limit), set()).add(pair)
        for key, pairs in groups.items():
            when = {**self.kind, "head_size": limits[key], **SHAPES[shape]}
            for arch, dtype, members in projected(pairs, self.dtypes):
                first = min(members)
                place = next(iter(where[first].values()))
                answers = [self.answer(shape, (*pair, size)) for pair in members for size in where[pair]]
                self.add(refusal(text), when, arch, dtype, place, answers)

    def _head_limit(self, shape: str, sizes: Iterable[int]) -> Any:
        every = self.backend.heads if shape in ("plain", "sinks") else (PLAIN_HEAD[self.backend.mla],)
        return None if set(sizes) == set(every) else sorted(sizes)

    def _open(self, shape: str) -> None:
        for spot in self.spots(shape):
            answer = self.answer(shape, spot)
            if answer.verdict != "unknown" or (shape != "plain" and self.answer("plain", spot).verdict != "yes"):
                continue
            self.reading.undecided += 1
            maybe = "; ".join(text for text, _ in answer.reasons) or "the selector may refuse it"
            place = next((p for _, p in answer.reasons), answer.place) or ("", 0)
            said = {"verdict": "unknown", "reason": f"not decided by the source alone: {maybe}"}
            size = None if shape not in ("plain", "sinks") else [spot[2]]
            self.add(said, {**self.kind, "head_size": size, **SHAPES[shape]}, spot[0], spot[1], place, [answer])

    def _acceptances(self) -> None:
        yes: dict[tuple[int, str], list[int]] = {}
        for spot in self.spots("plain"):
            if self.answer("plain", spot).verdict == "yes":
                yes.setdefault(spot[:2], []).append(spot[2])
        for (arch, dtype), sizes in yes.items():
            sure = self.accepted[arch]
            expected = [s for s in self.backend.heads if sure is not None and s in sure]
            limit = accepting(sure) if sure is not None and expected == sizes else sizes
            answers = [self.answer("plain", (arch, dtype, size)) for size in sizes]
            said = {"verdict": "expected", "requires_flashinfer": True if uses_flashinfer(self.backend) else None}
            place = answers[0].place or ("", 0)
            self.add(said, {**self.kind, "head_size": limit}, arch, dtype, place, answers)


def refusal(text: str) -> dict[str, Any]:
    """The words of a selector refusal, around the release's own reason without the values it was given."""
    return {"verdict": "refused", "layer": "selector", "reason": f"the selector skips it: {GIVEN.split(text)[0]}"}


def uses_flashinfer(backend: Backend) -> bool:
    """Whether a backend runs FlashInfer's kernels."""
    return backend.name.startswith(("FLASHINFER", "TRITON_FLASHINFER"))


def projected(
    pairs: set[tuple[int, str]], dtypes: list[str]
) -> Iterator[tuple[int | None, str | None, list[tuple[int, str]]]]:
    """The pairs as atoms: an axis on which nothing depends is left out."""
    members = sorted(pairs)
    archs, used = sorted({a for a, _ in pairs}), sorted({d for _, d in pairs}, key=dtypes.index)
    whole_dtypes = all((a, d) in pairs for a in archs for d in dtypes)
    whole_archs = all((a, d) in pairs for a in ARCHITECTURES for d in used)
    if whole_dtypes and whole_archs:
        yield None, None, members
    elif whole_dtypes:
        for arch in archs:
            yield arch, None, [m for m in members if m[0] == arch]
    elif whole_archs:
        for dtype in used:
            yield None, dtype, [m for m in members if m[1] == dtype]
    else:
        for pair in members:
            yield pair[0], pair[1], [pair]
