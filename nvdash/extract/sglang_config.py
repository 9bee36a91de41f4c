"""What SGLang's own argument resolution makes of a backend and a cache dtype on one GPU, evaluated from its source.

The handlers that fill defaults, change settings and refuse combinations are interpreted in the release's own order
on a stand-in for the server's arguments; then the backend's creation function is. Nothing of it is imported.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nvdash.extract.frames import Path, Raised, TooDeep
from nvdash.extract.interp import Interpreter
from nvdash.extract.sglang_facts import COMMON, SERVER_ARGS, SRT, capability_majors
from nvdash.extract.sglang_handlers import class_of, creators, steps, undecorated
from nvdash.extract.source import Tree, bound_names
from nvdash.extract.values import Bound, ClassRef, FunctionRef, Instance, Native, Stub, Unknown

Used = set[str]
ARCHITECTURES = ("sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm110", "sm120", "sm121")
FAMILIES = {"sm86": "sm80", "sm89": "sm80", "sm103": "sm100", "sm121": "sm120"}
CONTEXT = f"{SRT}/runtime_context.py"

ARGUMENT_DEFAULTS = {
    "attention_backend": None,
    "prefill_attention_backend": None,
    "decode_attention_backend": None,
    "page_size": None,
    "kv_cache_dtype": "auto",
    "speculative_algorithm": None,
    "speculative_eagle_topk": None,
    "device": "cuda",
    "tp_size": 1,
    "dp_size": 1,
    "dcp_size": 1,
    "attn_cp_size": 1,
    "enable_hierarchical_cache": False,
    "enable_double_sparsity": False,
    "disable_radix_cache": False,
    "mem_fraction_static": 0.9,
}
"""Where the source states no literal default for an argument that these handlers read: a server started without it."""

MODEL = {
    "is_encoder_decoder": False,
    "has_asymmetric_kv": False,
    "is_hybrid_swa": False,
    "context_len": 4096,
    "attention_chunk_size": None,
    "is_multimodal": False,
    "hf_config.architectures": ["LlamaForCausalLM"],
    "hf_config.dual_chunk_attention_config": None,
    "hf_config.model_type": "llama",
    "head_dim": 128,
    "v_head_dim": 128,
}
"""A plain decoder without a model-specific override, sinks, a window or unequal head sizes."""


@dataclass(frozen=True, slots=True)
class Question:
    """One combination put to the release's argument handlers."""

    arch: str
    kv_cache_dtype: str
    mla: bool = False
    backend: str | None = None
    prefill: str | None = None
    decode: str | None = None
    sinks: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Who refuses: the layer, the message and the line of the raise."""

    layer: str
    message: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out: the backends that hold, and the refusal that met them, if any; nothing where it is left open."""

    refusal: Refusal | None = None
    prefill: str | None = None
    decode: str | None = None
    page_size: int | None = None

    @property
    def accepted(self) -> bool:
        return self.refusal is None and self.prefill is not None and self.decode is not None


class Platform:
    """An NVIDIA GPU as the probes of utils/common.py see it; answers in place of calls that would ask the machine."""

    def __init__(self, tree: Tree, arch: str, sinks: bool = False) -> None:
        self.tree, self.arch, self.sinks = tree, int(arch.removeprefix("sm")), sinks
        self.read: set[str] = set()
        self._probes = platform_probes(tree)
        self._cache: dict[str, Any] = {}

    @property
    def capability(self) -> tuple[int, int]:
        return self.arch // 10, self.arch % 10

    def probe(self, name: str) -> Any:
        """Whether a probe such as is_sm100_supported() holds here; CUDA and FlashInfer are there, other vendors not."""
        if name not in self._cache:
            self._cache[name] = self._probe(name)
        return self._cache[name]

    def _probe(self, name: str) -> Any:
        if name in ("is_cuda", "is_flashinfer_available", "_is_cuda"):
            return True
        if name.lstrip("_") in ("is_hip", "is_npu", "is_cpu", "is_xpu", "is_musa", "is_mps", "is_hpu", "is_host_cpu"):
            return False
        majors = capability_majors(self.tree, name)
        if majors is None and name in FIXED_PROBES:
            majors = FIXED_PROBES[name]
        return Unknown(f"{name}()") if majors is None else self.capability[0] in majors

    def set(self, axes: Mapping[str, Any]) -> None:
        """The architecture is the only axis, and it stays."""

    def call(self, name: str, args: list[Any], used: Used) -> tuple[bool, Any]:
        if name in ("resolving_view", "resolved_view"):
            return True, args[0]
        if name in ("get_model_config", "model_config_of"):
            return True, Stub("model")
        if name == "get_platform":
            return True, Stub("platform")
        if name == "get_device_capability":
            return True, self.capability
        answer = self.probe(name)
        return not isinstance(answer, Unknown), answer

    def value(self, name: str, used: Used) -> tuple[bool, Any]:
        if name in ("envs", "current_platform"):
            return True, Stub(name)
        if not name.lstrip("_").startswith("is_"):
            return False, None
        answer = self.probe(name)
        if not isinstance(answer, Unknown):
            return True, answer if name.startswith("_") else Native(lambda: answer, name)
        helper = self._helper(name)
        return helper is not None, helper

    def _helper(self, name: str) -> FunctionRef | None:
        """A helper of utils/common.py, which `sglang.srt.utils` offers through a star import."""
        module = self.tree.module_at(COMMON) if self.tree.has(COMMON) else None
        node = module.last(name, ast.FunctionDef) if module else None
        return FunctionRef(module, node) if module and node else None

    def attribute(self, path: str, used: Used) -> Any:
        root, _, rest = path.partition(".")
        if path == "model.has_attention_sinks":
            return self.sinks
        if root == "model":
            return MODEL.get(rest, Stub(path) if any(key.startswith(f"{rest}.") for key in MODEL) else Unknown(path))
        if root.startswith("runner"):
            return (
                root == "runner_mla"
                if rest == "use_mla_backend"
                else Stub("model")
                if rest == "model_config"
                else Unknown(path)
            )
        if root == "platform":
            return self.probe(self._probes.get(rest, rest))
        return Stub(path)

    def stub_call(self, stub: Stub, used: Used) -> Any:
        """Environment variables are unset; the platform is no plugin's."""
        if stub.path.startswith("envs."):
            return None
        return False if stub.path == "current_platform.is_out_of_tree" else Unknown(f"{stub.path}()")

    def is_dtype(self, name: str) -> bool:
        return name.startswith(("float", "bfloat", "uint", "int"))


