"""What the Overview shows under its answer: refusal, next steps, memory bars, comparison, guide."""

from typing import Any

import streamlit as st

from nvdash.answers.words import STAGES, VERDICTS, count, dtype, gib
from nvdash.ui import cached, charts, components, selection
from nvdash.ui.selection import Selection

PAGES = {
    "matrix": ("pages/explore/matrix.py", "See the support matrix", ":material/grid_on:"),
    "memory": ("pages/explore/memory.py", "See the memory page", ":material/memory:"),
    "tradeoffs": ("pages/explore/tradeoffs.py", "Plan the experiment", ":material/balance:"),
    "smoke": ("pages/lab/smoke.py", "Run a smoke test", ":material/science:"),
    "submit": ("pages/lab/submit.py", "Submit results", ":material/upload_file:"),
}
COMPARE = "compare"
Answer = dict[str, Any]


def notes(answer: Answer) -> list[str]:
    """The checkpoint to deploy, what `auto` becomes with it, and what else was taken or left open."""
    support = answer["support"]
    told = list(support["notes"])
    cache = support["resolution"]["kv_cache_dtype"]
    if cache["requested"] == "auto":
        known = f"auto becomes {dtype(cache['resolved'])}"
        told.append(known if cache["resolved"] else cache.get("reason") or "what auto becomes is unknown")
    return [*told, *(text for text in answer["memory"].get("notes") or [] if text not in told)]


def blocked(answer: Answer) -> bool:
    """Whether the page must say who refuses instead of showing tiles."""
    return answer["support"]["verdict"] in ("refused", "trap") or answer["memory"]["binding_pool"] == "weights"


def refusal(chosen: Selection, answer: Answer) -> None:
    """Who refuses, where that is written, and the closest combinations that run."""
    support = answer["support"]
    left, right = st.columns(2, gap="large")
    with left.container(border=True):
        st.caption("Refused by" if support["verdict"] == "refused" else "What stands in the way")
        if support["verdict"] in ("refused", "trap"):
            st.markdown(
                f"**{(support['layer'] or 'unknown layer').capitalize()}**: {components.plain(support['reason'])}"
            )
            worst = next(s for s in support["stages"].values() if s["verdict"] == support["verdict"])
            st.markdown(components.place(worst.get("evidence")))
        else:
            st.markdown("**GPU memory**: the weights exceed what the engine may use.")
            for line in answer["memory"]["advice"]:
                st.caption(line)
    with right:
        st.markdown("**Closest combinations that run**")
        components.table(
            [near_row(near) for near in support["nearest"]],
            "One change each that would run",
            "No single change of dtype, backend, release, weights or GPU is known to run.",
        )
        st.page_link(
            "pages/explore/matrix.py",
            label="See when this changed",
            icon=":material/timeline:",
            query_params={**chosen.link(), "matrix_view": "Timeline"},
        )


def then_and_now(chosen: Selection, answer: Answer) -> None:
    """What an old link's matrix said, beside what the facts say now."""
    digest = selection.digest_then()
    if digest is None:
        return
    old = cached.then(chosen.question(), digest)
    if old is None:
        st.caption(f"Matrix {digest} is not in this copy's history, so what it said then is unknown.")
        return
    stages = answer["support"]["stages"]
    rows = [
        {
            "": "**Whole**",
            "Then": components.badge(old["verdict"]),
            "Now": components.badge(answer["support"]["verdict"]),
        }
    ]
    rows += [
        {
            "": f"**{label}**",
            "Then": components.badge(old["stages"][key]["verdict"]),
            "Now": components.badge(stages[key]["verdict"]),
        }
        for key, label in STAGES.items()
    ]
    st.markdown(f"**Then (matrix {digest}) and now**")
    components.table(rows, "Verdicts of the link's matrix beside today's")


