"""The three views of the support matrix: grid, timeline, changes."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import streamlit as st

from nvdash.answers.words import STAGES, VERDICTS, dtype
from nvdash.ui import cached, charts, components, selection, uploads
from nvdash.ui.selection import Selection

AXES = {"GPU": "arch", "KV cache": "kv_cache_dtype", "Backend": "backend", "Weights": "weights", "Version": "release"}
FLAG = {"arch": "gpu", "kv_cache_dtype": "kv", "backend": "backend", "weights": "weights", "release": "release"}
WORST = "Worst of all stages"
STAGE_KEYS = {WORST: None, **{label: key for key, label in STAGES.items()}}
ROWS, COLUMNS, STAGE = "matrix_rows", "matrix_columns", "matrix_stage"
EVERY, WORDS, CELL = "matrix_every", "matrix_words", "cell"
CHANGE_SIGNS = {"new_trap": "▲", "lost": "↓", "gained": "↑", "changed": "·"}
"""What a platform team must know first stands first."""
MAIN_CACHES = ("auto", "bfloat16", "fp8", "fp8_e4m3", "nvfp4", "nvfp4_4over6")


def grid(chosen: Selection) -> components.Table:
    """Two axes, everything else held fixed; a click tells why, who says so and how to check it."""
    rows, columns, stage, every, words = grid_controls()
    question = chosen.question()
    pivot = components.asking(
        cached.ask, "pivot", question, rows=AXES[rows], columns=AXES[columns], stage=STAGE_KEYS[stage]
    )
    shown = shown_columns(pivot["columns"]["values"], columns, every)
    st.caption(
        f"Held fixed by your configuration: {held(chosen, rows, columns)}. "
        "The number is the first release of the stretch that has this answer; ≤ marks an uncertain start."
    )
    components.legend()
    st.space("small")  # the grid's own tool bar floats above it
    names = {label_of(rows, value): value for value in pivot["rows"]["values"]}
    heads = {label_of(columns, value): value for value in shown}
    cells = dict(placed(pivot))
    frame = pd.DataFrame(
        [[cell_text(cells[row, column], words) for column in heads.values()] for row in names.values()],
        index=list(names),
        columns=list(heads),
    )
    kinds = [[cells[row, column]["verdict"] for column in heads.values()] for row in names.values()]
    picked = show_grid(frame, kinds, f"grid-{rows}-{columns}-{stage}-{every}-{words}", names, heads)
    if picked is None:
        st.info("Choose a cell to see why, who says so, and how to check it.")
    else:
        detail(chosen, {AXES[rows]: picked[0], AXES[columns]: picked[1]}, cells[picked])
    asked = {**question, "rows": AXES[rows], "columns": AXES[columns], "stage": STAGE_KEYS[stage]}
    components.command(selection.command("matrix pivot", asked), "This grid on the command line")
    return grid_rows(pivot, rows, columns)


def grid_controls() -> tuple[str, str, str, bool, bool]:
    """Axes, stage and display of the grid; an axis equal to the other one swaps them."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rows = st.selectbox(
            "Rows",
            list(AXES),
            key=ROWS,
            bind="query-params",
            on_change=selection.swap_equal_axes,
            args=(ROWS, COLUMNS, "GPU", "KV cache"),
        )
        st.button("⇄", help="Swap rows and columns", on_click=selection.swap, args=(ROWS, COLUMNS))
        columns = st.selectbox(
            "Columns",
            list(AXES),
            index=1,
            key=COLUMNS,
            bind="query-params",
            on_change=selection.swap_equal_axes,
            args=(COLUMNS, ROWS, "KV cache", "GPU"),
        )
        stage = st.selectbox("Stage", list(STAGE_KEYS), key=STAGE, bind="query-params")
    with st.container(horizontal=True):
        every = st.toggle("All cache dtypes", key=EVERY, bind="query-params")
        words = st.toggle(
            "Words instead of symbols",
            key=WORDS,
            bind="query-params",
            help="For screen readers, and for whoever does not want to learn six signs.",
        )
    return rows, columns, stage, every, words


