"""The backends a release tries when none is named, as statements over the axes the order depends on."""

from collections.abc import Iterator
from typing import Any

from nvdash.extract.condense import projected
from nvdash.extract.context import ARCHITECTURES, Cell
from nvdash.extract.frames import Place
from nvdash.extract.selector import Selector
from nvdash.extract.statements import Atom, Reading, arch_name, frozen

FILE = "priority"
FEW_HEADS = 16
Variant = tuple[bool, bool, bool]
"""Causal, at most 16 query heads, an MLA record of 512 values (a model without rope)."""


def priorities(selector: Selector, dtypes: list[str], reading: Reading) -> None:
    """Add the priority lists of a release to its reading."""
    for mla in (False, True):
        groups: dict[tuple[tuple[str, ...], str], tuple[set[tuple[int, str]], dict[str, Any], Place]] = {}
        for arch in ARCHITECTURES:
            for dtype in dtypes:
                for order, limits, place in _limited(_orders(selector, arch, dtype, mla)):
                    key = (order, repr(limits))
                    groups.setdefault(key, (set(), limits, place))[0].add((arch, dtype))
        for (order, _), (pairs, limits, place) in groups.items():
            for on_arch, on_dtype, _members in projected(pairs, dtypes):
                atom = Atom(
                    FILE,
                    "priority",
                    frozen({"order": list(order)}),
                    frozen({"mla": mla, **limits}),
                    arch_name(on_arch) if on_arch else None,
                    on_dtype,
                )
                reading.add(atom, place)


def _orders(selector: Selector, arch: int, dtype: str, mla: bool) -> dict[Variant, tuple[tuple[str, ...], Place]]:
    orders = {}
    for causal in (True, False):
        for few in (False, True):
            for short in (False, True) if mla else (False,):
                size = (512 if short else 576) if mla else 128
                cell = Cell(arch, dtype, size, mla=mla, causal=causal)
                order, place = selector.priorities(cell, FEW_HEADS if few else 128)
                orders[causal, few, short] = (tuple(order or ()), place)
    return orders


def _limited(
    orders: dict[Variant, tuple[tuple[str, ...], Place]],
) -> Iterator[tuple[tuple[str, ...], dict[str, Any], Place]]:
    """Each order with conditions on those variants that it depends on."""
    depends = [
        any(_flip(orders, variant, axis) != order for variant, (order, _) in orders.items()) for axis in range(3)
    ]
    seen = set()
    for variant, (order, place) in orders.items():
        causal, few, short = variant
        limits: dict[str, Any] = {}
        if depends[0]:
            limits["causal"] = causal
        if depends[1]:
            limits["query_heads"] = {"max": FEW_HEADS} if few else {"min": FEW_HEADS + 1}
        if depends[2]:
            limits["head_size"] = 512 if short else {"not": [512]}
        if order and repr(limits) not in seen:
            seen.add(repr(limits))
            yield order, limits, place


def _flip(orders: dict[Variant, tuple[tuple[str, ...], Place]], variant: Variant, axis: int) -> tuple[str, ...]:
    causal, few, short = (not value if number == axis else value for number, value in enumerate(variant))
    return orders.get((causal, few, short), orders[variant])[0]