def near_row(near: Answer) -> Answer:
    """One change of one axis and what it gives."""
    words = {
        "kv_cache_dtype": "KV cache",
        "arch": "GPU",
        "backend": "backend",
        "release": "version",
        "weights": "weights",
    }
    return {
        "Change one thing": f"{words[near['axis']]} {near['to']} instead of {near['from'] or 'auto'}",
        "Then": components.badge(near["verdict"]),
    }


def next_steps(chosen: Selection, answer: Answer) -> None:
    """At most three lines, each with its reason and its page, the configuration carried along."""
    for number, step in enumerate(answer["next"], 1):
        st.markdown(f"{number}. **{components.plain(step['text'])}** {components.plain(step['reason'])}")
        path, label, icon = PAGES[step["page"]]
        st.page_link(path, label=label, icon=icon, query_params=chosen.link())
    if not answer["next"]:
        st.caption("Nothing is left to do for this configuration.")
    if answer["no_cuda_path"]:
        st.caption("No CUDA kernel path is validated in this store yet.")


def memory_bars(memory: Answer) -> None:
    """What weights, runtime and cache take of one GPU; the typical values of the range, each with its source."""
    rows = bar_rows(memory)
    if not rows:
        st.caption(f"Nothing is drawn: {components.plain(memory['binding_reason'] or 'this GPU has no known memory')}.")
        return
    finding = "; ".join(f"{row['label']} {row['text']}" for row in rows)
    charts.shown(charts.memory_steps(rows), finding, "overview_memory")
    st.caption("Typical values; the Memory page shows the range and the source of each.")


def bar_rows(memory: Answer) -> list[Answer]:
    """The stepped bars from left to right, in GiB."""
    sizes = {item["item"]: item["bytes"] for item in memory["items"]}
    pool, total = memory["available_kv_bytes"], sizes.get("gpu_total")
    if pool is None or not total or memory["weights_bytes"] is None:
        return []
    runtime = sum(sizes.get(name, 0) for name in ("activation_peak", "non_torch", "cuda_graphs"))
    asked = memory["question"]
    used = min(max(pool, 0), memory["kv_bytes_per_token"] * (asked["context"] or 0) * (asked["concurrency"] or 0))
    parts = [
        ("Weights", "weights", memory["weights_bytes"], memory["weights_source"]),
        ("Activations, graphs, runtime", "runtime", runtime, "estimated"),
        (f"Cache in use, {count(asked['concurrency'])} × {count(asked['context'])} tokens", "cache", used, "formula"),
        ("Cache still free", "free", max(pool - used, 0), "estimated"),
    ]
    parts.append(("Not given to the engine", "rest", max(0, total - sum(part[2] for part in parts)), "utilisation"))
    rows, start = [], 0.0
    for label, part, size, source in parts:
        end = start + size / 2**30
        rows.append(
            {
                "label": label,
                "part": part,
                "start": start,
                "end": end,
                "size": size / 2**30,
                "source": source,
                "text": gib(size),
            }
        )
        start = end
    return rows


def published(answer: Answer) -> None:
    """What a report says of this model and GPU, apart from anything measured here."""
    if answer["published"]:
        st.subheader("Published for this model and GPU", anchor=False)
        components.table([report_row(row) for row in answer["published"]], "Published measurements, each a report")
        st.caption("◇ Published: read in a public source, not measured by this project, and no general conclusion.")


def report_row(row: Answer) -> Answer:
    """One published number with what was measured and where it was read."""
    return {
        "Metric": components.plain(row["metric"]),
        "Value": f"{row['value']} {components.plain(row['unit'] or '')}",
        "KV cache": dtype(row["kv_cache_dtype"]),
        "Weights": dtype(row["weight_format"]),
        "Measured": components.plain(row["workload"]),
        "Source": components.plain(row["source"]),
    }