def shown_columns(values: list[str], axis: str, every: bool) -> list[str]:
    """The main cache dtypes, or all of them; every value of another axis."""
    if axis != "KV cache" or every:
        return values
    return [value for value in values if value in MAIN_CACHES] or values


def label_of(axis: str, value: str) -> str:
    """How an axis value heads its row or column."""
    if axis == "GPU":
        products = cached.products_of(value)
        name = value.upper() if value.startswith("sm") else value
        return f"{name} · {products}" if products else name
    return dtype(value) if axis == "KV cache" and value != "auto" else value


def short_label(axis: str, value: str) -> str:
    """An axis value in a sentence: `SM120`, `NVFP4`."""
    if axis == "kv_cache_dtype":
        return f"{dtype(value)} cache"
    return value.upper() if value.startswith("sm") else str(value)


def cell_text(cell: dict[str, Any], words: bool) -> str:
    """Symbol (or short word) and since."""
    word = VERDICTS[cell["verdict"]]
    since = cell["since"] if cell["verdict"] not in ("refused", "unknown") else None
    return f"{word.short if words else word.symbol} {since or ''}".strip()


def held(chosen: Selection, rows: str, columns: str) -> str:
    """What the two axes do not vary."""
    values = {
        "GPU": chosen.gpu,
        "KV cache": dtype(chosen.kv),
        "Backend": f"backend {chosen.backend}",
        "Weights": f"{dtype(chosen.weights)} weights",
        "Version": chosen.release,
    }
    free = [text for axis, text in values.items() if axis not in (rows, columns)]
    return " · ".join([chosen.model, cached.framework_name(chosen.framework), *free])


def show_grid(
    frame: pd.DataFrame, kinds: list[list[str]], key: str, names: dict[str, str], heads: dict[str, str]
) -> tuple[str, str] | None:
    """The coloured grid; the open cell is part of the link."""
    palette = charts.STATUS[charts.theme()]
    styles = pd.DataFrame(
        [
            [f"color:{palette[VERDICTS[k].colour][0]};background-color:{palette[VERDICTS[k].colour][1]}" for k in line]
            for line in kinds
        ],
        index=frame.index,
        columns=frame.columns,
    )
    config: dict[str, Any] = {"_index": st.column_config.TextColumn(width=215, pinned=True)}
    config |= {name: st.column_config.TextColumn(width=92) for name in frame.columns}
    linked = selection.linked_cell(
        key, {f"{r}~{c}": (i, head) for i, (_, r) in enumerate(names.items()) for head, c in heads.items()}
    )
    event = st.dataframe(
        frame.style.apply(lambda _: styles, axis=None),
        key=key,
        on_select="rerun",
        selection_mode="single-cell",
        selection_default={"selection": {"cells": [linked]}} if linked else None,
        column_config=config,
        row_height=30,
        height=min(38 + 30 * len(frame), 640),
        alt=f"Support by {frame.index.name or 'row'} and column; the same as CSV under Export. Escape clears the cell.",
    )
    cells = event["selection"]["cells"]
    if not cells:
        selection.link_cell(None)
        return None
    row, head = cells[0]
    picked = list(names.values())[row], heads[head]
    selection.link_cell("~".join(picked))
    return picked


