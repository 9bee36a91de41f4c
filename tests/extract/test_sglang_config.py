"""SGLang's argument handlers, interpreted on small trees of the two styles that releases use."""

import pytest

from nvdash.errors import NvdashError
from nvdash.extract.sglang_config import Configuration, Question
from tests.extract.trees import tree_of

COMMON = """
    is_sm100_supported = lru_cache(maxsize=1)(partial(check, device_capability_majors=[10], cuda_version=(12, 8)))
    is_sm120_supported = lru_cache(maxsize=1)(partial(check, device_capability_majors=[12], cuda_version=(12, 8)))
"""
METHODS = """
    from sglang.srt.utils.common import is_sm100_supported, is_sm120_supported

    class ServerArgs:
        kv_cache_dtype: str = "auto"

        def __post_init__(self):
            self._handle_attention_backend_compatibility()
            self._handle_kv4_compatibility()

        def _handle_attention_backend_compatibility(self):
            if self.attention_backend is None:
                self.attention_backend = "wide" if is_sm100_supported() else "plain"
            if self.attention_backend == "wide" and self.page_size not in [16, 64]:
                self.page_size = 64

        def _handle_kv4_compatibility(self):
            if self.kv_cache_dtype != "tiny4":
                return
            choices = ["wide"]
            assert self.attention_backend in choices, f"tiny4 expects one of {choices}, but got {self.x}"
"""
HOOKS = {
    "sglang/srt/server_args.py": "class ServerArgs: ...",
    "sglang/srt/utils/common.py": COMMON,
    "sglang/srt/runtime_context.py": '_PLATFORM_PROBES = {"is_sm100": "is_sm100_supported"}',
    "sglang/srt/arg_groups/fields/model.py": "class M:\n    attention_backend: str = None\n",
    "sglang/srt/arg_groups/pipeline.py": """
        def run_resolution_pipeline(server_args):
            from sglang.srt.arg_groups.attention_hook import handle_attention_backend_compatibility
            run_hook(handle_attention_backend_compatibility, server_args)
    """,
    "sglang/srt/arg_groups/attention_hook.py": """
        from sglang.srt.arg_groups.overrides import _default, declare_resolution, run_post_process_pass
        from sglang.srt.runtime_context import get_platform

        def handle_attention_backend_compatibility(server_args):
            cfg = resolving_view(server_args)
            run_post_process_pass(server_args, _default)
            if cfg.kv_cache_dtype == "tiny4" and not get_platform().is_sm100:
                raise ValueError("tiny4 needs SM100")
            if cfg.kv_cache_dtype == "odd4" and cfg.some_setting_nobody_knows:
                raise ValueError("odd4 needs luck")
    """,
    "sglang/srt/arg_groups/overrides.py": """
        def run_post_process_pass(server_args, rule): ...

        def declare_resolution(server_args, source, **fields): ...

        @register_post_process
        def _default(view):
            if view.attention_backend is None:
                return {"attention_backend": "plain"}
            return {}
    """,
    "sglang/srt/layers/attention/attention_registry.py": """
        @register_attention_backend("plain")
        def create_plain(runner):
            if runner.use_mla_backend:
                raise ValueError("plain is not for MLA models")
            return PlainBackend(runner)
    """,
}


@pytest.fixture
def by_methods(tmp_path):
    files = {"sglang/srt/server_args.py": METHODS, "sglang/srt/utils/common.py": COMMON}
    return Configuration(tree_of(tmp_path, files, "sglang"))


@pytest.fixture
def by_hooks(tmp_path):
    return Configuration(tree_of(tmp_path, HOOKS, "sglang"))


def test_the_default_backend_follows_the_architecture(by_methods):
    chosen = {arch: by_methods.ask(Question(arch, "auto")).prefill for arch in ("sm90", "sm100", "sm103", "sm120")}
    assert chosen == {"sm90": "plain", "sm100": "wide", "sm103": "wide", "sm120": "plain"}


def test_a_page_size_that_is_forced_is_told(by_methods):
    assert by_methods.ask(Question("sm100", "auto")).page_size == 64


def test_an_assertion_refuses_with_its_line_and_without_the_value_it_was_given(by_methods):
    refusal = by_methods.ask(Question("sm90", "tiny4")).refusal
    assert refusal is not None
    assert (refusal.layer, refusal.path, refusal.line) == ("config", "sglang/srt/server_args.py", 20)
    assert refusal.message == "tiny4 expects one of [wide]"


def test_a_named_backend_that_passes_is_accepted(by_methods):
    outcome = by_methods.ask(Question("sm90", "tiny4", backend="wide"))
    assert (outcome.accepted, outcome.prefill, outcome.decode) == (True, "wide", "wide")


def test_hooks_and_passes_are_run_in_the_order_of_the_pipeline(by_hooks):
    assert by_hooks.ask(Question("sm90", "auto")).decode == "plain"
    refusal = by_hooks.ask(Question("sm90", "tiny4")).refusal
    assert refusal is not None
    assert refusal.message == "tiny4 needs SM100"
    assert by_hooks.ask(Question("sm100", "tiny4")).accepted


def test_a_creation_function_that_raises_is_a_constructor_refusal(by_hooks):
    refusal = by_hooks.ask(Question("sm100", "auto", mla=True)).refusal
    assert refusal is not None
    assert (refusal.layer, refusal.line) == ("constructor", 4)
    assert by_hooks.ask(Question("sm100", "auto")).accepted


def test_a_check_on_something_unknown_is_neither_accepted_nor_refused(by_hooks):
    outcome = by_hooks.ask(Question("sm100", "odd4"))
    assert outcome.refusal is None
    assert not outcome.accepted


def test_a_tree_without_its_argument_class_is_named(tmp_path):
    tree = tree_of(tmp_path, {"sglang/srt/server_args.py": "x = 1"}, "sglang")
    with pytest.raises(NvdashError, match=r"a class ServerArgs"):
        Configuration(tree)