def compare(chosen: Selection, answer: Answer) -> None:
    """A second configuration beside this one; axes that differ on top, both in the link."""
    with st.expander("Compare with…", expanded=bool(selection.linked(COMPARE)), icon=":material/compare_arrows:"):
        other = selection.second(chosen, COMPARE)
        if other == chosen:
            st.caption("Choose what the other configuration changes.")
            return
        second = components.asking(cached.ask, "overview", other.memory_question())
        differs = selection.differences(chosen, other)
        st.markdown("Differs in " + ", ".join(f"**{name}**: {a} against {b}" for name, (a, b) in differs.items()))
        components.table(compare_rows(answer, second), "Both configurations, line by line")


def compare_rows(first: Answer, second: Answer) -> list[Answer]:
    """Verdicts by stage, bytes per token, capacity and requests of both."""

    def line(label: str, value: Any) -> Answer:
        return {"": f"**{label}**", "This": value(first), "Other": value(second)}

    rows = [line("Whole", lambda a: components.badge(a["support"]["verdict"]))]
    rows += [
        line(label, lambda a, k=key: components.badge(a["support"]["stages"][k]["verdict"]))
        for key, label in STAGES.items()
    ]
    rows += [
        line("Bytes per token, one GPU", lambda a: count(a["memory"]["kv_bytes_per_token"])),
        line(
            "KV cache tokens",
            lambda a: f"{count(a['memory']['kv_tokens_low'])} to {count(a['memory']['kv_tokens_high'])}",
        ),
        line("Requests that fit", lambda a: requests_text(a["memory"]["requests_that_fit"])),
        line("Measured", lambda a: a["tiles"][2][1]),
    ]
    return rows


def requests_text(held: Answer | None) -> str:
    """`138 to 158`, or what is not known."""
    return "unknown" if not held else f"{count(held['low'])} to {count(held['high'])}"


def guide(chosen: Selection) -> None:
    """A short path for whoever asks whether to quantise weights or cache first."""
    with st.expander("Weights or cache? A short path", icon=":material/route:"):
        st.markdown(
            "1. **Do the weights fit?** If not, quantise the weights: no cache format can help. "
            "The tile *Which pool binds?* says so.\n"
            "2. **Do your requests fit?** If the cache runs out first, quantise the cache. "
            "The Memory page shows how many requests each format holds, for this layout and length.\n"
            "3. **Does it run?** Each stage has its own verdict. A flag that is accepted proves nothing: "
            "run a smoke test to see the kernels and the bytes.\n"
            "4. **What does it cost?** Run the four configurations under equal controls and submit them. "
            "Prefill, decode, capacity and quality are compared apart."
        )
        for page in ("memory", "smoke", "tradeoffs"):
            path, label, icon = PAGES[page]
            st.page_link(path, label=label, icon=icon, query_params=chosen.link())


def exports(answer: Answer) -> None:
    """JSON, CSV and Markdown of the overview."""
    rows = [
        {"stage": key, **{k: v for k, v in stage.items() if not isinstance(v, dict)}}
        for key, stage in answer["support"]["stages"].items()
    ]
    components.downloads("overview", rows, answer, markdown(answer))


def markdown(answer: Answer) -> str:
    """The answer as text for a ticket."""
    question, support, memory = answer["question"], answer["support"], answer["memory"]
    lines = [f"## {question['model']} on {question['gpu']}", "", answer["sentence"], ""]
    lines += [
        f"- {key}: {VERDICTS[stage['verdict']]}, {stage.get('reason') or 'no reason given'}"
        f" ({components.place(stage.get('evidence'))})"
        for key, stage in support["stages"].items()
    ]
    lines += [
        "",
        f"- weights: {gib(memory['weights_bytes'])} per GPU ({memory['weights_source']})",
        f"- KV cache: {count(memory['kv_bytes_per_token'])} bytes per token per GPU",
        f"- binding pool: {memory['binding_pool'] or 'unknown'}",
        "",
        f"nvdash {answer['nvdash_version']}, matrix {answer['matrix_digest']}",
    ]
    return "\n".join(lines)