FIXED_PROBES = {
    "is_sm100_supported": [10],
    "is_sm120_supported": [12],
    "is_sm90_supported": [9],
    "is_hopper_with_cuda_12_3": [9],
    "is_blackwell": [10],
}
"""Majors of probes that older releases write as functions (0.4.9-0.5.2 utils.py) rather than as a literal list."""


def platform_probes(tree: Tree) -> dict[str, str]:
    """`get_platform().is_sm100` and its like: the probe each name stands for (runtime_context.py, 0.5.18 on)."""
    if not tree.has(CONTEXT):
        return {}
    for node in tree.module_at(CONTEXT).tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and "_PLATFORM_PROBES" in bound_names(node) and node.value:
            return dict(ast.literal_eval(node.value))
    return {}


class ArgumentRun(Interpreter):
    """Runs a list of handlers, one after the other, on a fresh copy of the arguments for each way through them."""

    def __init__(self, tree: Tree, platform: Platform, mla: bool) -> None:
        super().__init__(tree, platform, havoc=True)  # type: ignore[arg-type]
        self.mla = mla
        self.steps: list[Any] = []
        self.arguments: dict[str, Any] = {}

    def _one_path(self, function: Any, arguments: dict[str, Any], script: list[bool]) -> Path:
        self._script, self._order, self.decided, self.used = script, [], {}, set()
        state = Instance(function, dict(arguments))
        raised = None
        try:
            for step in self.steps:
                self._take(step, state)
        except Raised as error:
            raised = error
        except (TooDeep, RecursionError) as error:
            state = Instance(function, {"limit": str(error)})
        return Path(dict(state.attributes), raised, (), frozenset(), tuple(self.decided.items()))

    def _take(self, step: FunctionRef, state: Instance) -> None:
        if step.name.endswith("page_size_default"):
            self._declare(state, self.call(step, [state], {}, 0))
        elif step.owner is not None and step.owner.name == "ModelRunner":
            runner = Instance(
                step.owner,
                {
                    "server_args": state,
                    "use_mla_backend": self.mla,
                    "model_config": Stub("model"),
                    "device": "cuda",
                    "is_hybrid": False,
                    "is_multimodal": False,
                    "tp_size": 1,
                    "moe_ep_size": 1,
                },
            )
            self.call(Bound(step, runner), [], {}, 0)
        else:
            self.call(Bound(step, state) if step.owner else step, [] if step.owner else [state], {}, 0)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], depth: int) -> Any:
        """Calls that record a decision act on the arguments; the rest is interpreted."""
        target = function.function if isinstance(function, Bound) else function
        name = target.name if isinstance(target, FunctionRef) else ""
        if name == "use_mla_backend":
            return self.mla
        if name == "declare_resolution":
            self._declare(args[0], kwargs)
            return None
        if name == "run_post_process_pass":
            rule = args[1]
            named = isinstance(rule, FunctionRef) and isinstance(rule.node, ast.FunctionDef)
            bare = FunctionRef(rule.module, undecorated(rule.node)) if named else rule
            self._declare(args[0], self.call(bare, [args[0]], {}, depth))
            return None
        return super().call(function, args, kwargs, depth)

    def _declare(self, state: Any, fields: Any) -> None:
        if isinstance(state, Instance) and isinstance(fields, dict):
            state.attributes.update(fields)


