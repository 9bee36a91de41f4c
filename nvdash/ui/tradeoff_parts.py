"""What the Trade-offs page is made of: runs of this store, published reports, the plan."""

from typing import Any

import streamlit as st

from nvdash.answers.words import dtype, figure, ratio
from nvdash.ui import cached, charts, components, selection
from nvdash.ui.selection import Selection

SOURCES = ("Runs in this store", "Published", "Both, side by side")
SOURCE, PLAN, SET = "tradeoffs_source", "tradeoffs_plan", "tradeoffs_set"
COLUMNS = {
    "Prefill tok/s": ("prefill_tok_s", "input_tok_s"),
    "TTFT mean, ms": ("ttft_mean_ms",),
    "Decode tok/s per user": ("output_tok_s_per_user",),
    "TPOT mean, ms": ("tpot_mean_ms",),
    "Output tok/s": ("output_tok_s",),
    "KV cache tokens": ("kv_tokens",),
}
CELLS = {
    "wide": ("wide", "wide"),
    "weights": ("narrow", "wide"),
    "cache": ("wide", "narrow"),
    "both": ("narrow", "narrow"),
}
FEW = 3
"""So many reports are shown open."""
Answer = dict[str, Any]


def stored(chosen: Selection) -> list[Answer]:
    """A matched set of this model and GPU, or where the nearest are; returns the rows shown."""
    answer = components.asking(cached.ask, "compare", {"model": chosen.model, "gpu": chosen.gpu})
    sets = answer["matched_sets"]
    components.answer("success" if sets else "info", headline(chosen, answer))
    rows = matched_set(one_of(sets)) if sets else []
    unmatched(answer["unmatched"])
    if not sets:
        elsewhere()
    frontier(chosen)
    return rows


def one_of(sets: list[Answer]) -> Answer:
    """The set to look at, the fullest unless the reader chose another."""
    if len(sets) == 1:
        return sets[0]
    named = {set_label(found): found for found in reversed(sets)}
    labels = list(reversed(named))
    return named[st.selectbox(f"Matched set, of {len(labels)}", labels, key=SET, bind="query-params")]


def set_label(found: Answer) -> str:
    """What tells one set of a model and GPU from the others."""
    system = found["system"]
    parts = [f"{cached.framework_name(system['framework'])} {system['version']}", f"{system['gpu_count']} GPU"]
    more = [system["parallelism"]] if system["gpu_count"] != 1 else []
    return " · ".join([*parts, *more, found["workload"] or "any workload", *filter(None, [found["plan"]])])


def headline(chosen: Selection, answer: Answer) -> str:
    """What this store can say of the four configurations."""
    if answer["matched_sets"]:
        return str(answer["sentence"])
    return f"No four-way experiment yet for {chosen.model} on {chosen.gpu}. {answer['sentence']}"


def elsewhere() -> None:
    """Which models and GPUs have runs, so that an empty page leads on."""
    systems = cached.systems()
    if systems:
        st.markdown("**Runs in this store are of**")
        components.table(
            [
                {
                    "Model": components.plain(row.get("model")) or "unknown",
                    "GPU": components.plain(row.get("gpu")) or "unknown",
                    "Runs": str(row["runs"]),
                }
                for row in systems
            ],
            "Models and GPUs with runs",
        )
    else:
        st.caption("The store is empty.")
    st.page_link("pages/lab/submit.py", label="Submit results", icon=":material/upload_file:")


def matched_set(found: Answer) -> list[Answer]:
    """One set: controls, the four rows, interactions, quality, and the two recording tables."""
    with st.expander(f"Controls: {found['workload']}", icon=":material/rule:"):
        components.table(
            [
                {"Control": components.plain(name), "Value": components.plain(value) or "unknown"}
                for name, value in found["system"].items()
            ],
            "Controls that are equal in this set",
        )
    for text in differing(found["controls"]):
        st.warning(f"▲ {text}")
    rows = [set_row(row) for row in found["rows"]]
    components.table(rows, "The four configurations, each value with its ratio to wide weights and wide cache")
    for label in found["missing"]:
        st.caption(f"{label}: not run. The plan below writes its script.")
    interactions(found)
    for sentence in found["sentences"]:
        st.markdown(f"- {components.plain(sentence)}")
    for effect in found["effects"]:
        if effect["label"] != "precision" and effect["because"]:
            st.caption(f"{effect['measure']} ({effect['axis']}): {effect['label']}, {effect['because']}.")
    recorded(found["recorded"])
    return rows


def differing(controls: Answer) -> list[str]:
    """The controls that differ, in words, each once."""
    found = {
        f"{cell}: {row['label']} is {components.plain(row['values'])} ({phase} is not comparable)"
        for phase, part in controls.items()
        for cell, rows in part["differs"].items()
        for row in rows
    }
    return sorted(found)


