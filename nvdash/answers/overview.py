"""One configuration at a glance: does it fit, does it run, what was measured, what next.

Put together from the answers of `check`, `memory` and the store; nothing is computed here that they do not say.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nvdash.answers.asked import FLAGS
from nvdash.answers.check import check
from nvdash.answers.envelope import envelope
from nvdash.answers.matrix import timeline
from nvdash.answers.memory import memory
from nvdash.answers.results import measured, published_for
from nvdash.answers.words import FRAMEWORKS, STAGES, VERDICTS, count, dtype, gib, tokens_short
from nvdash.errors import UnknownError
from nvdash.support.timeline import UNREAD

TONE = {"validated": "success", "expected": "info", "unknown": "info", "conditional": "warning", "trap": "warning"}
AXIS_WORDS = {
    "kv_cache_dtype": "the {} cache",
    "arch": "a GPU with {}",
    "backend": "the backend {}",
    "release": "version {}",
    "weights": "{} weights",
}
Question = Mapping[str, Any]
Answer = dict[str, Any]


def overview(question: Question) -> Answer:
    """The answer sentence with its tone, the four tiles, and at most three next steps with their reasons."""
    asked = {name: value for name, value in question.items() if name in FLAGS}
    support = check(asked)
    footprint = sized(question)
    since = {stage: since_of(timeline(asked, stage)["stretches"], support) for stage in STAGES}
    runs = measured(question)
    reports = published_for(question)
    return envelope(
        "overview",
        dict(question),
        sentence=sentence(question, support, footprint),
        tone=tone(support, footprint),
        support=support,
        since=since,
        memory=footprint,
        measured=runs,
        published=reports,
        tiles=tiles(support, footprint, runs, reports),
        next=next_steps(question, support, footprint, runs),
        no_cuda_path=not any(row.get("cuda") for row in runs["smoke"]),
    )


def since_of(stretches: Sequence[Answer], support: Answer) -> str | None:
    """The first release that already had this answer, `≤` where it may be older; unread releases are skipped."""
    release = support["question"]["release"]
    here = next((n for n, row in enumerate(stretches) if release in row["releases"]), None)
    if here is None:
        return None
    verdict, first = stretches[here]["verdict"], stretches[here]
    for row in reversed(stretches[:here]):
        if row["verdict"] == verdict:
            first = row
        elif row["reason"] != UNREAD:
            break
    return str(first["since"])


def sized(question: Question) -> Answer:
    """The memory answer, or its keys with nothing known where the cache format has no known bytes for this layout."""
    try:
        return memory(question)
    except UnknownError as refusal:
        reason = f"{refusal.where}: expected {refusal.expected}, {refusal.found}"
        unknown = dict.fromkeys(UNSIZED)
        return {**unknown, "question": dict(question), "items": [], "advice": [reason], "binding_reason": reason}


UNSIZED = (
    *("weights_bytes", "weights_source", "kv_bytes_per_token", "available_kv_bytes", "available_kv_bytes_low"),
    *("available_kv_bytes_high", "kv_tokens_low", "kv_tokens_high", "requests_that_fit", "binding_pool", "fits"),
)
"""What the overview shows of a memory answer."""


def fits(footprint: Answer) -> bool | None:
    """Whether the weights leave a pool; None where that is not known."""
    if footprint["binding_pool"] == "weights":
        return False
    return None if footprint["available_kv_bytes"] is None else True


def tone(support: Answer, footprint: Answer) -> str:
    """The message colour: that of the worst stage, and an error when it does not fit or is refused."""
    if fits(footprint) is False:
        return "error"
    return TONE.get(support["verdict"], "error")


def sentence(question: Question, support: Answer, footprint: Answer) -> str:
    """The first line of the page, in full sentences."""
    release = f"{FRAMEWORKS.get(question['framework'], question['framework'])} {question['release']}"
    if fits(footprint) is False:
        refusal = f" {release} would also refuse it." if support["verdict"] == "refused" else ""
        return f"It does not fit. {weights_against_budget(footprint)}{refusal}"
    start = "It fits" if fits(footprint) else "Whether it fits is unknown"
    return f"{run_clause(start, release, question, support)} {capacity_clause(question, footprint)}".strip()


def weights_against_budget(footprint: Answer) -> str:
    """What the weights need beside what the GPU gives the engine."""
    need = gib(footprint["weights_bytes"])
    total = next((item for item in footprint["items"] if item["item"] == "gpu_total"), None)
    given = f"of {gib(total['high_bytes'])} on this GPU" if total else "on this GPU"
    return f"Weights need {need} per GPU, and what the engine may use {given} is less."


def run_clause(start: str, release: str, question: Question, support: Answer) -> str:
    """Whether it runs, by the worst stage."""
    verdict = support["verdict"]
    stage = worst_stage(support)
    reason = str(stage.get("reason") or "the source does not say why").rstrip(".")
    if verdict == "trap":
        how = f"fails: {stage['layer']}, {reason}" if stage.get("layer") else f"fails: {reason}"
        return f"{start} and starts, then {how}."
    clauses = {
        "validated": " and it runs.",
        "expected": " and should run. No run in this store yet.",
        "conditional": f" and runs, with conditions: {first_condition(support)}.",
        "refused": f", but it will not run. {release} refuses {what_on(question, support)}: {reason}.",
        "unknown": ". Whether it runs is unknown.",
    }
    return start + clauses[verdict]


def what_on(question: Question, support: Answer) -> str:
    """`an NVFP4 cache on SM120`, or the weights when their stage refuses."""
    arch = str(support["question"]["arch"])
    place = arch.upper() if arch.startswith("sm") else arch
    if support["stages"]["weights"]["verdict"] == "refused":
        return f"{dtype(question['weights'])} weights on {place}"
    return f"the {dtype(question['kv_cache_dtype'])} cache on {place}"


def worst_stage(support: Answer) -> Answer:
    """The stage that decides the verdict."""
    worst = [stage for stage in support["stages"].values() if stage["verdict"] == support["verdict"]]
    return worst[0] if worst else next(iter(support["stages"].values()))


def first_condition(support: Answer) -> str:
    """The first thing the question leaves open."""
    conditions = support["unmet_conditions"]
    return str(conditions[0]).rstrip(".") if conditions else "see the stages"


def capacity_clause(question: Question, footprint: Answer) -> str:
    """How many requests of the asked context fit beside how many were asked for."""
    fit = requests_that_fit(footprint)
    if fit is None:
        return "How many requests fit is unknown."
    context = tokens_short(int(question["context"]))
    return f"{fit} of {context} fit; you asked for {count(question['concurrency'])}."


def requests_that_fit(footprint: Answer) -> str | None:
    """`12 requests` or `10 to 12 requests`, as sure as the budget is."""
    held = footprint["requests_that_fit"]
    if held is None or held["low"] is None or held["high"] is None:
        return None
    low, high = held["low"], held["high"]
    return f"{count(low)} requests" if low == high else f"{count(low)} to {count(high)} requests"


def tiles(support: Answer, footprint: Answer, runs: Answer, reports: list[Answer]) -> list[tuple[str, str, str]]:
    """Question, short answer and source of each of the four tiles."""
    return [fit_tile(footprint), support_tile(support), measured_tile(runs, reports), pool_tile(footprint)]


def fit_tile(footprint: Answer) -> tuple[str, str, str]:
    """What is left for the cache after weights and runtime."""
    low, high = footprint.get("available_kv_bytes_low"), footprint.get("available_kv_bytes_high")
    source = f"{gib(footprint['weights_bytes'])} of weights ({footprint['weights_source'] or 'not known'})"
    if fits(footprint) is False:
        return "Does it fit?", "No, the weights do not fit", source
    if low is None or high is None:
        return "Does it fit?", "Unknown", source
    left = gib(low) if low == high else f"{low / 2**30:,.1f} to {gib(high)}"
    return "Does it fit?", f"Yes, {left} left for the cache", source


def support_tile(support: Answer) -> tuple[str, str, str]:
    """How many stages run, and the weakest of them."""
    good = [s for s in support["stages"].values() if s["verdict"] in ("validated", "expected", "conditional")]
    weakest = ", ".join(STAGES[k] for k, s in support["stages"].items() if s["verdict"] == support["verdict"])
    word = "ran" if support["verdict"] == "validated" else "should run"
    return "Is it supported?", f"{len(good)} of 4 stages {word}", f"{VERDICTS[support['verdict']]}: {weakest}"


def measured_tile(runs: Answer, reports: list[Answer]) -> tuple[str, str, str]:
    """What this store measured for this model and GPU; a report only where both match."""
    if runs["runs"]:
        latest = runs["runs"][0]
        return "What was measured?", f"{len(runs['runs'])} runs in this store", f"latest {latest['started_at'] or ''}"
    if reports:
        return (
            "What was measured?",
            "No run of this store",
            f"◇ {len(reports)} published numbers for this model and GPU",
        )
    return "What was measured?", "Not measured for this model", "no run and no report for this model on this GPU"


def pool_tile(footprint: Answer) -> tuple[str, str, str]:
    """The pool that runs out first for what was asked."""
    names = {"weights": "Weights", "cache": "KV cache", "none": "Neither, memory is not your limit"}
    binding = names.get(footprint["binding_pool"], "Unknown")
    advice = footprint["advice"]
    return "Which pool binds?", binding, str(advice[0]) if advice else ""


def next_steps(question: Question, support: Answer, footprint: Answer, runs: Answer) -> list[Answer]:
    """At most three lines, each with its reason and the page that does it."""
    steps: list[Answer] = []
    nearest = support["nearest"][:1] if support["verdict"] in ("refused", "trap", "unknown") else []
    for near in nearest:
        steps.append(
            {
                "text": f"Try {AXIS_WORDS[near['axis']].format(dtype(near['to']))}.",
                "page": "matrix",
                "change": near,
                "reason": f"Changing only that gives {near['verdict']}.",
            }
        )
    if footprint["binding_pool"] in ("weights", "cache") and footprint["advice"]:
        steps.append({"text": str(footprint["advice"][0]), "page": "memory", "reason": "It is the pool that binds."})
    if support["verdict"] in ("expected", "conditional", "unknown"):
        steps.append(
            {
                "text": "Run this smoke test on your GPU.",
                "page": "smoke",
                "reason": "A flag that is accepted proves nothing; no run of this combination is in the store.",
            }
        )
    if not runs["runs"]:
        steps.append(
            {
                "text": "Plan the four runs and submit them.",
                "page": "tradeoffs",
                "reason": "Nothing was measured for this model on this GPU.",
            }
        )
    return steps[:3]
