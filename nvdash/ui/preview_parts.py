"""What the Submit page shows of files before they are stored: what was recognised, and each run beside stored ones."""

from typing import Any

import streamlit as st

from nvdash.answers.words import VERDICTS, count, figure
from nvdash.ui import components

MAX_REMARKS, MAX_FOLDED = 6, 100
LONG_HINT = 200
"""Characters of a next step that stand in the page; a longer one, such as a list of formats, is folded."""
IN_FULL = 3
"""Runs of one upload that each get a table of their own; of more, the first does."""
Answer = dict[str, Any]


def recognised(preview: Answer) -> None:
    """1 · What we recognised."""
    st.subheader("1 · What we recognised", anchor=False)
    tables = {table["file"] for table in preview["tables"]}
    to_map = [row for row in preview["files"] if not row["format"] and row["file"] in tables]
    rows = [
        {
            "File": components.plain(row["file"]),
            "Result": ":blue-badge[◇ Name its columns]" if row in to_map else mark(row),
            "Format": row["format"] or ("table" if row in to_map else "not a result format"),
            "Gives": components.plain(", ".join(row["gives"])) or "nothing was read",
        }
        for row in preview["files"]
    ]
    components.table(rows, "Each file, whether it was recognised, and what it gives")
    for row in preview["files"]:
        if row.get("error") and row not in to_map:
            left_out(row["file"], row["error"])


def left_out(file: str, error: Answer) -> None:
    """Why a file is not read, and what to do next."""
    hint = components.plain(error["hint"])
    short = "" if len(hint) > LONG_HINT else f" {hint}"
    found = f"expected {components.plain(error['expected'])}, {components.plain(error['found'])}"
    st.warning(f"**{components.plain(file)}** is left out: {found}.{short}")
    if not short and hint:
        with st.expander(f"What can be read instead of {components.plain(file)}"):
            st.markdown(hint)


def mark(row: Answer) -> str:
    """Recognised or left out, as symbol and word."""
    return ":green-badge[● Recognised]" if row["format"] and not row.get("error") else ":gray-badge[– Left out]"


def beside(preview: Answer) -> None:
    """2 · Your run next to ours, with warnings at the right; nothing where the files hold no run."""
    runs = preview["runs"]
    if not runs and not preview["warnings"]:
        return
    st.subheader("2 · Your run next to ours", anchor=False)
    left, right = st.columns([3, 2], gap="large")
    with left:
        for run in runs[: IN_FULL if len(runs) <= IN_FULL else 1]:
            run_beside(run)
        if len(runs) > IN_FULL:
            sweep(preview)
        if not runs:
            st.caption("These files hold no benchmark run.")
    with right:
        remarks(preview["warnings"])


def sweep(preview: Answer) -> None:
    """The runs of a file of many, one line each."""
    runs, total = preview["runs"], preview["num_runs"]
    st.markdown(f"**All {count(total)} runs of these files**")
    values = [(run, run["values"]) for run in runs]
    rows = [
        {
            "Run": f"`{run['run_id']}`",
            "Requests at once": number(found.get("max_concurrency")),
            "Output tok/s": number(found.get("output_tok_s")),
            "TTFT mean, ms": number(found.get("ttft_mean_ms")),
            "TPOT mean, ms": number(found.get("tpot_mean_ms")),
            "In the store": run["in_store"],
        }
        for run, found in values
    ]
    components.table(rows, "Each run of the upload in one line")
    if total > len(runs):
        st.caption(f"and {count(total - len(runs))} more runs of these files")


def remarks(texts: list[str]) -> None:
    """What is odd about the files: the first remarks in full, the others folded."""
    for text in texts[:MAX_REMARKS]:
        st.warning(components.plain(text))
    if len(texts) > MAX_REMARKS:
        with st.expander(f"{count(len(texts) - MAX_REMARKS)} more remarks"):
            rows = [{"Remark": components.plain(text)} for text in texts[MAX_REMARKS : MAX_REMARKS + MAX_FOLDED]]
            components.table(rows, "Further remarks on these files")
            if len(texts) > MAX_REMARKS + MAX_FOLDED:
                st.caption("`./run submit --dry-run` lists all.")
    if not texts:
        st.caption("No remarks: the numbers are plausible.")


def run_beside(run: Answer) -> None:
    """One run of the upload beside the nearest stored run of the same model and GPU."""
    values, near = run["values"], run["nearest"]
    st.markdown(
        f"**{components.plain(values.get('model')) or 'model not said'}** · run `{run['run_id']}`"
        + ("" if run["in_store"] == "new" else f" · {run['in_store']}")
    )
    verdict = values.get("cache_verdict")
    if verdict in VERDICTS and verdict != "unknown":
        st.markdown(f"KV cache asked for and seen: {components.badge(verdict)}")
    rows = [
        {
            "Metric": row["label"],
            "This upload": number(row["this"]),
            "Nearest run": number(row["nearest"]) if near else "—",
            "Difference": difference(row["ratio"]),
        }
        for row in run["rows"]
    ]
    components.table(rows, "This upload beside the nearest run", "No speed or capacity in these files.")
    if near:
        apart = ", ".join(near["differs_in"]) or "nothing that is recorded"
        st.caption(f"Nearest run {near['run_id']}; it differs in {components.plain(apart)}.")
    else:
        st.caption("No run of this model on this GPU is stored yet.")


def number(value: Any) -> str:
    """A metric as text; unknown is not zero."""
    return "not measured" if value is None else figure(value)


def difference(ratio: float | None) -> str:
    """A ratio as a signed percentage."""
    return "—" if ratio is None else f"{(ratio - 1) * 100:+.1f} %".replace("-", "−")