def set_row(row: Answer) -> Answer:
    """One configuration: every value with its ratio, or why there is none."""
    shown: Answer = {"Run": f"**{row['label']}**", "Runs": ", ".join(row["run_ids"]) or "not run"}
    for label, names in COLUMNS.items():
        entry = next((row["values"][name] for name in names if name in row["values"]), None)
        shown[label] = value_text(entry)
    return shown


def value_text(entry: Answer | None) -> str:
    """`18,210 · 1.31 ×`, `▲ 18,210 · not comparable`, or `not measured`."""
    if entry is None:
        return "not measured"
    value = figure(entry["mean"])
    if entry["ratio"] is None:
        return f"▲ {value} · {components.plain(entry['because'])}"
    return f"{value} · {ratio(entry['ratio'])}"


def interactions(found: Answer) -> None:
    """Does one change depend on the other? One plot per phase; the headline states the finding."""
    shown = found["interactions"]
    if not shown:
        return
    st.subheader("Does one change depend on the other?", anchor=False)
    for column, item in zip(st.columns(len(shown)), shown, strict=True):
        with column:
            st.markdown(f"**{item['phase'].capitalize()}, {item['measure']}**")
            charts.shown(
                charts.interaction(interaction_rows(found, item), item["measure"]),
                item["finding"],
                f"interaction-{item['phase']}-{item['measure']}",
            )
            st.caption(item["finding"])


def interaction_rows(found: Answer, item: Answer) -> list[Answer]:
    """The four values of one measure by weights and cache."""
    values = {row["cell"]: row["values"].get(item["measure"]) for row in found["rows"]}
    return [
        {"weights": f"{weights} weights", "cache": f"{cache} cache", "value": values[cell]["mean"]}
        for cell, (weights, cache) in CELLS.items()
        if values.get(cell)
    ]


def recorded(tables: Answer) -> None:
    """The two recording tables, missing fields named."""
    for name, both in tables.items():
        with st.expander(f"{name}: {both['weights']['headline']} · {both['cache']['headline']}"):
            for part in ("weights", "cache"):
                st.markdown(f"**{both[part]['headline']}**")
                components.table(
                    [{"Field": row["label"], "Value": components.plain(row["value"])} for row in both[part]["rows"]],
                    f"What was recorded of the {part}",
                )


def unmatched(rows: list[Answer]) -> None:
    """Runs that match nothing, with the control that keeps them out."""
    if not rows:
        return
    with st.expander(f"{len(rows)} groups of runs match nothing; each names the control"):
        components.table(
            [
                {
                    "Runs": ", ".join(row["run_ids"]),
                    "Because": components.plain(row["because"]),
                    "Nearest": row["nearest"] or "none",
                }
                for row in rows
            ],
            "Unmatched runs and why",
        )


def frontier(chosen: Selection) -> None:
    """Throughput against interactivity and capacity against speed, over every run of this model and GPU."""
    titles = {
        "throughput_interactivity": ("Output tok/s per user", "Output tok/s"),
        "capacity_speed": ("KV cache tokens", "Output tok/s"),
    }
    for view, (x, y) in titles.items():
        found = components.asking(cached.ask, "pareto", {"model": chosen.model, "gpu": chosen.gpu}, view=view)
        if found["points"]:
            st.subheader(f"{x} against {y}", anchor=False)
            rows = [{**row, "label": point_label(row), "front": row["on_front"]} for row in found["points"]]
            best = ", ".join(row["label"] for row in rows if row["front"])
            charts.shown(charts.pareto(rows, x, y), f"Not beaten by any other run: {best}", f"pareto-{view}")
            st.caption(f"● runs in this store. Not beaten by any other: {best}.")


def point_label(row: Answer) -> str:
    """Configuration and concurrency of one point."""
    users = f", {row['max_concurrency']} at once" if row["max_concurrency"] else ""
    return f"{row['name']}{users}"


def published(chosen: Selection) -> list[Answer]:
    """Third-party reports, each whole and apart; nothing here was measured by this project."""
    left, right = st.columns(2)
    scope = left.selectbox(
        "Show",
        ["All reports", "This model", "This GPU", "This model and GPU", "This capability"],
        key="published_scope",
        bind="query-params",
    )
    cache = right.selectbox(
        "KV cache", ["any", "nvfp4", "fp8_e4m3", "bf16"], key="published_cache", bind="query-params"
    )
    filters: Answer = {
        "model": chosen.model if "model" in scope else None,
        "gpu": chosen.gpu if "GPU" in scope else None,
        "arch": cached.arch_of(chosen.gpu) if "capability" in scope else None,
        "kv_cache_dtype": None if cache == "any" else cache,
    }
    answer = components.asking(cached.ask, "published", filters)
    components.answer(
        "info",
        f"◇ {answer['measurements']} published numbers in {len(answer['reports'])} reports. "
        "None was measured here; no general conclusion follows from any of them.",
    )
    rows: list[Answer] = []
    for report in answer["reports"]:
        rows += report_table(report, is_open=len(answer["reports"]) <= FEW)
    if not answer["reports"]:
        st.caption("No report matches these filters.")
    return rows


