"""How many tokens fit: the engine's own allocator, replayed for one layout and one request."""

from collections.abc import Callable

from nvdash.errors import UnknownError, UsageError
from nvdash.footprint.caches import Layout
from nvdash.footprint.request import Allocation, CacheRequest, Draft, Group, Precheck, Term
from nvdash.footprint.sglang import replay_sglang
from nvdash.footprint.trtllm import replay_trtllm
from nvdash.footprint.vllm import replay_vllm

__all__ = ["Allocation", "CacheRequest", "Draft", "Group", "Precheck", "Term", "replay"]

ENGINES: dict[str, Callable[[Layout, CacheRequest], Allocation]] = {
    "vllm": replay_vllm,
    "sglang": replay_sglang,
    "tensorrt-llm": replay_trtllm,
}


def replay(layout: Layout, request: CacheRequest) -> Allocation:
    """What the named engine and release make of this memory; an engine nobody replayed is unknown."""
    for name in ("tp", "pp", "dcp"):
        if getattr(request, name) < 1:
            raise UsageError(name, "a whole number from 1", f"found {getattr(request, name)}")
    engine = ENGINES.get(request.framework)
    if engine is None:
        known = ", ".join(ENGINES)
        raise UnknownError("framework", f"an engine whose allocator is known ({known})", f"found {request.framework}")
    return engine(layout, request)
