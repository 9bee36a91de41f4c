"""How many blocks one request of full length takes in a group, by kind and release."""

from nvdash.footprint.vllm_pages import Spec
from nvdash.footprint.vllm_setup import Setup


def request_blocks(setup: Setup, spec: Spec) -> int | None:
    """Blocks of one full-length request in a group of this kind; None where the length is not known."""
    if spec.kind == "state":
        return _state_blocks(setup, spec)
    if spec.kind == "cross":
        return _ceil(max(setup.batched, setup.layout.encoder_tokens), spec.block)
    if setup.length is None:
        return None
    if spec.window and not setup.rules.flat:
        return _window_blocks(setup, spec, setup.length)
    return _ceil(_ceil(setup.length, setup.request.dcp), spec.block)


def _ceil(tokens: int, size: int) -> int:
    return -(-tokens // size)


def _window_blocks(setup: Setup, spec: Spec, length: int) -> int:
    """The window and the tokens in flight; a sliding window need not start at a block, so it takes one more."""
    batches = setup.request.pp + 1 if setup.rules.in_flight_batches else 1
    flying = setup.batched * batches
    if spec.kind == "chunked":
        return _ceil(min(spec.window + flying, length), spec.block)
    return _ceil(min(spec.window - 1 + _retained(setup) + flying, length), spec.block) + 1


def _retained(setup: Setup) -> int:
    """Tokens below the window that a drafter of several modules reads again."""
    modules = len({cache.layer for cache in setup.layout.mtp or ()})
    return setup.drafts - 1 if setup.rules.retained_drafts and min(modules, setup.drafts) > 1 else 0


def _state_blocks(setup: Setup, spec: Spec) -> int | None:
    if setup.state_mode == "all":
        return None if setup.length is None else _ceil(setup.length, spec.block) + setup.drafted_states
    return (2 if setup.state_mode == "align" else 1) + setup.drafted_states