def placed(pivot: dict[str, Any]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Every cell of a grid with its row and column."""
    for row, line in zip(pivot["rows"]["values"], pivot["cells"], strict=True):
        for column, cell in zip(pivot["columns"]["values"], line, strict=True):
            yield (row, column), cell


def grid_rows(pivot: dict[str, Any], rows: str, columns: str) -> list[dict[str, Any]]:
    """The grid as rows for an export, evidence kept."""
    return [
        {rows: row, columns: column, **cell, "evidence": components.place(cell["evidence"])}
        for (row, column), cell in placed(pivot)
    ]


def detail(chosen: Selection, picked: dict[str, str], cell: dict[str, Any]) -> None:
    """One cell in full, below the grid: stages, reason, evidence, what to do."""
    changed = {FLAG[axis]: value for axis, value in picked.items()}
    question = selection.changed_question(chosen, changed)
    check = components.asking(cached.ask, "check", question)
    with st.container(border=True):
        title = " × ".join(short_label(axis, value) for axis, value in picked.items())
        st.markdown(
            f"**{title}** {components.badge(cell['verdict'])} " + (f"since {cell['since']}" if cell["since"] else "")
        )
        for conflict in check["conflicts"]:
            st.error(f"Source and observation disagree: {components.plain(conflict)}")
        if check["reason"]:
            st.markdown(components.plain(check["reason"]))
        for condition in check["unmet_conditions"]:
            st.markdown(f"- {components.plain(condition)}")
        components.table(components.stage_rows(check), "Verdict, path and evidence of each stage")
        reports(check)
        left, right = st.columns(2)
        left.page_link(
            "pages/lab/smoke.py",
            label="Run a smoke test",
            icon=":material/science:",
            query_params=chosen.link(**changed),
        )
        right.button(
            "Use this configuration",
            icon=":material/arrow_forward:",
            type="tertiary",
            on_click=selection.use,
            args=(changed,),
        )
        components.command(selection.command("check", question))


def reports(check: dict[str, Any]) -> None:
    """Third-party findings beside the verdict; they never lower it."""
    for report in check["reports"]:
        st.markdown(f"▮▯▯▯ Published: {components.plain(report.get('claim'))} ({components.plain(report['url'])})")


def timeline(chosen: Selection) -> components.Table:
    """One bar per stretch of releases with the same answer, one line per GPU or cache dtype."""
    left, right = st.columns(2)
    axis = left.selectbox("One line per", ["GPU", "KV cache"], key="matrix_lines", bind="query-params")
    stage = right.selectbox("Stage", list(STAGE_KEYS), key=STAGE, bind="query-params")
    answers = timelines(chosen, axis, STAGE_KEYS[stage])
    releases = list(reversed(cached.releases(chosen.framework)))
    place = {name: number for number, name in enumerate(releases)}
    bars, rows = [], []
    for value, stretches in answers.items():
        name = value.upper() if value.startswith("sm") else label_of(axis, value)
        for stretch in stretches:
            bars.append(bar(name, stretch, place))
            rows.append(stretch_row(name, stretch))
    components.legend()
    charts.shown(charts.timeline(bars, releases), timeline_finding(rows), "timeline")
    own = cached.arch_of(chosen.gpu).upper() if axis == "GPU" else label_of(axis, chosen.kv)
    st.markdown(f"**{own}**, oldest release first")
    components.table([row for row in rows if row["Line"] == own], f"Stretches of {own} with reason and evidence")
    with st.expander("Every line as a table"):
        components.table(rows, "Every stretch with its reason and evidence")
    question = chosen.question(release=None, stage=STAGE_KEYS[stage])
    components.command(selection.command("matrix timeline", question), "The line of your GPU on the command line")
    return rows


def timelines(chosen: Selection, axis: str, stage: str | None) -> dict[str, list[dict[str, Any]]]:
    """The stretches for each value of one axis, the other one as chosen."""
    if axis == "GPU":
        names = [name for name in cached.arch_names() if name.startswith("sm")]
        questions = {name: chosen.question(gpu=name) for name in names}
    else:
        questions = {name: chosen.question(kv_cache_dtype=name) for name in cached.kv_cache_dtypes(chosen.framework)}
    return {
        name: components.asking(cached.ask, "timeline", question, stage=stage)["stretches"]
        for name, question in questions.items()
    }


def bar(name: str, stretch: dict[str, Any], place: dict[str, int]) -> dict[str, Any]:
    """One stretch with its ends on the release axis."""
    word = VERDICTS[stretch["verdict"]]
    left, right = place[stretch["first"]] - 0.44, place[stretch["last"]] + 0.44
    ran = " ●" if stretch["ran_on"] else ""
    return {
        "row": name,
        "left": left,
        "right": right,
        "middle": (left + right) / 2,
        "colour": word.colour,
        "symbol": word.symbol,
        "long": f"{word.symbol} {word.short}{ran}",
        "label": str(word),
        "span": span(stretch),
        "reason": stretch["reason"] or "",
    }


def span(stretch: dict[str, Any]) -> str:
    """`≤0.13.0 to 0.19.1`."""
    return stretch["since"] if stretch["first"] == stretch["last"] else f"{stretch['since']} to {stretch['last']}"


def stretch_row(name: str, stretch: dict[str, Any]) -> dict[str, Any]:
    """One stretch as a table row."""
    return {
        "Line": name,
        "Releases": span(stretch),
        "Status": components.badge(stretch["verdict"]),
        "Layer": stretch["layer"] or "—",
        "Why": components.plain(stretch["reason"]) or "—",
        "Evidence": components.place(stretch["evidence"]),
    }


def timeline_finding(rows: list[dict[str, Any]]) -> str:
    """The chart's text alternative: the newest answer of every line."""
    newest = {row["Line"]: f"{row['Line']} {row['Status']} ({row['Releases']})" for row in rows}
    return "Newest stretch per line: " + "; ".join(newest.values())


def changes(chosen: Selection) -> components.Table:
    """What two releases answer differently, over every GPU and cache dtype."""
    releases = list(cached.releases(chosen.framework))
    left, right = st.columns(2)
    before = left.selectbox("From", releases, index=min(9, len(releases) - 1), key="matrix_from", bind="query-params")
    after = right.selectbox("To", releases, key="matrix_to", bind="query-params")
    if before == after:
        st.info("Same release on both sides.")
        return []
    question = chosen.question(gpu=None, kv_cache_dtype=None, release=None)
    found = fleet_changes(before, after) or components.asking(cached.ask, "diff", question, before=before, after=after)
    for name in found["unread"]:
        st.warning(f"{name} was not read: its side is unknown.")
    counts = found["counts"]
    st.markdown(
        f"↑ gained {counts['gained']} · ↓ lost {counts['lost']} · ▲ new traps {counts['new_trap']} · "
        f"changed {counts['changed']} · unchanged {counts['unchanged']}"
    )
    left, right = st.columns(2)
    own = cached.arch_of(chosen.gpu)
    only = left.toggle(f"Only {own.upper()}, your GPU", key="matrix_own", bind="query-params")
    every = right.toggle("Also where only layer or backend changed", key="matrix_layers", bind="query-params")
    rows = [
        change_row(row)
        for row in sorted(found["changes"], key=lambda row: list(CHANGE_SIGNS).index(row["change"]))
        if (every or row["change"] != "changed") and (not only or row["arch"] == own)
    ]
    components.table(
        rows,
        f"What changed from {before} to {after}",
        f"Nothing changed between {before} and {after} for this configuration.",
    )
    components.command(selection.command("matrix diff", {**question, "from": before, "to": after}))
    return rows


def fleet_changes(before: str, after: str) -> dict[str, Any] | None:
    """The differences for every configuration of an uploaded fleet file; None without one."""
    with st.expander("Ask for a fleet instead: one YAML file, many configurations"):
        file = st.file_uploader("Fleet file", type=["yaml", "yml"], key="matrix_fleet", max_upload_size=1)
        st.caption("A list of mappings with the flags of `check`: name, model, gpu, weights, kv_cache_dtype, …")
    if file is None:
        return None
    with uploads.saved([file]) as paths:
        answer: dict[str, Any] = components.asking(cached.ask_fresh, "diff_fleet", paths[0], before, after)
    return answer


def change_row(row: dict[str, Any]) -> dict[str, Any]:
    """One difference as a table row."""
    return {
        "": CHANGE_SIGNS[row["change"]],
        "GPU": row["arch"].upper(),
        "KV cache": dtype(row["kv_cache_dtype"]),
        "From": components.badge(row["from"]),
        "To": components.badge(row["to"]),
        "Layer": row.get("layer") or "—",
        "Why": components.plain(row.get("reason")) or "—",
        "Evidence": components.place(row.get("evidence")),
    }