class Configuration:
    """The argument handlers of one release, ready to be asked."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.defaults = {
            **ARGUMENT_DEFAULTS,
            **argument_defaults(tree),
            "model_config": Stub("model"),
            "cuda_graph_config": Stub("graphs"),
        }
        self.record = ClassRef(tree.module_at(SERVER_ARGS), class_of(tree, SERVER_ARGS, "ServerArgs"))
        self.steps = list(steps(tree, self.record))
        self.creators = creators(tree)
        self._runs: dict[tuple[str, bool, bool], ArgumentRun] = {}
        self._created: dict[tuple[str, bool, str], Refusal | None] = {}
        self._asked: dict[Question, Outcome] = {}

    def ask(self, question: Question) -> Outcome:
        """The outcome on which every way through the handlers agrees; an empty one where they do not.

        Probes and guards of these handlers read the major capability only, so one architecture stands for its family.
        """
        family = replace(question, arch=FAMILIES.get(question.arch, question.arch))
        if family not in self._asked:
            self._asked[family] = self._evaluate(family)
        return self._asked[family]

    def _evaluate(self, question: Question) -> Outcome:
        run = self._run(question.arch, question.mla, question.sinks)
        run.steps = self.steps
        arguments = {
            **self.defaults,
            "kv_cache_dtype": question.kv_cache_dtype,
            "attention_backend": question.backend,
            "prefill_attention_backend": question.prefill,
            "decode_attention_backend": question.decode,
        }
        outcomes = {self._outcome(path, question) for path in run.paths(self.record, arguments)}  # type: ignore[arg-type]
        return outcomes.pop() if len(outcomes) == 1 else Outcome()

    def _outcome(self, path: Path, question: Question) -> Outcome:
        state = path.value
        if isinstance(state, Unknown):
            return Outcome()
        shared = state.get("attention_backend")
        prefill = _named(state.get("prefill_attention_backend") or shared)
        decode = _named(state.get("decode_attention_backend") or shared)
        if path.raised is not None:
            file, line = path.raised.place
            refusal = Refusal("config", reason(path.raised.message), file, line)
            return Outcome(refusal, prefill, decode) if file else Outcome()
        if prefill is None or decode is None:
            return Outcome()
        failing = self.creation(question.arch, question.mla, prefill) or self.creation(
            question.arch, question.mla, decode
        )
        page = state.get("page_size")
        return Outcome(failing, prefill, decode, page if isinstance(page, int) else None)

    def creation(self, arch: str, mla: bool, backend: str) -> Refusal | None:
        """The refusal of a backend's creation function, when every way through it raises."""
        key = (arch, mla, backend)
        if key not in self._created:
            self._created[key] = self._create(*key)
        return self._created[key]

    def _create(self, arch: str, mla: bool, backend: str) -> Refusal | None:
        creator = self.creators.get(backend)
        if creator is None:
            return None
        run = CreationRun(self.tree, Platform(self.tree, arch), mla)
        raised = {path.raised for path in run.paths(creator, {})}
        error = raised.pop()
        if raised or error is None or not error.place[0]:
            return None
        return Refusal("constructor", reason(error.message), *error.place)

    def _run(self, arch: str, mla: bool, sinks: bool) -> ArgumentRun:
        if (arch, mla, sinks) not in self._runs:
            self._runs[arch, mla, sinks] = ArgumentRun(self.tree, Platform(self.tree, arch, sinks), mla)
        return self._runs[arch, mla, sinks]


def _named(backend: Any) -> str | None:
    return backend if isinstance(backend, str) else None


class CreationRun(Interpreter):
    """Runs a backend's creation function with a stand-in for the model runner."""

    def __init__(self, tree: Tree, platform: Platform, mla: bool) -> None:
        super().__init__(tree, platform, havoc=True)  # type: ignore[arg-type]
        self.mla = mla

    def _one_path(self, function: Any, arguments: dict[str, Any], script: list[bool]) -> Path:
        name = function.node.args.args[0].arg
        return super()._one_path(function, {name: Stub("runner_mla" if self.mla else "runner")}, script)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], depth: int) -> Any:
        """A backend that would be built ends the question: what its constructor does is not asked here."""
        return Unknown(function.name) if isinstance(function, ClassRef) else super().call(function, args, kwargs, depth)


GIVEN = re.compile(r",? (?:but |instead )?got\b.*|; got\b.*|'[\w.]+'", re.DOTALL)


def reason(message: str) -> str:
    """A refusal in the release's own words, without the values that it was given: one reason for all of them."""
    return GIVEN.sub("", message).replace("  ", " ").strip()


def argument_defaults(tree: Tree) -> dict[str, Any]:
    """The literal defaults of the server's arguments, from its fields."""
    folder = tree.root / SRT / "arg_groups" / "fields"
    paths = [SERVER_ARGS, *(f"{SRT}/arg_groups/fields/{p.name}" for p in sorted(folder.glob("*.py")))]
    values: dict[str, Any] = {}
    for path in paths:
        for owner in (n for n in tree.module_at(path).tree.body if isinstance(n, ast.ClassDef)):
            for node in owner.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                    try:
                        values.setdefault(node.target.id, ast.literal_eval(node.value))
                    except ValueError:
                        continue
    return values