def report_table(report: Answer, is_open: bool) -> list[Answer]:
    """One report: its parts apart, its note, and what must be read beside it."""
    rows = [report_row(part, row) for part, found in report["parts"].items() for row in found]
    with st.expander(f"◇ {report['title']} ({len(rows)} numbers)", expanded=is_open):
        if report["note"]:
            st.markdown(components.plain(report["note"]))
        shown, same = components.without_repeats(rows, keep=("Part", "Metric", "Value"))
        if same:
            st.caption(" · ".join(f"{name}: {value}" for name, value in same.items()))
        components.table([narrow(row) for row in shown], f"Numbers of the report {report['title']}")
        for other in report["beside"]:
            st.caption(f"Read beside: {components.plain(other['title'])}")
        for source in report["sources"]:
            st.markdown(f":small[Source: {components.plain(source)}]")
    return rows


def narrow(row: Answer) -> Answer:
    """A published number in few columns, so that a report fits on half a page and on a phone."""
    told = [row[name] for name in ("Measured", "GPU", "Model", "Provenance") if name in row]
    formats: Answer = {name: row[name] for name in ("KV cache", "Weights") if name in row}
    return {
        "Metric": f"{row['Part']}: {row['Metric']}",
        "Value": row["Value"],
        **formats,
        **({"Measured": " · ".join(told)} if told else {}),
    }


def report_row(part: str, row: Answer) -> Answer:
    """One published number."""
    value = row["value"]
    text = " to ".join(f"{number:,.12g}" for number in (value if isinstance(value, list) else [value]))
    return {
        "Part": part,
        "Metric": components.plain(row["metric"].replace("_", " ")),
        "Value": f"{text} {components.plain(row['unit'])}",
        "KV cache": dtype(row["kv_cache_dtype"]),
        "Weights": dtype(row["weight_format"]),
        "GPU": components.plain(row["gpu"] or row["arch"]),
        "Model": components.plain(row["model"]) or "not said",
        "Measured": components.plain(row["workload"]),
        "Provenance": components.plain(row["verified"]),
    }


def plan(chosen: Selection) -> None:
    """The runs a team should do next, as scripts, with a checklist that fills as runs arrive."""
    st.subheader("Which runs next?", anchor=False)
    planned = cached.choices().planned
    if chosen.framework not in planned:
        covered = " and ".join(map(cached.framework_name, planned))
        st.info(f"No plan is written for {cached.framework_name(chosen.framework)}; plans cover {covered}.")
        return
    question = chosen.question(max_model_len=chosen.context)
    answer = components.asking(cached.ask, "plan", question)
    st.markdown(components.plain(answer["sentence"]))
    components.table([plan_row(cell) for cell in answer["cells"]], "The four configurations and why one stays empty")
    with st.expander("Checklist: which runs of the plan are stored"):
        components.table([check_row(row) for row in answer["checklist"]], "Runs of the plan that are stored")
    for which in answer["sets"]:
        with st.expander(f"Scripts, {which['set'].replace('-', ' ')}: {which['means']}"):
            for script in answer["scripts"]:
                if script["set"] == which["set"] and script["script"]:
                    script_block(script)
    for note in answer["notes"]:
        st.caption(components.plain(note))
    components.command(selection.command("plan", question))


def plan_row(cell: Answer) -> Answer:
    """One of the four configurations; a refused one stays empty and is never replaced."""
    return {
        "Configuration": f"**{cell['label']}**",
        "Weights": dtype(cell["weights"]),
        "Cache": components.plain(cell["cache"]),
        "Checkpoint": components.plain(cell["checkpoint"]) or "none known",
        "Verdict": components.badge(cell["verdict"]),
        "Script": "ready" if cell["ready"] else components.plain(cell["empty_because"]),
    }


def check_row(row: Answer) -> Answer:
    """One load of one configuration with its stored repeats."""
    return {
        "": "☑" if row["complete"] else "☐",
        "Set": row["set"],
        "Configuration": row["label"],
        "At once": str(row["concurrency"]),
        "Stored": row["done"],
        "Runs": ", ".join(row["run_ids"]) or "—",
    }


def script_block(script: Answer) -> None:
    """One script with its download."""
    st.markdown(f"**{script['label']}**")
    st.code(script["script"], language=None, wrap_lines=True)
    name = script["file"].replace("/", "-")
    st.download_button(
        "Download the script",
        script["script"],
        name,
        "text/x-shellscript",
        key=f"plan-{script['file']}",
        on_click="ignore",
    )
